package io.cuvette;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The end of a memory resource: nobody allocates any more at once, and the pool and its handle go
 * when the last buffer has. It does not keep the resource reachable. Thread-safe.
 */
final class ResourceLifetime extends Lifetime {
  private final DriverPool pool;
  private final StreamOrderedMemory memory;
  private final @Nullable PoolSharing sharing;
  private final boolean revokes;
  private final int ownerDevice;
  private final String text;
  private final Runnable end = this::endByOwner;

  /** Buffers that were imported through the pool and are open. */
  private final AtomicInteger imported = new AtomicInteger();

  private final AtomicBoolean over = new AtomicBoolean();

  /**
   * The end of a resource.
   *
   * @param revokes whether the access of devices is taken back first
   * @param ownerDevice the device that keeps its access; −1 for none
   */
  ResourceLifetime(
      DriverPoolResource resource,
      DriverPoolResource.Source source,
      StreamOrderedMemory memory,
      boolean revokes,
      int ownerDevice) {
    super(resource, source.pool().cuda().leaks().queue, source.pool().cuda().leaks().site());
    this.pool = source.pool();
    this.memory = memory;
    this.sharing = source.sharing();
    this.revokes = revokes;
    this.ownerDevice = ownerDevice;
    this.text = "%s of %s".formatted(resource.getClass().getSimpleName(), pool);
    pool.cuda().children().add(end);
  }

  DriverPool pool() {
    return pool;
  }

  /** An imported buffer keeps the pool. */
  void hold() {
    imported.incrementAndGet();
    if (pool.isClosed()) {
      drop();
      pool.checkOpen();
    }
  }

  /** The end of what {@link #hold} began. */
  void drop() {
    if (imported.decrementAndGet() == 0 && pool.isClosed()) {
      endIfUnused();
    }
  }

  @Override
  String describe() {
    return text;
  }

  @Override
  void release() {
    pool.shut();
    memory.whenEmpty(this::endIfUnused);
    memory.settle();
    try {
      endIfUnused();
    } catch (RuntimeException e) {
      if (!over.get()) {
        resume(); // the pool is still there, and closing can be tried again
      }
      throw e;
    }
  }

  private void endIfUnused() {
    if (imported.get() == 0 && memory.liveBytes() == 0 && over.compareAndSet(false, true)) {
      Failures failures = new Failures();
      end(failures);
      failures.throwFirst();
    }
  }

  /** For a Cuda that is torn down: after the imported buffers, which were made later. */
  private void endByOwner() {
    if (end()) {
      clear();
    }
    Failures failures = new Failures();
    failures.run(memory::destroy);
    pool.shut();
    if (over.compareAndSet(false, true)) {
      end(failures);
    }
    failures.throwFirst();
  }

  private void end(Failures failures) {
    if (revokes && !pool.isDestroyed()) {
      failures.run(() -> pool.revokeAccess(ownerDevice));
    }
    failures.run(pool::destroy);
    if (!pool.isDestroyed()) {
      over.set(false);
      return;
    }
    if (sharing != null) {
      failures.run(sharing.handle()::close);
    }
    pool.cuda().children().remove(end);
  }
}
