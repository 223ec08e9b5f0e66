package io.cuvette.internal.share;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.lifetime.Lifetime;
import io.cuvette.internal.ordered.DriverPool;
import org.jspecify.annotations.Nullable;

/**
 * The end of a memory resource: nobody allocates any more, and its allocation handle is closed; the
 * pool goes with its last memory. It does not keep the resource reachable. Thread-safe.
 */
public final class ResourceLifetime extends Lifetime {
  private final DriverPool pool;
  private final @Nullable PoolSharing sharing;
  private final String text;
  private final Runnable end = this::close;

  public ResourceLifetime(Object resource, PoolSource source) {
    super(resource, source.pool().session().leaks().queue, source.pool().session().leaks().site());
    this.pool = source.pool();
    this.sharing = source.sharing();
    this.text = "%s of %s".formatted(resource.getClass().getSimpleName(), pool);
    pool.session().children().add(end);
    opened();
    if (pool.session().isClosed()) {
      close(); // nobody may look at the children any more
    }
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public void release() {
    Failures failures = new Failures();
    failures.run(pool::close);
    if (sharing != null) {
      failures.run(sharing.handle()::close);
    }
    pool.session().children().remove(end);
    failures.throwFirst();
  }
}
