package io.cuvette.internal.ordered;

import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The streams whose frees of memory of one pool may not be done. Thread-safe. */
public final class FreeingStreams {
  /** So many streams are remembered before the finished ones among them are forgotten. */
  private static final int LOOK_AGAIN = 32;

  private final Set<DriverStream> streams = ConcurrentHashMap.newKeySet();
  private volatile @Nullable DriverStream last;

  /** Some free is queued on a stream, which has to come to it before the pool can end. */
  public void add(DriverStream stream) {
    if (last == stream) {
      return;
    }
    if (streams.size() >= LOOK_AGAIN) {
      streams.removeIf(DriverStream::isOver);
    }
    streams.add(stream);
    last = stream;
  }

  /** What another object freed into the same pool. */
  public void addAll(FreeingStreams others) {
    streams.addAll(others.streams);
  }

  /**
   * Whether all frees that were queued are done.
   *
   * @param of the session of the pool; null if there are several pools
   */
  public boolean areDone(@Nullable Session of) {
    last = null;
    streams.removeIf(stream -> isOfAnEndedOther(stream, of) || isSettled(stream));
    return streams.isEmpty();
  }

  /**
   * Another Cuda of the process may have freed imported memory last. Once it is closed, it has
   * waited for its streams, and its driver answers no more.
   */
  private static boolean isOfAnEndedOther(DriverStream stream, @Nullable Session of) {
    return of != null && stream.session != of && stream.session.isClosed();
  }

  /**
   * Whether the frees on a stream are done and the driver has noticed. One (580) that was queried
   * whether a stream is idle has not: it keeps what an imported pool had, if that is destroyed
   * then, for good. Waiting for a stream that is idle takes no time.
   */
  private static boolean isSettled(DriverStream stream) {
    DriverStream asked = stream.markedIn(); // another, for the one of a thread that may be over
    return asked.isIdleSoon() && (asked.isClosed() || asked.ask(asked::awaitWork));
  }

  /** Waits for the frees on the streams of a device, as far as these can be queried. */
  public void await(Device device) {
    for (DriverStream stream : streams) {
      if (stream.device.equals(device)) {
        boolean _ = stream.markedIn().await();
        boolean _ = isSettled(stream); // so that the driver notices
      }
    }
  }
}
