package io.cuvette.sim.internal.pool;

import io.cuvette.sim.internal.base.Extent;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Bytes of a pool that a queued free releases. Streams that are ordered behind the free may have
 * them at once. Guarded by the driver's lock.
 */
public final class PoolFree {
  private final SimStream stream;

  /** For each stream, the first operation known to come after the free. */
  private final Map<SimStream, Long> firstAfter = new HashMap<>();

  private final Extent place;
  private @Nullable SimOp op;
  private long byteSize;

  public PoolFree(SimStream stream, Extent place) {
    this.stream = stream;
    this.place = place;
    this.byteSize = place.byteSize();
  }

  /** Where the bytes are, also those that were allocated again. */
  public Extent place() {
    return place;
  }

  public void queued(SimOp free) {
    op = free;
    firstAfter.put(stream, free.number());
  }

  /** The operation that frees. */
  public SimOp op() {
    return Objects.requireNonNull(op);
  }

  public boolean isDone() {
    return op != null && op.isDone();
  }

  public long streamId() {
    return stream.id;
  }

  /** What is left of the bytes. */
  public long byteSize() {
    return byteSize;
  }

  /** Some of the bytes were allocated again; returns how many are left. */
  public long take(long bytes) {
    byteSize -= bytes;
    return byteSize;
  }

  /** Learns from a queued operation that waits for one that comes after the free. */
  public void ordered(SimOp waiting, SimOp dependency) {
    if (isBefore(dependency.stream, dependency.number())) {
      firstAfter.putIfAbsent(waiting.stream, waiting.number());
    }
  }

  /** Whether an operation of a stream comes after the free, whatever the seed. */
  public boolean isBefore(SimStream other, long number) {
    Long first = firstAfter.get(other);
    return (first != null && first <= number) || isOrderedByLegacy(other);
  }

  /** Whether events order what a stream gets next behind the free. */
  public boolean isOrdered(SimStream other) {
    return isBefore(other, Long.MAX_VALUE);
  }

  public boolean isOn(SimStream other) {
    return stream == other;
  }

  public boolean isOn(SimDevice device) {
    return stream.device == device;
  }

  private boolean isOrderedByLegacy(SimStream other) {
    return stream.device == other.device
        && ((stream.isLegacy() && other.isBlocking()) || (stream.isBlocking() && other.isLegacy()));
  }
}
