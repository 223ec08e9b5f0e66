package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.instrument.internal.memory.KnownBlock;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.EventMark;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** The part of the sanitizer that watches what other processes share. Thread-safe. */
public final class SanitizerIpc implements IpcCalls {
  private static final String CLOSE = "ipcCloseMemHandle";

  /** How often each address was opened; used inside the functions given to the core alone. */
  private final Map<Long, Integer> openings = new HashMap<>();

  private final CudaDriver driver;
  private final SanitizerCore core;

  public SanitizerIpc(CudaDriver driver, SanitizerCore core) {
    this.driver = driver;
    this.core = core;
  }

  @Override
  public int memPoolExportToShareableHandle(long pool) {
    CallTrace site = CallTrace.passing("memPoolExportToShareableHandle", "pool", pool);
    core.check(findings -> core.streams.pool(pool, site, findings));
    return driver.sharing().memPoolExportToShareableHandle(pool);
  }

  @Override
  public long memPoolImportFromShareableHandle(int descriptor) {
    CallTrace site = CallTrace.of("memPoolImportFromShareableHandle", "descriptor", descriptor);
    long pool = driver.sharing().memPoolImportFromShareableHandle(descriptor);
    core.check(_ -> core.streams.pools.addOnceMore(pool, false, site));
    return pool;
  }

  @Override
  public byte[] memPoolExportPointer(long address) {
    core.share(CallTrace.of("memPoolExportPointer", "address", address), address);
    return driver.sharing().memPoolExportPointer(address);
  }

  @Override
  public long memPoolImportPointer(long pool, byte[] handle) {
    CallTrace site = CallTrace.of("memPoolImportPointer", "pool", pool, "handle", handle);
    core.check(findings -> core.streams.pool(pool, site, findings));
    long address = driver.sharing().memPoolImportPointer(pool, handle);
    long bytes = size(0, address, () -> driver.memory().memFree(0, address));
    core.check(_ -> core.memory.imported(address, bytes, "memFreeAsync", site));
    return address;
  }

  /** The size of memory that was just imported, which is freed if that cannot be queried. */
  private long size(int device, long address, Runnable end) {
    try {
      return driver.memory().pointerGetAttribute(device, PointerAttribute.RANGE_SIZE, address);
    } catch (CudaException e) {
      try {
        end.run();
      } catch (CudaException again) {
        e.addSuppressed(again);
      }
      throw e;
    }
  }

  @Override
  public byte[] ipcGetMemHandle(int device, long address) {
    CallTrace site = CallTrace.of("ipcGetMemHandle", "device", device, "address", address);
    core.share(site, address);
    return driver.sharing().ipcGetMemHandle(device, address);
  }

  @Override
  public long ipcOpenMemHandle(int device, byte[] handle) {
    CallTrace site = CallTrace.of("ipcOpenMemHandle", "device", device, "handle", handle);
    long address = driver.sharing().ipcOpenMemHandle(device, handle);
    long bytes = size(device, address, () -> driver.sharing().ipcCloseMemHandle(device, address));
    core.check(_ -> {
      core.memory.imported(address, bytes, CLOSE, site);
      openings.merge(address, 1, Integer::sum);
    });
    return address;
  }

  @Override
  public void ipcCloseMemHandle(int device, long address) {
    CallTrace site = CallTrace.of(CLOSE, "device", device, "address", address);
    core.check(findings -> {
      if (openings.getOrDefault(address, 1) == 1) {
        core.memory.checkFree(address, CLOSE, site, findings);
      }
    });
    boolean open = core.locked(_ -> openings.containsKey(address));
    try {
      core.free(
          this::closeOnce,
          address,
          site,
          () -> driver.sharing().ipcCloseMemHandle(device, address));
    } catch (CudaException e) {
      if (open) {
        core.check(_ -> openings.merge(address, 1, Integer::sum));
      }
      throw e;
    }
  }

  /** Ends the block with its last opening. */
  private @Nullable KnownBlock closeOnce(long address, CallTrace site) {
    Integer left = openings.computeIfPresent(address, (_, count) -> count == 1 ? null : count - 1);
    return left == null ? core.memory.free(address, site) : null;
  }

  @Override
  public byte[] ipcGetEventHandle(int device, long event) {
    CallTrace site = CallTrace.of("ipcGetEventHandle", "device", device, "event", event);
    EventMark mark = core.locked(findings -> core.streams.events.use(event, site, findings));
    byte[] handle = driver.sharing().ipcGetEventHandle(device, event);
    if (mark != null) {
      AtomicReference<@Nullable Clock> passed = new AtomicReference<>();
      core.shown.put(event, () -> ask(device, event, mark, passed));
    }
    return handle;
  }

  private void ask(
      int device, long event, EventMark mark, AtomicReference<@Nullable Clock> passed) {
    Clock work = core.locked(_ -> mark.capture() == null ? mark.clock() : null);
    try {
      if (work != null
          && work != passed.get()
          && core.finishIf(driver.events().eventQuery(device, event), work)) {
        passed.set(work);
      }
    } catch (CudaException e) {
      // no answer: nothing is known of it
    }
  }

  @Override
  public long ipcOpenEventHandle(int device, byte[] handle) {
    CallTrace site = CallTrace.of("ipcOpenEventHandle", "device", device, "handle", handle);
    long event = driver.sharing().ipcOpenEventHandle(device, handle);
    core.check(_ -> core.streams.events.add(event, new EventMark(true), site));
    return event;
  }
}
