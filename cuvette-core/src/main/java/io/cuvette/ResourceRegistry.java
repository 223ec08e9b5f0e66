package io.cuvette;

import io.cuvette.internal.base.OneByOne;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.lifetime.Ending;
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
 * process is imported once. It keeps none of them reachable, and knows them by their ends.
 * Thread-safe.
 */
final class ResourceRegistry {
  private final ConcurrentHashMap<UUID, List<Entry>> known = new ConcurrentHashMap<>();

  /** What some thread is importing; the others wait, for a host pool cannot come twice. */
  private final OneByOne<UUID> importing = new OneByOne<>();

  /** A resource, and its own handle, which distinguishes it from others of the same UUID. */
  private record Entry(WeakReference<Object> resource, Ending ending, PoolHandle handle) {
    @Nullable Object open() {
      Object found = resource.get();
      return ending.ended() ? null : found;
    }
  }

  /** Does something while no other thread does it with the same UUID. */
  <R> R alone(UUID uuid, Supplier<R> work) {
    return importing.alone(uuid, work);
  }

  /** The open resource of the pool of a handle that is known by a UUID; null if there is none. */
  @Nullable Object find(UUID uuid, PoolHandle handle) {
    for (Entry entry : known.getOrDefault(uuid, List.of())) {
      Object resource = entry.open();
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
   * @param ending the end of the resource
   * @param handle the resource's own
   * @throws IllegalStateException if the given one was closed meanwhile
   */
  Object register(UUID uuid, Object resource, Ending ending, PoolHandle handle) {
    while (!ending.ended()) {
      List<Entry> before = known.getOrDefault(uuid, List.of());
      Object found = find(uuid, handle);
      if (found != null) {
        return found;
      }
      List<Entry> after = new ArrayList<>(before);
      after.removeIf(entry -> entry.open() == null);
      after.add(new Entry(new WeakReference<>(resource), ending, handle));
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
  <R> R get(UUID uuid, Class<R> type) {
    List<Object> found = new ArrayList<>();
    for (Entry entry : known.getOrDefault(uuid, List.of())) {
      Object resource = entry.open();
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

  static <R> R as(Object found, UUID uuid, Class<R> type) {
    if (!type.isInstance(found)) {
      throw new IllegalArgumentException(
          "uuid: %s is registered for %s (expected: a %s)"
              .formatted(uuid, found, type.getSimpleName()));
    }
    return type.cast(found);
  }
}
