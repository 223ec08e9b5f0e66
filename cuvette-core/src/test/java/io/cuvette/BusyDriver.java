package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingStreams;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Reports streams as busy for as long as a test sets, and events as complete once their stream is
 * not. A wait for an event returns at once. Thread-safe.
 */
final class BusyDriver extends ForwardingDriver {
  private final Set<Long> busy = new HashSet<>();
  private final Map<Long, Long> events = new HashMap<>();
  private final Set<Long> reached = new HashSet<>();
  private @Nullable Error error;
  private @Nullable CudaException queryFailure;
  private int recordsBefore;
  private @Nullable Runnable atQuery;
  private int refusals;
  private int waits;

  BusyDriver(CudaDriver delegate) {
    super(delegate);
  }

  /** Has the work of a stream go on until {@link #finish}. */
  synchronized void begin(CudaStream stream) {
    busy.add(stream.state.handle);
    stream.state.calm.disturb();
  }

  synchronized void finish(CudaStream stream) {
    busy.remove(stream.state.handle);
  }

  /** The next records of an event after some are refused. */
  synchronized void refuse(int count) {
    refusals = count;
  }

  /** There is no heap for a record of an event after some more. */
  synchronized void failAfter(int records, Error failure) {
    recordsBefore = records;
    error = failure;
  }

  /** What the next question about an event does first, such as to fail. */
  synchronized void atNextQuery(Runnable action) {
    atQuery = action;
  }

  private synchronized @Nullable Runnable takeAtQuery() {
    Runnable action = atQuery;
    atQuery = null;
    return action;
  }

  /** Has the next question about a stream fail. */
  synchronized void failNextQuery(CudaException failure) {
    queryFailure = failure;
  }

  /** How many events there are. */
  synchronized int liveEvents() {
    return events.size();
  }

  /** How often somebody waited for an event. */
  synchronized int waits() {
    return waits;
  }

  private final StreamCalls streamCalls =
      new ForwardingStreams(delegate().streams()) {
        @Override
        public boolean streamQuery(int device, long stream) {
          synchronized (BusyDriver.this) {
            CudaException failure = queryFailure;
            if (failure != null) {
              queryFailure = null;
              throw failure;
            }
            return !busy.contains(stream);
          }
        }

        // No handle is used again: a busy stream stays busy.
        @Override
        public void streamDestroy(int device, long stream) {}
      };

  @Override
  public StreamCalls streams() {
    return streamCalls;
  }

  private final EventCalls eventCalls =
      new ForwardingEvents(delegate().events()) {
        @Override
        public long eventCreate(int device, int flags) {
          synchronized (BusyDriver.this) {
            long event = super.eventCreate(device, flags);
            events.put(event, 0L);
            return event;
          }
        }

        @Override
        public void eventDestroy(int device, long event) {
          synchronized (BusyDriver.this) {
            events.remove(event);
            super.eventDestroy(device, event);
          }
        }

        @Override
        public void eventRecord(int device, long event, long stream) {
          synchronized (BusyDriver.this) {
            Error failure = error;
            if (failure != null && recordsBefore-- == 0) {
              error = null;
              throw failure;
            }
            if (refusals > 0) {
              refusals--;
              throw new CudaException(CudaStatus.INVALID_VALUE.code(), "cuEventRecord");
            }
            events.put(event, stream);
            reached.remove(event);
            super.eventRecord(device, event, stream);
          }
        }

        @Override
        public boolean eventQuery(int device, long event) {
          Runnable action = takeAtQuery();
          if (action != null) {
            action.run();
          }
          synchronized (BusyDriver.this) {
            return reached.contains(event) || !busy.contains(events.get(event));
          }
        }

        @Override
        public void eventSynchronize(int device, long event) {
          synchronized (BusyDriver.this) {
            waits++;
            reached.add(event);
          }
        }
      };

  @Override
  public EventCalls events() {
    return eventCalls;
  }
}
