package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingIpc;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.instrument.ForwardingTransfers;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Counts the questions and marks of events and streams. Thread-safe. */
final class OrderCallsDriver extends ForwardingDriver {
  final AtomicInteger records = new AtomicInteger();
  final AtomicInteger queries = new AtomicInteger();
  final AtomicInteger waits = new AtomicInteger();
  final AtomicInteger creates = new AtomicInteger();

  /** How many events there are. */
  final AtomicInteger live = new AtomicInteger();

  /** The event that was imported last. */
  final AtomicLong imported = new AtomicLong();

  /** The stream that an event was recorded in last. */
  final AtomicLong recordedLast = new AtomicLong();

  /** The handle that the next stream has, of one that is closed; 0 for a new one. */
  final AtomicLong nextStream = new AtomicLong();

  /** What is done first as memory is filled next. */
  final AtomicReference<@Nullable Runnable> atFill = new AtomicReference<>();

  /** What is done first as an event is recorded next. */
  final AtomicReference<@Nullable Runnable> atRecord = new AtomicReference<>();

  /** What is done right after the next record of an event, before it returns. */
  final AtomicReference<@Nullable Runnable> afterRecord = new AtomicReference<>();

  /** What is done first as an event is asked next. */
  final AtomicReference<@Nullable Runnable> atQuery = new AtomicReference<>();

  /** What is done right after the next answer about an event, before it is given. */
  final AtomicReference<@Nullable Runnable> afterQuery = new AtomicReference<>();

  /** What is done right after the next wait of a stream, before it returns. */
  final AtomicReference<@Nullable Runnable> afterWait = new AtomicReference<>();

  /** What is done first as a stream waits next. */
  final AtomicReference<@Nullable Runnable> atWait = new AtomicReference<>();

  OrderCallsDriver(CudaDriver delegate) {
    super(delegate);
  }

  void reset() {
    records.set(0);
    queries.set(0);
    waits.set(0);
    creates.set(0);
  }

  private final EventCalls eventCalls =
      new ForwardingEvents(delegate().events()) {
        @Override
        public long eventCreate(int device, int flags) {
          creates.incrementAndGet();
          long event = super.eventCreate(device, flags);
          live.incrementAndGet();
          return event;
        }

        @Override
        public void eventDestroy(int device, long event) {
          super.eventDestroy(device, event);
          live.decrementAndGet();
        }

        @Override
        public void eventRecord(int device, long event, long stream) {
          records.incrementAndGet();
          run(atRecord);
          synchronized (recordedLast) {
            super.eventRecord(device, event, stream);
            recordedLast.set(stream);
          }
          run(afterRecord);
        }

        @Override
        public boolean eventQuery(int device, long event) {
          queries.incrementAndGet();
          run(atQuery);
          boolean isDone = super.eventQuery(device, event);
          run(afterQuery);
          return isDone;
        }
      };

  @Override
  public EventCalls events() {
    return eventCalls;
  }

  private final StreamCalls streamCalls =
      new ForwardingStreams(delegate().streams()) {
        @Override
        public long streamCreateWithPriority(int device, int flags, int priority) {
          long again = nextStream.getAndSet(0);
          return again != 0 ? again : super.streamCreateWithPriority(device, flags, priority);
        }

        @Override
        public boolean streamQuery(int device, long stream) {
          queries.incrementAndGet();
          return super.streamQuery(device, stream);
        }

        @Override
        public void streamWaitEvent(int device, long stream, long event) {
          waits.incrementAndGet();
          run(atWait);
          super.streamWaitEvent(device, stream, event);
          run(afterWait);
        }
      };

  @Override
  public StreamCalls streams() {
    return streamCalls;
  }

  private final IpcCalls ipcCalls =
      new ForwardingIpc(delegate().sharing()) {
        // No other process is there: it is one of this one.
        @Override
        public long ipcOpenEventHandle(int device, byte[] handle) {
          long event = events().eventCreate(device, 2);
          imported.set(event);
          return event;
        }
      };

  @Override
  public IpcCalls sharing() {
    return ipcCalls;
  }

  private final TransferCalls transferCalls =
      new ForwardingTransfers(delegate().transfers()) {
        @Override
        public void memsetD8Async(int device, long target, byte value, long count, long stream) {
          run(atFill);
          super.memsetD8Async(device, target, value, count, stream);
        }
      };

  @Override
  public TransferCalls transfers() {
    return transferCalls;
  }

  private static void run(AtomicReference<@Nullable Runnable> once) {
    Runnable step = once.getAndSet(null);
    if (step != null) {
      step.run();
    }
  }
}
