package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.instrument.internal.memory.Work;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The part of the sanitizer that watches handles of libraries. Thread-safe. */
public final class SanitizerMath implements MathCalls {
  private final MathCalls calls;
  private final SanitizerCore core;

  /** The stream of each handle. */
  private final Map<Long, Long> streams = new ConcurrentHashMap<>();

  public SanitizerMath(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.math();
    this.core = core;
  }

  @Override
  public String mathLibraryVersion(MathLibrary library) {
    return calls.mathLibraryVersion(library);
  }

  @Override
  public long mathHandleCreate(MathLibrary library, int device) {
    CallTrace site = CallTrace.of("mathHandleCreate", "library", library, "device", device);
    long handle = calls.mathHandleCreate(library, device);
    core.check(_ -> core.mathHandles.add(handle, library, site));
    return handle;
  }

  @Override
  public void mathHandleDestroy(MathLibrary library, int device, long handle) {
    CallTrace site =
        CallTrace.of("mathHandleDestroy", "library", library, "device", device, "handle", handle);
    core.destroy(
        core.mathHandles, handle, site, () -> calls.mathHandleDestroy(library, device, handle));
    streams.remove(handle);
  }

  @Override
  public void mathHandleSetStream(MathLibrary library, int device, long handle, long stream) {
    CallTrace site = use("mathHandleSetStream", handle);
    @Nullable Lane lane = core.lane("mathHandleSetStream", device, stream);
    calls.mathHandleSetStream(library, device, handle, stream);
    streams.put(handle, stream);
    core.unseen(lane, site); // what the library queues from now on
  }

  @Override
  public void mathHandleSetWorkspace(int device, long handle, long address, long bytes) {
    CallTrace _ = use("mathHandleSetWorkspace", handle);
    core.checkLive("mathHandleSetWorkspace", address, bytes);
    calls.mathHandleSetWorkspace(device, handle, address, bytes);
  }

  /** Of matrices with gaps it is known only that they are used, as of arguments of kernels. */
  @Override
  public void gemm(int device, long handle, MatrixProduct product, long c, long a, long b) {
    CallTrace site = use("gemm", handle);
    Work work = new Work(site, device, streams.getOrDefault(handle, 0L));
    work =
        product.isWholeC()
            ? work.writes(c, product.bytesOfC())
            : work.uses(used(c, product.bytesOfC()));
    work =
        product.isWholeA()
            ? work.reads(a, product.bytesOfA())
            : work.uses(used(a, product.bytesOfA()));
    work =
        product.isWholeB()
            ? work.reads(b, product.bytesOfB())
            : work.uses(used(b, product.bytesOfB()));
    core.queue(work, () -> calls.gemm(device, handle, product, c, a, b));
  }

  private static Range used(long address, long bytes) {
    return new Range(address, bytes, Kind.USE, false);
  }

  private CallTrace use(String method, long handle) {
    CallTrace site = CallTrace.passing(method, "handle", handle);
    core.check(findings -> core.mathHandles.use(handle, site, findings));
    return site;
  }
}
