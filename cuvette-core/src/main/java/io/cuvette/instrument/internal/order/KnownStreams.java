package io.cuvette.instrument.internal.order;

import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import io.cuvette.instrument.internal.report.Handles;
import org.jspecify.annotations.Nullable;

/**
 * What the sanitizer knows about streams, events, graphs, and the order of their work. Not
 * thread-safe.
 */
public final class KnownStreams {
  public final HappensBefore order = new HappensBefore();
  public final Handles<Lane> streams = new Handles<>("stream");
  public final Handles<EventMark> events = new Handles<>("event");
  public final Handles<Boolean> graphs = new Handles<>("graph");
  public final Handles<Boolean> executables = new Handles<>("executable graph");

  /** With whether their memory is a device's alone, as far as is known. */
  public final Handles<Boolean> pools = new Handles<>("pool");

  /**
   * The work before records that other processes can wait for. What they record afterwards may come
   * behind it, which is not known here: it counts as if it did, so that fewer mistakes are found,
   * never too many.
   */
  private final Clock shown = new Clock();

  /**
   * The stream of a handle; null, and a finding, if it was destroyed. A handle made elsewhere is a
   * finding the first time; from then on it is taken for a stream that the default stream waits
   * for.
   */
  public @Nullable Lane lane(int device, long handle, CallTrace here, Findings findings) {
    if (HappensBefore.isStandard(handle)) {
      return order.standard(device, handle);
    }
    Lane lane = streams.use(handle, here, findings);
    if (lane == null && !streams.isDead(handle)) {
      lane = create(device, handle, true, null);
    }
    return lane;
  }

  public Lane create(int device, long handle, boolean blocking, @Nullable CallTrace here) {
    Lane lane = order.create(device, "stream 0x%x".formatted(handle), blocking);
    streams.add(handle, lane, here);
    return lane;
  }

  /**
   * Checks the handle of a pool; one made elsewhere is a finding the first time. Whether its memory
   * is a device's alone.
   */
  public boolean pool(long handle, CallTrace here, Findings findings) {
    Boolean onDevice = pools.use(handle, here, findings);
    if (onDevice == null && !pools.isDead(handle)) {
      pools.add(handle, false, null);
    }
    return onDevice != null && onDevice;
  }

  /** Checks an executable graph; one made elsewhere is used unseen. */
  public void checkLive(long executable, CallTrace here, Findings findings) {
    if (executables.isDead(executable)) {
      Boolean _ = executables.use(executable, here, findings);
    }
  }

  /** Learns of a pool that the driver named; it need not be one of the program. */
  public void named(long handle, boolean onDevice) {
    if (!pools.isLive(handle)) {
      pools.add(handle, onDevice, null);
    }
  }

  /** The work that is done once the stream has nothing left to do. */
  public Clock workOf(@Nullable Lane lane) {
    if (lane == null || lane.capture() != null) {
      return new Clock();
    }
    return lane == order.standard(lane.device, 0) ? order.turn(lane).work() : lane.known().copy();
  }

  /** The work that is done once the event is. */
  public Clock workBefore(@Nullable EventMark event) {
    return event == null ? new Clock() : event.clock().copy();
  }

  /** Notes that an event was recorded behind work. */
  public void record(EventMark event, Lane lane, Clock work) {
    event.record(lane.capture() == null ? work : new Clock(), lane.capture());
    if (event.shared) {
      shown.merge(event.clock());
    }
  }

  /** Makes a stream wait for an event, or, if the event is not known, for everything. */
  public void await(Lane lane, @Nullable EventMark event) {
    if (event == null) {
      lane.seen.merge(order.everything());
    } else if (event.capture() != null) {
      lane.join(event.capture());
    } else {
      lane.seen.merge(event.clock());
      if (event.shared) {
        lane.seen.merge(shown);
      }
    }
  }

  public void beginCapture(@Nullable Lane lane) {
    if (lane != null) {
      lane.join(new KnownCapture());
    }
  }

  public void endCapture(@Nullable Lane lane) {
    KnownCapture capture = lane == null ? null : lane.capture();
    if (capture != null) {
      capture.end();
    }
  }

  public void leaks(Findings findings) {
    streams.leaks(findings);
    events.leaks(findings);
    graphs.leaks(findings);
    executables.leaks(findings);
    pools.leaks(findings);
  }
}
