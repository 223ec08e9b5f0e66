package io.cuvette;

import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Spliterator;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The devices other than its own that can access the memory of a pool; asks the driver each time. A
 * pool is left without peers before it is destroyed: the driver gives a recycled handle the access
 * its predecessor had. Thread-safe.
 */
final class PoolPeers extends AbstractSet<CudaDevice> {
  private static final int NONE = 0;
  private static final int READ_AND_WRITE = 3;

  private final DriverPool pool;
  private final CudaDevice owner;

  PoolPeers(DriverPool pool, CudaDevice owner) {
    this.pool = pool;
    this.owner = owner;
  }

  @Override
  public Iterator<CudaDevice> iterator() {
    Iterator<CudaDevice> now = now().iterator();
    return new Iterator<>() {
      private @Nullable CudaDevice last;

      @Override
      public boolean hasNext() {
        return now.hasNext();
      }

      @Override
      public CudaDevice next() {
        CudaDevice next = now.next();
        last = next;
        return next;
      }

      @Override
      public void remove() {
        if (last == null) {
          throw new IllegalStateException("remove before next");
        }
        PoolPeers.this.remove(last);
        last = null;
      }
    };
  }

  @Override
  public int size() {
    return now().size();
  }

  @Override
  public boolean contains(@Nullable Object device) {
    return device instanceof CudaDevice peer
        && peer.cuda() == pool.cuda()
        && !peer.equals(owner)
        && hasAccess(peer);
  }

  @Override
  public boolean add(CudaDevice device) {
    return addAll(List.of(device));
  }

  @Override
  public boolean addAll(Collection<? extends CudaDevice> devices) {
    devices.forEach(this::checkReachable);
    return set(
        devices.stream().distinct().filter(device -> !device.equals(owner) && !hasAccess(device)),
        READ_AND_WRITE);
  }

  @Override
  public boolean remove(@Nullable Object device) {
    return device != null && removeAll(List.of(device));
  }

  @Override
  public boolean removeAll(Collection<?> devices) {
    return set(now().stream().filter(devices::contains), NONE);
  }

  @Override
  public boolean retainAll(Collection<?> devices) {
    return set(now().stream().filter(device -> !devices.contains(device)), NONE);
  }

  @Override
  public boolean removeIf(Predicate<? super CudaDevice> filter) {
    return set(now().stream().filter(filter), NONE);
  }

  /** Takes all access, also what others gave only for reading. */
  @Override
  public void clear() {
    set(others().filter(device -> access(device) != NONE), NONE);
  }

  @Override
  public Spliterator<CudaDevice> spliterator() {
    return now().spliterator();
  }

  private List<CudaDevice> now() {
    return others().filter(this::hasAccess).toList();
  }

  private Stream<CudaDevice> others() {
    return pool.cuda().devices().stream().filter(device -> !device.equals(owner));
  }

  private boolean hasAccess(CudaDevice device) {
    return access(device) == READ_AND_WRITE;
  }

  private int access(CudaDevice device) {
    return pool.driver().memPoolGetAccess(pool.handle(), DriverPool.LOCATION_DEVICE, device.id());
  }

  private void checkReachable(CudaDevice device) {
    if (!owner.equals(device) && !device.canAccess(owner)) {
      throw new IllegalArgumentException(
          "peer: %s cannot access the memory of %s (expected: one for which canAccess is true)"
              .formatted(device, owner));
    }
  }

  private boolean set(Stream<? extends CudaDevice> devices, int access) {
    List<CudaDevice> changed = List.copyOf(devices.toList());
    if (changed.isEmpty()) {
      return false;
    }
    pool.setAccess(changed, access);
    return true;
  }
}
