package io.cuvette.sim.internal.queue;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** One simulated device with its context. Guarded by the driver's lock. */
public final class SimDevice {
  public final int index;

  /** The most queues of the hardware that there are. */
  private static final int MOST_QUEUES = 32;

  /** The queues of the hardware; none if each stream has its own. */
  private final List<SimQueue> shared;

  private final int queueLength;

  /** The number of streams that have one of them. */
  private long queued;

  private final BitSet peers = new BitSet();
  private final SimStream legacy;

  /** Streams with queued work. */
  private final Set<SimStream> active = new LinkedHashSet<>();

  /** Blocking streams with work queued since the legacy stream last waited for them. */
  private final Set<SimStream> unjoined = new LinkedHashSet<>();

  private @Nullable SimRefusal failure;
  private long lastEndNanos;

  /** Creates a device whose streams share a number of queues; with 0 each has its own. */
  public SimDevice(int index, long legacyStreamId, int queues, int queueLength) {
    this.index = index;
    this.queueLength = queueLength;
    this.shared = new ArrayList<>(queues);
    for (int i = 0; i < queues; i++) {
      String name = "queue %d of %d of device %d".formatted(i, queues, index);
      shared.add(new SimQueue(-(index * MOST_QUEUES + i + 1L), name, queueLength));
    }
    this.legacy = new SimStream(this, legacyStreamId, 0, 0);
  }

  /** The queue of a new stream: in turn one of those that are shared, or one of its own. */
  SimQueue queueOf(SimStream stream) {
    if ((stream.flags & SimStream.HIDDEN) != 0) {
      return new SimQueue(stream.id, "a queue of a graph", Integer.MAX_VALUE);
    }
    if (shared.isEmpty()) {
      return new SimQueue(stream.id, "the queue of a stream", queueLength);
    }
    return shared.get((int) (queued++ % shared.size()));
  }

  /** The identity, which is the same for the device of this number of all simulated drivers. */
  public UUID uuid() {
    String name = "cuvette simulated device " + index;
    return UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.US_ASCII));
  }

  public SimStream legacy() {
    return legacy;
  }

  public boolean hasPeer(SimDevice peer) {
    return peers.get(peer.index);
  }

  public void enablePeer(SimDevice peer) {
    if (hasPeer(peer)) {
      throw new SimRefusal(
          CudaStatus.PEER_ACCESS_ALREADY_ENABLED, "from device " + index + " to " + peer.index);
    }
    peers.set(peer.index);
  }

  public void disablePeer(SimDevice peer) {
    if (!hasPeer(peer)) {
      throw new SimRefusal(
          CudaStatus.PEER_ACCESS_NOT_ENABLED, "from device " + index + " to " + peer.index);
    }
    peers.clear(peer.index);
  }

  /** A failure of the device is for good: every later call that needs the device reports it. */
  public void checkWorks() {
    if (failure != null) {
      throw failure;
    }
  }

  public void fail(SimRefusal cause) {
    failure = failure == null ? cause : failure;
  }

  public void added(SimStream stream) {
    if (stream.pending() == 1) {
      active.add(stream);
    }
    if (stream.isBlocking()) {
      unjoined.add(stream);
    }
  }

  public void removed(SimStream stream) {
    lastEndNanos = Math.max(lastEndNanos, stream.nanos);
    if (stream.pending() == 0) {
      active.remove(stream);
      unjoined.remove(stream);
    }
  }

  /** The ends of the blocking streams' work that the legacy stream does not wait for yet. */
  public List<SimOp> takeBlockingEnds() {
    List<SimOp> ends = new ArrayList<>(unjoined.size());
    for (SimStream stream : unjoined) {
      SimOp end = stream.pendingTail();
      if (end != null) {
        ends.add(end);
      }
    }
    unjoined.clear();
    return ends;
  }

  /** Whether there are blocking streams with work that the legacy stream does not wait for yet. */
  public boolean hasBlockingEnds() {
    return !unjoined.isEmpty();
  }

  /** The last operation of each stream with queued work. */
  public List<SimOp> pendingTails() {
    List<SimOp> tails = new ArrayList<>(active.size());
    for (SimStream stream : active) {
      tails.add(Objects.requireNonNull(stream.pendingTail()));
    }
    return tails;
  }

  /** The queues of these streams. */
  public List<SimQueue> activeQueues() {
    return active.stream().map(stream -> stream.queue).distinct().toList();
  }

  /** When the last finished operation ended, in simulated time. */
  public long lastEndNanos() {
    return lastEndNanos;
  }
}
