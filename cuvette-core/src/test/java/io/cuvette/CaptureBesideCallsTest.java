package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingTransfers;
import io.cuvette.internal.base.Await;
import java.lang.Thread.State;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Nobody asks the driver about a capture that begins or ends at that moment: it crashes, which the
 * simulator does not.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CaptureBesideCallsTest {
  private static final int THREADS = 4;
  private static final int CAPTURES = 300;

  private final Queue<String> met = new ConcurrentLinkedQueue<>();
  private final Queue<Long> destroyed = new ConcurrentLinkedQueue<>();

  /** Whether a capture begins or ends right now. */
  private final AtomicBoolean changes = new AtomicBoolean();

  /** How often one did. */
  private final AtomicInteger changed = new AtomicInteger();

  /** Who calls as a capture ends. */
  private volatile @Nullable Thread calling;

  /** What comes before the call of a fill. */
  private volatile Runnable duringFill = () -> {};

  /** What somebody does before a capture has ended. */
  private volatile Runnable duringEnd = () -> {};

  /** Sees calls that another thread's beginning or ending of a capture meets; of one stream. */
  private final class Watched extends ForwardingDriver {
    private final AtomicInteger asking = new AtomicInteger();
    private final CaptureCalls calls =
        new ForwardingCaptures(delegate().captures()) {
          @Override
          public void streamBeginCapture(int device, long stream, int mode) {
            begins("streamBeginCapture");
            super.streamBeginCapture(device, stream, mode);
            linger();
            changes.set(false);
          }

          @Override
          public long streamEndCapture(int device, long stream) {
            begins("streamEndCapture");
            duringEnd.run();
            long graph = super.streamEndCapture(device, stream);
            linger();
            changes.set(false);
            return graph;
          }

          @Override
          public CaptureInfo streamGetCaptureInfo(int device, long stream) {
            return asked("streamGetCaptureInfo", () -> super.streamGetCaptureInfo(device, stream));
          }

          @Override
          public int streamIsCapturing(int device, long stream) {
            return asked("streamIsCapturing", () -> super.streamIsCapturing(device, stream));
          }
        };

    private final EventCalls events =
        new ForwardingEvents(delegate().events()) {
          @Override
          public void eventDestroy(int device, long event) {
            super.eventDestroy(device, event);
            destroyed.add(event);
          }
        };

    private final TransferCalls transfers =
        new ForwardingTransfers(delegate().transfers()) {
          @Override
          public void memsetD8Async(int device, long to, byte value, long count, long stream) {
            duringFill.run();
            super.memsetD8Async(device, to, value, count, stream);
          }
        };

    Watched(CudaDriver delegate) {
      super(delegate);
    }

    @Override
    public TransferCalls transfers() {
      return transfers;
    }

    @Override
    public EventCalls events() {
      return events;
    }

    private void begins(String call) {
      changes.set(true);
      changed.incrementAndGet();
      if (asking.get() != 0) {
        met.add(call);
      }
    }

    private <T> T asked(String call, Supplier<T> question) {
      asking.incrementAndGet();
      try {
        if (changes.get()) {
          met.add(call);
        }
        linger();
        return question.get();
      } finally {
        asking.decrementAndGet();
      }
    }

    /** Long enough for others to come. */
    private static void linger() {
      for (int i = 0; i < 2_000; i++) {
        Thread.onSpinWait();
      }
    }

    @Override
    public CaptureCalls captures() {
      return calls;
    }
  }

  @Test
  void threadsThatAllocate_askAboutNoCaptureThatBeginsOrEnds() {
    AtomicBoolean isOver = new AtomicBoolean();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new));
        MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      OnThreads.run(
          THREADS,
          thread -> {
            if (thread == 0) {
              capture(stream, isOver);
            }
            while (!isOver.get()) {
              pool.allocate(1 << 10, stream).close();
            }
          });
    }
    assertThat(met).as("calls beside a change").isEmpty();
  }

  private static void capture(CudaStream stream, AtomicBoolean isOver) {
    try {
      for (int i = 0; i < CAPTURES; i++) {
        stream.beginCapture(CaptureOptions.DEFAULTS);
        stream.endCapture().close();
      }
    } finally {
      isOver.set(true);
    }
  }

  /** Whichever capture that is: which of them has the event nobody knows. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void eventThatACaptureHad_isNotDestroyedAsOneEnds(boolean wasCaptured) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new));
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      CudaEvent event = cuda.device(0).createEvent();
      stream.beginCapture(CaptureOptions.DEFAULTS);
      if (wasCaptured) {
        stream.record(event);
      }
      Thread closer = Thread.ofPlatform().unstarted(event::close);
      duringEnd =
          () -> {
            closer.start();
            Await.until(
                () -> !closer.isAlive() || (wasCaptured && closer.getState() != State.RUNNABLE));
            assertThat(destroyed).hasSize(wasCaptured ? 0 : 1);
          };
      stream.endCapture().close();
      Await.until(() -> !closer.isAlive());
      assertThat(destroyed).contains(event.handle());
    }
  }

  /** Else the driver crashes: what begins meanwhile waits until the capture has ended. */
  @ParameterizedTest
  @ValueSource(strings = {"isCapturing", "record", "waitFor", "fill", "isDone"})
  void callThatBegins_asACaptureEnds_comesAfterThat(String what) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::noting));
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = cuda.allocate(64, stream);
        CudaEvent event = cuda.device(0).createEvent()) {
      other.record(event);
      Runnable call =
          switch (what) {
            case "isCapturing" -> stream::isCapturing;
            case "record" -> () -> stream.record(event);
            case "waitFor" -> () -> stream.waitFor(event);
            case "fill" -> () -> buffer.fill((byte) 1, stream);
            default -> stream::isDone;
          };
      stream.beginCapture(CaptureOptions.DEFAULTS);
      Thread caller = Thread.ofPlatform().unstarted(call);
      calling = caller;
      stream.endCapture().close();
      Await.until(() -> !caller.isAlive());
      assertThat(met).as("about the stream, beside the end").isEmpty();
    }
  }

  /** Has the thread that calls start as a capture ends, and notes its calls until it has ended. */
  private CudaDriver noting(CudaDriver simulated) {
    return DriverProxy.of((method, arguments) -> {
      Thread caller = calling;
      if (Thread.currentThread() == caller && changes.get() && isOfStreams(method.getName())) {
        met.add(method.getName());
      }
      if (caller == null || !method.getName().equals("streamEndCapture")) {
        return DriverProxy.forward(simulated, method, arguments);
      }
      changes.set(true);
      caller.start();
      Await.until(() -> !caller.isAlive() || caller.getState() != State.RUNNABLE);
      Object graph = DriverProxy.forward(simulated, method, arguments);
      changes.set(false);
      return graph;
    });
  }

  private static boolean isOfStreams(String call) {
    return call.startsWith("stream") || call.startsWith("memset") || call.equals("eventRecord");
  }

  /** Whoever closes memory asks without holding the stream. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void question_asACaptureBeginsOrEnds_isAnsweredByWhatComesOfThat(boolean isGivenOut)
      throws Exception {
    Queue<FutureTask<Boolean>> asked = new ConcurrentLinkedQueue<>();
    AtomicReference<@Nullable CudaStream> asks = new AtomicReference<>();
    UnaryOperator<CudaDriver> asking =
        driver ->
            DriverProxy.of((method, arguments) -> {
              CudaStream stream = asks.get();
              if (stream != null && method.getName().matches("stream(Begin|End)Capture")) {
                asked.add(new FutureTask<>(EngineMemory.streamOf(stream)::isCapturing));
                Thread thread = Thread.ofPlatform().start(asked.element());
                Await.until(() -> !thread.isAlive() || thread.getState() == State.WAITING);
              }
              return DriverProxy.forward(driver, method, arguments);
            });
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(asking));
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      assertThat(isGivenOut && stream.handle() == 0).isFalse();
      asks.set(stream);
      stream.beginCapture(CaptureOptions.DEFAULTS.withMode(CaptureMode.RELAXED));
      assertThat(asked.remove().get()).as("begun").isTrue();
      stream.endCapture().close();
      assertThat(asked.remove().get()).as("ended").isFalse();
    }
  }

  /** What had begun before knew of no captures. */
  @Test
  void streamThatOthersCanCaptureFromNowOn_isSoAfterTheCallsUnderWay() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new))) {
      assertThat(Tries.oneSucceeds(() -> isExposedAfterAFill(cuda.device(0)))).isTrue();
    }
  }

  private boolean isExposedAfterAFill(CudaDevice device) {
    try (CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = device.cuda().allocate(64, stream)) {
      Thread exposing = Thread.ofPlatform().unstarted(stream::handle);
      AtomicBoolean waits = new AtomicBoolean();
      duringFill =
          () -> {
            exposing.start();
            Await.until(() -> !exposing.isAlive() || exposing.getState() == State.TIMED_WAITING);
            waits.set(exposing.isAlive());
          };
      buffer.fill((byte) 1, stream);
      Await.until(() -> !exposing.isAlive());
      return waits.get();
    }
  }

  /** For a moment, which a slow machine can miss. */
  @ParameterizedTest
  @ValueSource(strings = {"begin", "end", "end of another stream's"})
  void captureThatBeginsOrEnds_waitsForCallsUnderWay(String what) throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new));
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = cuda.allocate(64, stream)) {
      stream.beginCapture(CaptureOptions.DEFAULTS); // the first waits for more
      stream.endCapture().close();
      Callable<Boolean> waits =
          () -> {
            boolean isMet =
                switch (what) {
                  case "begin" -> meets(buffer, stream, () -> begin(stream));
                  case "end" -> {
                    begin(stream);
                    yield meets(buffer, stream, () -> end(stream));
                  }
                  default -> {
                    begin(stream);
                    other.waitFor(stream);
                    yield meets(buffer, other, () -> end(stream));
                  }
                };
            end(stream);
            return !isMet;
          };
      assertThat(Tries.oneSucceeds(waits)).as("not beside each call").isTrue();
    }
  }

  private static void begin(CudaStream stream) {
    stream.beginCapture(CaptureOptions.DEFAULTS);
  }

  /** Ends the capture if there is one, which may be invalid by then. */
  private static void end(CudaStream stream) {
    try {
      stream.endCapture().close();
    } catch (CudaException | IllegalStateException e) {
      assertThat(stream.isCapturing()).as(e.toString()).isFalse();
    }
  }

  /** Whether a capture begins or ends while another thread is about to queue work. */
  private boolean meets(Buffer buffer, CudaStream in, Runnable change) {
    Thread here = Thread.currentThread();
    AtomicBoolean entered = new AtomicBoolean();
    AtomicBoolean isMet = new AtomicBoolean();
    int before = changed.get();
    duringFill =
        () -> {
          entered.set(true);
          while (changed.get() == before && here.getState() != State.TIMED_WAITING) {
            Thread.onSpinWait();
          }
          isMet.set(changed.get() != before);
        };
    Thread filler = Thread.ofPlatform().start(() -> buffer.fill((byte) 1, in));
    while (!entered.get() && filler.isAlive()) {
      Thread.onSpinWait();
    }
    change.run();
    Await.until(() -> !filler.isAlive());
    return isMet.get();
  }
}
