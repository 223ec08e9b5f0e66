package io.cuvette.sim.internal.machine;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.EventPoint;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.share.SharedEvent;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** A point in a stream that can be waited for and has a time. Guarded by the driver's lock. */
public final class SimEvent implements EventPoint {
  public static final int ALL_FLAGS = 7;
  public static final int DISABLE_TIMING = 2;
  public static final int INTERPROCESS = 4;

  public final SimDevice device;
  public final int flags;

  private @Nullable SharedEvent shared;
  private @Nullable SimOp record;
  private CaptureBranch.@Nullable Point captured;

  public SimEvent(SimDevice device, int flags) {
    this.device = device;
    this.flags = flags;
  }

  public static void checkFlags(int flags) {
    if ((flags & ~ALL_FLAGS) != 0) {
      throw SimRefusal.invalidValue("flags: %d (expected: 0 to %d)".formatted(flags, ALL_FLAGS));
    }
    if ((flags & INTERPROCESS) != 0 && (flags & DISABLE_TIMING) == 0) {
      throw SimRefusal.invalidValue(
          "flags: %d (expected: an interprocess event, 4, to have no timing, 2)".formatted(flags));
    }
  }

  public boolean isInterprocess() {
    return (flags & INTERPROCESS) != 0;
  }

  /** What other processes use too; null if the event was neither exported nor opened. */
  public @Nullable SharedEvent shared() {
    return shared;
  }

  public void share(SharedEvent event) {
    shared = event;
  }

  /** What is done when the newest record is, if another process made that; else null. */
  public @Nullable BooleanSupplier foreignRecord() {
    return shared == null || shared.isOwn() ? null : shared.newest();
  }

  @Override
  public void recorded(SimOp op) {
    record = op;
    captured = null;
  }

  public void captured(CaptureBranch.Point point) {
    captured = point;
  }

  /** What was recorded into a capture, if that was the last record. */
  public CaptureBranch.@Nullable Point capturedPoint() {
    return captured;
  }

  @Override
  public @Nullable SimOp lastRecord() {
    return record;
  }

  /** The last record of an event that shall have a time. */
  public SimOp timedRecord(String name) {
    if ((flags & DISABLE_TIMING) != 0) {
      throw new SimRefusal(CudaStatus.INVALID_HANDLE, name + " event: made without timing");
    }
    SimOp op = lastRecord();
    if (op == null) {
      throw new SimRefusal(CudaStatus.INVALID_HANDLE, name + " event: never recorded");
    }
    return op;
  }
}
