package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.instrument.ForwardingVirtual;
import io.cuvette.instrument.internal.memory.KnownMappings;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Handles;
import java.util.List;

/** The part of the sanitizer that watches virtual memory. Thread-safe. */
public final class SanitizerVirtual extends ForwardingVirtual {
  private final VirtualCalls calls;
  private final SanitizerCore core;

  public SanitizerVirtual(CudaDriver driver, SanitizerCore core) {
    super(driver.virtual());
    this.calls = driver.virtual();
    this.core = core;
  }

  private Handles<Boolean> allocations() {
    return core.allocations;
  }

  @Override
  public long memAddressReserve(long bytes, long alignment, long address) {
    CallTrace site = CallTrace.of("memAddressReserve", "bytes", bytes);
    long reserved = calls.memAddressReserve(bytes, alignment, address);
    core.check(_ -> core.memory.mappings.reserved(reserved, bytes, site));
    return reserved;
  }

  @Override
  public void memAddressFree(long address, long bytes) {
    CallTrace site = CallTrace.of("memAddressFree", "address", address, "bytes", bytes);
    core.free("memAddressFree", address, site, () -> calls.memAddressFree(address, bytes));
  }

  @Override
  public long memCreate(long bytes, AllocationProperties properties) {
    CallTrace site = CallTrace.of("memCreate", "bytes", bytes);
    long handle = calls.memCreate(bytes, properties);
    core.check(_ -> {
      allocations().add(handle, true, site);
      core.memory.mappings.created(handle);
    });
    return handle;
  }

  @Override
  public void memMap(long address, long bytes, long offset, long handle) {
    CallTrace site = CallTrace.of("memMap", "address", address, "bytes", bytes, "handle", handle);
    core.check(findings -> allocations().use(handle, site, findings));
    calls.memMap(address, bytes, offset, handle);
    core.check(_ -> core.memory.mappings.mapped(address, bytes, handle, site));
  }

  @Override
  public void memUnmap(long address, long bytes) {
    CallTrace site = CallTrace.of("memUnmap", "address", address, "bytes", bytes);
    core.check(findings -> core.memory.mappings.checkUnmap(address, bytes, site, findings));
    List<KnownMappings.Mapping> gone =
        core.locked(_ -> core.memory.mappings.unmapped(address, bytes, site));
    try {
      calls.memUnmap(address, bytes);
    } catch (RuntimeException e) {
      core.check(_ -> core.memory.mappings.restore(gone));
      throw e;
    }
  }

  @Override
  public void memSetAccess(
      long address, long bytes, int locationType, int[] locationIds, int... access) {
    calls.memSetAccess(address, bytes, locationType, locationIds, access);
    if (locationType == MemLocationType.DEVICE) {
      core.check(_ -> core.memory.mappings.setAccess(address, bytes, locationIds, access));
    }
  }

  @Override
  public void memRelease(long handle) {
    CallTrace site = CallTrace.of("memRelease", "handle", handle);
    Boolean _ = core.destroy(allocations(), handle, site, () -> calls.memRelease(handle));
  }

  @Override
  public long memRetainAllocationHandle(long address) {
    CallTrace site = CallTrace.of("memRetainAllocationHandle", "address", address);
    long handle = calls.memRetainAllocationHandle(address);
    core.check(_ -> {
      allocations().addOnceMore(handle, true, site);
      core.memory.mappings.retained(address, handle);
    });
    return handle;
  }

  @Override
  public AllocationProperties memGetAllocationPropertiesFromHandle(long handle) {
    CallTrace site = CallTrace.passing("memGetAllocationPropertiesFromHandle", "handle", handle);
    core.check(findings -> allocations().use(handle, site, findings));
    return calls.memGetAllocationPropertiesFromHandle(handle);
  }

  @Override
  public int memExportToShareableHandle(long handle) {
    CallTrace site = CallTrace.passing("memExportToShareableHandle", "handle", handle);
    core.check(findings -> {
      allocations().use(handle, site, findings);
      core.memory.mappings.shared(handle);
    });
    return calls.memExportToShareableHandle(handle);
  }

  @Override
  public long memImportFromShareableHandle(int descriptor) {
    CallTrace site = CallTrace.of("memImportFromShareableHandle", "descriptor", descriptor);
    long handle = calls.memImportFromShareableHandle(descriptor);
    core.check(_ -> {
      allocations().addOnceMore(handle, true, site);
      core.memory.mappings.shared(handle);
    });
    return handle;
  }
}
