package io.cuvette.internal.fence;

import io.cuvette.internal.session.Device;
import java.util.Collection;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The markers of streams that were closed before their work was done. Nobody else may ever ask
 * whether it is, so that whoever makes, closes or waits for a stream looks at some of them: a done
 * one goes, and the number of others that are looked at is small. Thread-safe.
 */
public final class EndedStreams {
  /** How many are not done before a look ends. */
  private static final int MOST_BUSY = 2;

  /** How many are destroyed in passing: more than a stream adds, with the marks of its clock. */
  private static final int MOST_DONE = 24;

  private final ConcurrentLinkedQueue<WorkMarker> markers = new ConcurrentLinkedQueue<>();

  public void add(WorkMarker marker) {
    markers.add(marker);
  }

  /** Adds the markers of a device to others. */
  public void addTo(Collection<Fence> others, Device device) {
    markers.stream().filter(marker -> marker.on() == device).forEach(others::add);
  }

  /** Looks at a few, for a caller that does something short; a failing call is thrown. */
  public void poll() {
    poll(MOST_DONE);
  }

  /** Looks at all that are done, for a caller that has waited. */
  public void pollAll() {
    poll(Integer.MAX_VALUE);
  }

  private void poll(int mostDone) {
    int busy = 0;
    for (int done = 0; done < mostDone && busy < MOST_BUSY; ) {
      WorkMarker marker = markers.poll();
      if (marker == null) {
        return;
      }
      boolean isDone = false;
      try {
        isDone = marker.isDone();
      } finally {
        if (isDone) {
          done++;
        } else {
          markers.add(marker);
          busy++;
        }
      }
    }
  }
}
