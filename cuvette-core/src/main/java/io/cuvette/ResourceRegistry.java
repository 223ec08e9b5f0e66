package io.cuvette;

import io.cuvette.internal.base.OneByOne;
import io.cuvette.internal.channel.PoolHandle;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The memory resources of one {@link Cuda} that are known by a UUID, so that one pool of another
 * process is imported once. It keeps none of them reachable. Thread-safe.
 */
final class ResourceRegistry {
  private final ConcurrentHashMap<UUID, List<Entry>> known = new ConcurrentHashMap<>();

  /** What some thread asks the driver for; the others wait, for a host pool cannot come twice. */
  private final OneByOne<UUID> importing = new OneByOne<>();

  /** A resource, and its own handle, by which it is told from others of the same UUID. */
  private record Entry(WeakReference<DriverPoolResource> resource, PoolHandle handle) {
    @Nullable DriverPoolResource open() {
      DriverPoolResource found = resource.get();
      return found == null || found.isClosed() ? null : found;
    }
  }

  /** Does something while no other thread does it with the same UUID. */
  <R> R alone(UUID uuid, Supplier<R> work) {
    return importing.alone(uuid, work);
  }

  /** The open resource of the pool of a handle that is known by a UUID; null if there is none. */
  @Nullable DriverPoolResource find(UUID uuid, PoolHandle handle) {
    for (Entry entry : known.getOrDefault(uuid, List.of())) {
      DriverPoolResource resource = entry.open();
      if (resource != null && entry.handle.isSamePool(handle)) {
        return resource;
      }
    }
    return null;
  }

  /**
   * The resource of a pool that is known by a UUID, which is the given one if there was none. Other
   * pools may be known by the same UUID, which is no more than a claim.
   *
   * @param handle the resource's own
   * @throws IllegalStateException if the given one was closed meanwhile
   */
  DriverPoolResource register(UUID uuid, DriverPoolResource resource, PoolHandle handle) {
    while (!resource.isClosed()) {
      List<Entry> before = known.getOrDefault(uuid, List.of());
      DriverPoolResource found = find(uuid, handle);
      if (found != null) {
        return found;
      }
      List<Entry> after = new ArrayList<>(before);
      after.removeIf(entry -> entry.open() == null);
      after.add(new Entry(new WeakReference<>(resource), handle));
      boolean done =
          before.isEmpty()
              ? known.putIfAbsent(uuid, after) == null
              : known.replace(uuid, before, after);
      if (done) {
        known
            .values()
            .removeIf(entries -> entries.stream().allMatch(entry -> entry.open() == null));
      }
    }
    throw new IllegalStateException(resource + " is closed");
  }

  /** The resource of one kind with a UUID. */
  <R extends DriverPoolResource> R get(UUID uuid, Class<R> type) {
    List<DriverPoolResource> found = new ArrayList<>();
    for (Entry entry : known.getOrDefault(uuid, List.of())) {
      DriverPoolResource resource = entry.open();
      if (resource != null) {
        found.add(resource);
      }
    }
    if (found.isEmpty()) {
      throw new NoSuchElementException(
          "uuid: no %s is registered under %s; import it with fromAllocationHandle"
              .formatted(type.getSimpleName(), uuid));
    }
    if (found.size() > 1) {
      throw new IllegalStateException(
          "uuid: %d pools are registered under %s (expected: one; keep what fromAllocationHandle gave)"
              .formatted(found.size(), uuid));
    }
    return as(found.getFirst(), uuid, type);
  }

  static <R extends DriverPoolResource> R as(DriverPoolResource found, UUID uuid, Class<R> type) {
    if (!type.isInstance(found)) {
      throw new IllegalArgumentException(
          "uuid: %s is registered for %s (expected: a %s)"
              .formatted(uuid, found, type.getSimpleName()));
    }
    return type.cast(found);
  }
}
