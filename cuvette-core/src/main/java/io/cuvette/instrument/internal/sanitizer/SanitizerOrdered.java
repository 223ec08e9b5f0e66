package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.order.Turn;
import io.cuvette.instrument.internal.report.CallTrace;
import org.jspecify.annotations.Nullable;

/** The part of the sanitizer that watches memory in stream order. Thread-safe. */
public final class SanitizerOrdered implements OrderedCalls {
  private final OrderedCalls calls;
  private final SanitizerCore core;

  public SanitizerOrdered(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.ordered();
    this.core = core;
  }

  @Override
  public long memAllocAsync(int device, long bytes, long stream) {
    CallTrace site =
        CallTrace.of("memAllocAsync", "device", device, "bytes", bytes, "stream", stream);
    Lane lane = lane(device, stream, site);
    Turn turn = core.turn(lane);
    long address = calls.memAllocAsync(device, bytes, stream);
    return allocated(address, bytes, lane, turn, true, site);
  }

  @Override
  public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
    String method = "memAllocFromPoolAsync";
    CallTrace site =
        CallTrace.of(method, "device", device, "bytes", bytes, "pool", pool, "stream", stream);
    boolean onDevice = core.locked(findings -> core.streams.pool(pool, site, findings));
    Lane lane = lane(device, stream, site);
    Turn turn = core.turn(lane);
    long address = calls.memAllocFromPoolAsync(device, bytes, pool, stream);
    return allocated(address, bytes, lane, turn, onDevice, site);
  }

  @Override
  public void memFreeAsync(int device, long address, long stream) {
    CallTrace site =
        CallTrace.of("memFreeAsync", "device", device, "address", address, "stream", stream);
    Lane lane = lane(device, stream, site);
    Turn turn = core.turn(lane);
    core.askForShown();
    boolean isNow =
        lane == null || core.locked(of -> core.memory.checkFreeInOrder(address, lane, site, of));
    core.free(
        (block, here) -> isNow ? core.memory.free(block, here) : null,
        address,
        site,
        () -> calls.memFreeAsync(device, address, stream));
    core.check(_ -> turn.take());
  }

  private @Nullable Lane lane(int device, long stream, CallTrace site) {
    return core.locked(findings -> core.streams.lane(device, stream, site, findings));
  }

  private long allocated(
      long address, long bytes, @Nullable Lane lane, Turn turn, boolean onDevice, CallTrace site) {
    core.check(_ -> {
      turn.take();
      core.memory.allocatedInOrder(address, bytes, lane, onDevice, site);
    });
    return address;
  }
}
