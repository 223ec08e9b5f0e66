package io.cuvette;

import org.jspecify.annotations.Nullable;

/**
 * What a pool does before it says that memory is out: one step after the other, searching again
 * after each, and one thread after the other. Every step is bounded; no lock is held. Confined to
 * the allocating thread.
 */
final class Recovery {
  /** How long other threads may be faster, again and again. */
  private static final long PATIENCE_NANOS = 2_000_000_000;

  private final DevicePool devicePool;
  private final Request request;

  /** What the driver had free when upstream refused. */
  private long driverFree;

  Recovery(DevicePool devicePool, Request request) {
    this.devicePool = devicePool;
    this.request = request;
  }

  BufferBase run() {
    if (request.rounded() > devicePool.limitBytes()) {
      throw devicePool.outOfMemory(request, RecoveryStep.LIMIT);
    }
    return devicePool.turns().take(this::tryAll);
  }

  private BufferBase tryAll() {
    noteRefusal();
    BufferBase found = search();
    if (found == null) {
      found = release();
    }
    if (found == null && devicePool.pool.pressure(devicePool.device, request.rounded())) {
      request.refusals().retry();
      found = searchAndRelease();
    }
    if (found == null) {
      found = await();
    }
    if (found == null) {
      found = reclaim();
    }
    if (found == null) {
      throw devicePool.outOfMemory(request, RecoveryStep.RECLAIM);
    }
    return found;
  }

  /** Upstream is asked again once the driver has more than it had at the refusal. */
  private @Nullable BufferBase search() {
    Refusals refusals = request.refusals();
    boolean asks = refusals.isWorthAsking();
    if (!asks && DirectMemory.driverFree(devicePool.device) > driverFree) {
      refusals.retry();
    }
    BufferBase found = devicePool.search(request);
    if (found == null) {
      noteRefusal();
    }
    return found;
  }

  private void noteRefusal() {
    if (!request.refusals().isWorthAsking()) {
      driverFree = DirectMemory.driverFree(devicePool.device);
    }
  }

  private @Nullable BufferBase release() {
    boolean limited = request.rounded() > devicePool.held().room();
    if (devicePool.pool.cuda().owned().releaseCached(devicePool, !limited) > 0) {
      request.refusals().retry();
    }
    return search();
  }

  private @Nullable BufferBase searchAndRelease() {
    BufferBase found = search();
    return found != null ? found : release();
  }

  /** Waits for others, again if other threads took what there was, and there is more. */
  private @Nullable BufferBase await() {
    long start = System.nanoTime();
    BufferBase found;
    boolean others;
    do {
      long before = devicePool.allocations();
      found = awaitOnce();
      others =
          found == null
              && devicePool.mayHave(request.rounded())
              && devicePool.allocations() != before
              && System.nanoTime() - start < PATIENCE_NANOS;
    } while (others);
    return found;
  }

  private @Nullable BufferBase awaitOnce() {
    for (StreamState stream : devicePool.busyStreams(request.rounded())) {
      stream.await();
      BufferBase found = search();
      if (found != null) {
        return found;
      }
    }
    devicePool.awaitOthers(request.rounded());
    return searchAndRelease();
  }

  private @Nullable BufferBase reclaim() {
    return Reclaim.search(
        devicePool.pool.cuda().leaks(),
        devicePool::hasForgotten,
        () -> {
          request.refusals().retry();
          return await();
        });
  }
}
