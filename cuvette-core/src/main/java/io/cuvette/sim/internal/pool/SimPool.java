package io.cuvette.sim.internal.pool;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.base.Gaps;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import io.cuvette.sim.internal.share.PoolKind;
import io.cuvette.sim.internal.share.SharedPool;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** A memory pool. Guarded by the driver's lock. */
public final class SimPool {

  public final PoolKind kind;
  public final int handleTypes;
  public final PoolAccess access;
  public final boolean isDefault;

  /** The file with the memory, if other processes can import it or one of them made it. */
  public final @Nullable SharedPool shared;

  private final PoolSpace space;

  /** Bytes that are allocated, as the device is now. */
  private final HighMark used = new HighMark();

  private final PoolFrees frees = new PoolFrees();

  /** Attributes 1 to 4, at their numbers. */
  private final long[] settings = {0, 1, 1, 1, 0};

  private long handle;
  private boolean destroyed;

  /** How often it was imported and not destroyed. */
  private int imports = 1;

  public SimPool(
      PoolKind kind,
      int handleTypes,
      PoolAccess access,
      PoolSpace space,
      boolean isDefault,
      @Nullable SharedPool shared) {
    this.kind = kind;
    this.handleTypes = handleTypes;
    this.access = access;
    this.space = space;
    this.isDefault = isDefault;
    this.shared = shared;
  }

  /** Whether the pool is that of another process: nothing can be allocated from it here. */
  public boolean isImported() {
    return shared != null && shared.isImported();
  }

  public boolean isImportOf(SharedPool other) {
    return isImported() && !destroyed && Objects.requireNonNull(shared).isSameFile(other);
  }

  public void importedAgain() {
    imports++;
  }

  /** Takes one import back; true if there are others. */
  public boolean isStillImported() {
    imports--;
    return imports > 0;
  }

  /** What only the driver that made the pool answers. */
  public SimPool ofThisProcess() {
    if (isImported()) {
      throw SimRefusal.invalidValue(
          "pool: 0x%x of another process (expected: one that was made here)".formatted(handle));
    }
    return this;
  }

  public void named(long value) {
    handle = value;
  }

  /** The handle, 0 once the pool is destroyed: another pool may have it by then. */
  public long handle() {
    return destroyed ? 0 : handle;
  }

  public long attribute(int attribute) {
    return switch (attribute) {
      case MemPoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES,
          MemPoolAttribute.REUSE_ALLOW_OPPORTUNISTIC,
          MemPoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES,
          MemPoolAttribute.RELEASE_THRESHOLD ->
          settings[attribute];
      case 5 -> space.reserved.bytes();
      case 6 -> space.reserved.highest();
      case 7 -> used.bytes();
      case 8 -> used.highest();
      default ->
          throw SimRefusal.invalidValue("attribute: %d (expected: 1 to 8)".formatted(attribute));
    };
  }

  public void attribute(int attribute, long value) {
    switch (attribute) {
      case MemPoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES,
          MemPoolAttribute.REUSE_ALLOW_OPPORTUNISTIC,
          MemPoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES -> {
        check(value == 0 || value == 1, value, "0 or 1");
        settings[attribute] = value;
      }
      case MemPoolAttribute.RELEASE_THRESHOLD -> settings[attribute] = value;
      case 6 -> {
        check(value == 0, value, "0, which resets the mark");
        space.reserved.reset();
      }
      case 8 -> {
        check(value == 0, value, "0, which resets the mark");
        used.reset();
      }
      default ->
          throw SimRefusal.invalidValue(
              "attribute: %d (expected: one that can be set: 1 to 4, 6, 8)".formatted(attribute));
    }
  }

  private static void check(boolean valid, long value, String rule) {
    if (!valid) {
      throw SimRefusal.invalidValue("value: %d (expected: %s)".formatted(value, rule));
    }
  }

