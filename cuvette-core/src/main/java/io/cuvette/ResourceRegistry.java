package io.cuvette;

import java.lang.ref.WeakReference;
import java.util.HashSet;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The memory resources of one {@link Cuda} that are known by a UUID, so that one pool of another
 * process is imported once. It keeps none of them reachable. Thread-safe.
 */
final class ResourceRegistry {
  private final ConcurrentHashMap<UUID, WeakReference<DriverPoolResource>> known =
      new ConcurrentHashMap<>();

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();

  /** What some thread asks the driver for; the others wait, for a host pool cannot come twice. */
  private final Set<UUID> importing = new HashSet<>();

  /** Does something while no other thread does it with the same UUID. */
  <R> R alone(UUID uuid, Supplier<R> work) {
    begin(uuid);
    try {
      return work.get();
    } finally {
      end(uuid);
    }
  }

  private void begin(UUID uuid) {
    lock.lock();
    try {
      while (!importing.add(uuid)) {
        changed.awaitUninterruptibly();
      }
    } finally {
      lock.unlock();
    }
  }

  private void end(UUID uuid) {
    lock.lock();
    try {
      importing.remove(uuid);
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** The open resource with a UUID; null if there is none. */
  @Nullable DriverPoolResource find(UUID uuid) {
    return open(known.get(uuid));
  }

  /**
   * The resource with a UUID, which is the given one if there was none.
   *
   * @throws IllegalStateException if the given one was closed meanwhile
   */
  DriverPoolResource register(UUID uuid, DriverPoolResource resource) {
    known.values().removeIf(entry -> open(entry) == null);
    while (!resource.isClosed()) {
      var registered =
          known.compute(
              uuid, (key, old) -> open(old) == null ? new WeakReference<>(resource) : old);
      DriverPoolResource found = open(registered);
      if (found != null) {
        return found;
      } // else that one was closed or collected just now
    }
    throw new IllegalStateException(resource + " is closed");
  }

  /** The resource of one kind with a UUID. */
  <R extends DriverPoolResource> R get(UUID uuid, Class<R> type) {
    DriverPoolResource found = find(uuid);
    if (found == null) {
      throw new NoSuchElementException(
          "uuid: no %s is registered under %s; import it with fromAllocationHandle"
              .formatted(type.getSimpleName(), uuid));
    }
    return as(found, uuid, type);
  }

  static <R extends DriverPoolResource> R as(DriverPoolResource found, UUID uuid, Class<R> type) {
    if (!type.isInstance(found)) {
      throw new IllegalArgumentException(
          "uuid: %s is registered for %s (expected: a %s)"
              .formatted(uuid, found, type.getSimpleName()));
    }
    return type.cast(found);
  }

  private static @Nullable DriverPoolResource open(
      @Nullable WeakReference<DriverPoolResource> entry) {
    DriverPoolResource resource = entry == null ? null : entry.get();
    return resource == null || resource.isClosed() ? null : resource;
  }
}
