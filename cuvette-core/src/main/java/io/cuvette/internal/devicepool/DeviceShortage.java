package io.cuvette.internal.devicepool;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.pool.Shortage;
import io.cuvette.internal.streamcache.BlockCache;
import io.cuvette.internal.streamcache.Request;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** What is done about an allocation that one pool on one device has no memory for. */
public final class DeviceShortage extends Shortage<Face> {
  private final DevicePool devicePool;
  private final Request request;

  /** What the driver had free when upstream refused. */
  private long driverFree;

  public DeviceShortage(DevicePool devicePool, Request request) {
    super(devicePool.pool.session().leaks(), request.refusals());
    this.devicePool = devicePool;
    this.request = request;
    noteRefusal();
  }

  @Override
  public Face inTurn(Supplier<Face> steps) {
    return devicePool.turns().take(steps);
  }

  @Override
  public boolean isBeyondLimit() {
    return request.rounded() > devicePool.limitBytes();
  }

  /** Upstream is tried again once the driver has more than it had at the refusal. */
  @Override
  public @Nullable Face search() {
    Refusals refusals = request.refusals();
    if (!refusals.isWorthAsking() && DirectMemory.driverFree(devicePool.device) > driverFree) {
      refusals.retry();
    }
    Face found = devicePool.search(request);
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

  @Override
  public long releaseCached() {
    boolean limited = request.rounded() > devicePool.held.room();
    long released = devicePool.freeAllBlocks(null);
    return limited
        ? released
        : released + devicePool.pool.streams().relief().releaseCached(devicePool.device);
  }

  @Override
  public boolean pressure() {
    return devicePool.pool.pressure(devicePool.device, request.rounded());
  }

  @Override
  public @Nullable Face awaitOnce() {
    for (BlockCache cache : devicePool.busyCaches(request.rounded())) {
      cache.awaitFrees();
      Face found = search();
      if (found != null) {
        return found;
      }
    }
    devicePool.awaitOthers(request.rounded());
    return searchAndRelease();
  }

  @Override
  public boolean mayHave() {
    return devicePool.mayHave(request.rounded());
  }

  @Override
  public long takes() {
    return devicePool.takes();
  }

  @Override
  public boolean hasForgotten() {
    return devicePool.hasForgotten() || devicePool.pool.streams().relief().hasForgottenPools();
  }

  @Override
  public OutOfDeviceMemoryException outOfMemory(RecoveryStep step) {
    return devicePool.outOfMemory(request, step);
  }
}
