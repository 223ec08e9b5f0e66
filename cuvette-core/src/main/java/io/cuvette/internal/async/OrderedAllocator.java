package io.cuvette.internal.async;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.driverpool.AttributesOfPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.OrderedMemory;
import org.jspecify.annotations.Nullable;

/**
 * Takes buffers of one kind from one pool of the driver. When the pool is out of memory, it tries
 * what may help, one step after the other, and allocates again after each. Thread-safe.
 */
public final class OrderedAllocator {
  private final DriverPool pool;
  private final OrderedMemory memory;
  private final Faces faces;

  public OrderedAllocator(DriverPool pool, Faces faces) {
    this.pool = pool;
    this.memory = pool.memory();
    this.faces = faces;
  }

  public Face allocate(long bytes, long rounded, OpenStream stream) {
    Face idle = reuse(bytes, rounded, stream);
    return idle != null ? idle : allocateNew(bytes, rounded, stream);
  }

  /**
   * A buffer that needs no memory of the driver: idle memory, or none; null if there is no such.
   */
  public @Nullable Face reuse(long bytes, long rounded, OpenStream stream) {
    Checks.notNegative("bytes", bytes);
    stream.checkOf(pool.session());
    pool.enter();
    try {
      if (bytes == 0) {
        return DirectMemory.empty(faces, stream);
      }
      // What is idle was used before the capture, which its launches may not come after.
      return stream.allocatesFor() == null ? memory.reuse(faces, bytes, rounded, stream) : null;
    } finally {
      pool.leave();
    }
  }

  /** A buffer of memory that the driver gives; what {@link #reuse} checks is checked. */
  public Face allocateNew(long bytes, long rounded, OpenStream stream) {
    memory.settle();
    Refusals refusals = new Refusals();
    Face found = tryOnce(bytes, rounded, stream, refusals);
    return found != null
        ? found
        : new OrderedShortage(
                pool.pools(),
                stream,
                memory,
                () -> pool.trimTo(0),
                refusals,
                () -> tryOnce(bytes, rounded, stream, refusals),
                () -> outOfMemory(bytes, rounded, stream, Long.MAX_VALUE))
            .run();
  }

  private @Nullable Face tryOnce(long bytes, long rounded, OpenStream stream, Refusals refusals) {
    pool.enter();
    try {
      return ask(bytes, rounded, stream, refusals);
    } finally {
      pool.leave();
    }
  }

  private @Nullable Face ask(long bytes, long rounded, OpenStream stream, Refusals refusals) {
    CudaDriver driver = stream.hold();
    try {
      return new OrderedRequest(
              stream,
              in ->
                  driver
                      .ordered()
                      .memAllocFromPoolAsync(stream.on().id(), rounded, pool.handle(), in))
          .make(memory, faces, bytes, rounded);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      refusals.add(e);
      return null;
    } finally {
      stream.unhold();
    }
  }

  public OutOfDeviceMemoryException outOfMemory(
      long bytes, long rounded, OpenStream stream, long limitBytes) {
    AttributesOfPool now = new AttributesOfPool(pool);
    long live = memory.liveBytes();
    return OrderedFailures.outOfMemory(
        "allocate(bytes=%d, stream=%s) from %s with %d bytes live"
            .formatted(bytes, stream, pool, live),
        stream.on(),
        bytes,
        rounded,
        now::reserved,
        now::used,
        limitBytes,
        live);
  }
}
