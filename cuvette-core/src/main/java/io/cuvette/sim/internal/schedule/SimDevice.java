package io.cuvette.sim.internal.schedule;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** One simulated device with its context. Guarded by the driver's lock. */
public final class SimDevice {
  public final int index;

  private final BitSet peers = new BitSet();
  private final SimStream legacy;

  /** Streams with queued work. */
  private final Set<SimStream> active = new LinkedHashSet<>();

  /** Blocking streams with work queued since the legacy stream last waited for them. */
  private final Set<SimStream> unjoined = new LinkedHashSet<>();

  private @Nullable SimRefusal failure;
  private long lastEndNanos;

  public SimDevice(int index, long legacyStreamId) {
    this.index = index;
    this.legacy = new SimStream(this, legacyStreamId, 0, 0);
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
    if (stream.queue.size() == 1) {
      active.add(stream);
    }
    if (stream.isBlocking()) {
      unjoined.add(stream);
    }
  }

  public void removed(SimStream stream) {
    lastEndNanos = Math.max(lastEndNanos, stream.nanos);
    if (stream.queue.isEmpty()) {
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
      tails.add(stream.queue.getLast());
    }
    return tails;
  }

  public List<SimStream> activeStreams() {
    return List.copyOf(active);
  }

  /** When the last finished operation ended, in simulated time. */
  public long lastEndNanos() {
    return lastEndNanos;
  }
}
