package io.cuvette;

import org.jspecify.annotations.Nullable;

/**
 * What a pool does before it says that memory is out: one step after the other, searching again
 * after each. Every step is bounded; no lock is held. Confined to the allocating thread.
 */
final class Recovery {
  private final DevicePool devicePool;
  private final PoolArena arena;
  private final long bytes;
  private final long rounded;
  private final CudaStream stream;

  Recovery(DevicePool devicePool, PoolArena arena, long bytes, long rounded, CudaStream stream) {
    this.devicePool = devicePool;
    this.arena = arena;
    this.bytes = bytes;
    this.rounded = rounded;
    this.stream = stream;
  }

  BufferBase run() {
    if (rounded > devicePool.limitBytes()) {
      throw devicePool.outOfMemory(arena, bytes, rounded, RecoveryStep.LIMIT);
    }
    BufferBase found = search();
    if (found == null) {
      found = release();
    }
    if (found == null && devicePool.pool.pressure(devicePool.device, rounded)) {
      found = searchAndRelease();
    }
    if (found == null) {
      devicePool.awaitOthers(rounded);
      found = searchAndRelease();
    }
    if (found == null) {
      Reclaim.collect(devicePool.pool.cuda().leaks());
      found = searchAndRelease();
    }
    if (found == null) {
      throw devicePool.outOfMemory(arena, bytes, rounded, RecoveryStep.RECLAIM);
    }
    return found;
  }

  private @Nullable BufferBase search() {
    devicePool.settle();
    BufferBase found = arena.take(bytes, rounded, stream);
    if (found == null) {
      found = devicePool.takeIdle(arena, bytes, rounded, stream);
    }
    return found != null ? found : devicePool.grow(arena, bytes, rounded, stream);
  }

  private @Nullable BufferBase release() {
    boolean limited = rounded > devicePool.limitBytes() - devicePool.heldBytes();
    devicePool.pool.cuda().owned().releaseCached(devicePool, !limited);
    return search();
  }

  private @Nullable BufferBase searchAndRelease() {
    BufferBase found = search();
    return found != null ? found : release();
  }
}