  /**
   * Takes bytes for an allocation on a stream: what it freed itself, what is free, what others
   * freed before, what the pool can grow by; and if there is no place for them in one piece, what
   * other streams free, for which the stream then waits.
   *
   * @param wait makes the stream wait for an operation
   */
  public Extent take(long size, SimStream stream, Consumer<SimOp> wait) {
    Predicate<PoolFree> usable = free -> isUsable(free, stream);
    Extent place = frees.find(size, free -> free.isOn(stream));
    if (place == null) {
      place = space.findWhole(size);
    }
    if (place == null) {
      place = frees.find(size, usable);
    }
    if (place == null) {
      place = space.find(frees.with(space.gaps, usable), size);
    }
    if (place == null) {
      place = waitFor(size, usable, wait);
    }
    used.add(size - frees.take(place));
    space.gaps.remove(place);
    return place;
  }

  private boolean isUsable(PoolFree free, SimStream stream) {
    return free.isOn(stream)
        || (settings[MemPoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES] == 1
            && free.isOrdered(stream))
        || (settings[MemPoolAttribute.REUSE_ALLOW_OPPORTUNISTIC] == 1 && free.isDone());
  }

  private Extent waitFor(long size, Predicate<PoolFree> usable, Consumer<SimOp> wait) {
    boolean mayWait = settings[MemPoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES] == 1;
    Gaps gaps = frees.with(space.gaps, mayWait ? _ -> true : usable);
    Extent place = mayWait ? space.find(gaps, size) : null;
    if (place == null) {
      SimRefusal refusal = outOfMemory(size);
      space.growInVain(gaps, size);
      releaseExcess();
      throw refusal;
    }
    for (PoolFree free : frees.of(place)) {
      if (!usable.test(free)) {
        wait.accept(free.op());
      }
    }
    return place;
  }

  private SimRefusal outOfMemory(long size) {
    String limit = space.limitBytes() == Long.MAX_VALUE ? "" : ", at most " + space.limitBytes();
    return new SimRefusal(
        CudaStatus.OUT_OF_MEMORY,
        "requested=%d, reserved=%d, used=%d bytes in a pool of %s%s"
            .formatted(size, space.reserved.bytes(), used.bytes(), kind, limit));
  }

  /** A free was queued. */
  public void freeing(PoolFree free) {
    frees.add(free);
  }

  /** A queued free happens now; what an allocation got of it before is not free. */
  public void freed(PoolFree free) {
    used.add(-free.byteSize());
    if (destroyed) {
      settle(other -> other == free);
      trimTo(0);
    }
  }

  /** Frees at once. */
  public void free(Extent place) {
    used.add(-place.byteSize());
    space.gaps.add(place);
    if (destroyed) {
      trimTo(0);
    }
  }

  private void settle(Predicate<PoolFree> condition) {
    frees.settle(condition).forEach(space.gaps::add);
  }

  /** Learns from a queued operation that waits for another. */
  public void ordered(SimOp waiting, SimOp dependency) {
    frees.ordered(waiting, dependency);
  }

  /** The host knows that a stream is done up to an operation. */
  public void observed(SimStream stream, long number) {
    settle(free -> free.isDone() && free.isBefore(stream, number));
  }

  /** The host knows that a device is done. */
  public void observed(SimDevice device) {
    settle(free -> free.isDone() && free.isOn(device));
  }

  /** Releases what is above the threshold. */
  public void releaseExcess() {
    space.shrinkTo(settings[MemPoolAttribute.RELEASE_THRESHOLD]);
  }

  public void trimTo(long bytesToKeep) {
    space.trimTo(bytesToKeep);
  }

  public void destroy() {
    destroyed = true;
    settle(PoolFree::isDone);
    trimTo(0);
    if (shared != null) {
      shared.close();
    }
  }

  /** Whether nothing of a destroyed pool is left. */
  public boolean isGone() {
    return destroyed && space.reserved.bytes() == 0;
  }
}
