package io.cuvette.internal.stream;

import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.lifetime.Lifetime;

/**
 * The end of the object that users have of a {@link CachingPool}: by {@code close()}, or by the
 * collector when it is forgotten. It does not keep the object reachable; nor do buffers of the
 * pool, whose memory goes back to upstream when they are closed. Thread-safe.
 */
public final class PoolLifetime extends Lifetime {
  private final CachingPool pool;
  public final Runnable endLent;
  public final Runnable destroy;
  private volatile long heldAtEnd;

  public PoolLifetime(Object of, CachingPool pool, LeakTracker leaks) {
    super(of, leaks.queue, leaks.site());
    this.pool = pool;
    this.endLent = pool::endLent;
    this.destroy = pool::destroy;
  }

  @Override
  public String describe() {
    return pool.toString();
  }

  /** What it held when it was closed. */
  @Override
  public long bytes() {
    return heldAtEnd;
  }

  @Override
  public void release() {
    heldAtEnd = pool.heldBytes();
    pool.shut();
  }
}
