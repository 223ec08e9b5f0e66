package io.cuvette;

import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.internal.driverpool.DriverPool;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The devices other than its own that can access the memory of a pool; queries the driver each
 * time, and changes it with one call at most. A pool is left without peers before it is destroyed:
 * the driver gives a recycled handle the access its predecessor had. Thread-safe.
 */
final class PoolPeers extends LiveSet<CudaDevice> {
  private final DriverPool pool;
  private final CudaDevice owner;

  @SuppressWarnings("UnusedVariable") // holding it is its use
  private final Object resource;

  /**
   * The peers of a pool.
   *
   * @param resource closes the pool when it is not reachable any more
   */
  PoolPeers(DriverPool pool, CudaDevice owner, Object resource) {
    this.pool = pool;
    this.owner = owner;
    this.resource = resource;
  }

  @Override
  List<CudaDevice> now() {
    return others().filter(this::hasAccess).toList();
  }

  @Override
  public boolean contains(@Nullable Object device) {
    return device instanceof CudaDevice peer
        && peer.core().session() == pool.session()
        && !peer.equals(owner)
        && hasAccess(peer);
  }

  /** Others may have given access only for reading. */
  @Override
  List<CudaDevice> traces() {
    return others().filter(device -> access(device) != MemAccessFlags.NONE).toList();
  }

  /** Not the owner; a device that cannot reach the memory is refused. */
  @Override
  boolean canHave(CudaDevice device) {
    if (owner.equals(device)) {
      return false;
    }
    if (device.core().session() != pool.session()) {
      throw new IllegalArgumentException(
          "peer: %s of another Cuda (expected: of the same as %s)".formatted(device, owner));
    }
    if (!device.canAccess(owner)) {
      throw new IllegalArgumentException(
          "peer: %s cannot access the memory of %s (expected: one for which canAccess is true)"
              .formatted(device, owner));
    }
    return true;
  }

  @Override
  void change(List<CudaDevice> out, List<CudaDevice> in) {
    List<CudaDevice> all = Stream.concat(out.stream(), in.stream()).toList();
    int[] access = new int[all.size()];
    Arrays.fill(access, 0, out.size(), MemAccessFlags.NONE);
    Arrays.fill(access, out.size(), access.length, MemAccessFlags.READ_WRITE);
    pool.setAccess(all.stream().map(CudaDevice::core).toList(), access);
  }

  private Stream<CudaDevice> others() {
    pool.checkOpen(); // with one device there is no query
    return owner.cuda().devices().stream().filter(device -> !device.equals(owner));
  }

  private boolean hasAccess(CudaDevice device) {
    return access(device) == MemAccessFlags.READ_WRITE;
  }

  private int access(CudaDevice device) {
    return (int)
        pool.ask(driver ->
            driver.pools().memPoolGetAccess(pool.handle(), MemLocationType.DEVICE, device.id()));
  }
}
