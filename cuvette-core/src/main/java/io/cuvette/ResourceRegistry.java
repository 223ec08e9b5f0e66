package io.cuvette;

import java.lang.ref.WeakReference;
import java.util.NoSuchElementException;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The memory resources of one {@link Cuda} that are known by a UUID, so that one pool of another
 * process is imported once. It keeps none of them reachable. Thread-safe.
 */
final class ResourceRegistry {
  private final ConcurrentHashMap<UUID, WeakReference<DriverPoolResource>> known =
      new ConcurrentHashMap<>();

  /** The open resource with a UUID; null if there is none. */
  @Nullable DriverPoolResource find(UUID uuid) {
    return open(known.get(uuid));
  }

  /** The resource with a UUID, which is the given one if there was none. */
  DriverPoolResource register(UUID uuid, DriverPoolResource resource) {
    known.values().removeIf(entry -> open(entry) == null);
    var registered =
        known.compute(uuid, (key, old) -> open(old) == null ? new WeakReference<>(resource) : old);
    DriverPoolResource found = open(registered);
    return found == null ? register(uuid, resource) : found; // was closed or collected just now
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
