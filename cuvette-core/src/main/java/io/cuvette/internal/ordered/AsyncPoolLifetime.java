package io.cuvette.internal.ordered;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.lifetime.Lifetime;
import io.cuvette.internal.session.Session;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * The end of an {@code AsyncMemoryPool}: its pools are let go, and those made for it destroyed with
 * their last memory. It does not keep the object reachable. Thread-safe.
 */
public final class AsyncPoolLifetime extends Lifetime {
  private final Session session;
  private final AtomicReferenceArray<@Nullable AsyncDevicePool> pools;
  private final String text;
  private final boolean owns;
  private final Runnable end = this::close;

  /**
   * The end of an object with these pools.
   *
   * @param owns whether pools are made for it: replacing an allocator that has none is no leak
   */
  public AsyncPoolLifetime(
      Object of,
      Session session,
      AtomicReferenceArray<@Nullable AsyncDevicePool> pools,
      boolean owns) {
    super(of, session.leaks().queue, session.leaks().site());
    this.session = session;
    this.pools = pools;
    this.owns = owns;
    this.text = of.toString();
    session.children().add(end);
    opened();
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public boolean isLeak() {
    return owns;
  }

  @Override
  public void release() {
    Failures failures = new Failures();
    for (int id = 0; id < pools.length(); id++) {
      AsyncDevicePool pool = pools.get(id);
      if (pool != null) {
        failures.run(pool.pool::close);
      }
    }
    session.children().remove(end);
    failures.throwFirst();
  }
}
