package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.instrument.TracingDriver;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.stream.DriverStream;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a stream is, in each of its states and to each thread. */
@Timeout(60)
class StreamStatesTest {
  private static final int RELAXED = 2;

  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final AtomicInteger failures = new AtomicInteger();
  private @Nullable BusyDriver made;
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::decorated));
  private final BusyDriver driver = Objects.requireNonNull(made);
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);

  private CudaDriver decorated(CudaDriver simulated) {
    made = new BusyDriver(simulated);
    return TracingDriver.of(new Failing(made), call -> calls.add(call.call()));
  }

  /** Fails the next ends of streams. */
  private final class Failing extends ForwardingDriver {
    private final StreamCalls streamCalls =
        new ForwardingStreams(delegate().streams()) {
          @Override
          public void streamDestroy(int device, long handle) {
            if (failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
              throw new CudaException(CudaStatus.NOT_PERMITTED, "cuStreamDestroy", "on purpose");
            }
            super.streamDestroy(device, handle);
          }
        };

    Failing(CudaDriver delegate) {
      super(delegate);
    }

    @Override
    public StreamCalls streams() {
      return streamCalls;
    }
  }

  @AfterEach
  void close() {
    driver.finish(stream);
    cuda.close();
  }

  private long count(String call) {
    return calls.stream().filter(each -> each.startsWith(call + "(")).count();
  }

  private static <T> T elsewhere(Callable<T> work) throws Exception {
    FutureTask<T> task = new FutureTask<>(work);
    Thread.ofPlatform().start(task);
    return task.get();
  }

  @Test
  void streamThatCanBeCapturedAtAnyMoment_isOneThatAnotherThreadHas() {
    CudaStream shared = device.createStream(StreamOptions.NON_BLOCKING);
    assertThat(shared.handle()).isNotZero();
    long others = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    CudaStream wrapped = device.wrapStream(others, this);
    Map.of(
            stream,
            false,
            shared,
            true,
            wrapped,
            true,
            device.nullStream(),
            false,
            device.legacyStream(),
            false,
            device.perThreadStream(),
            false)
        .forEach((each, expected) ->
            assertThat(each.state.canBeCaptured()).as("%s", each).isEqualTo(expected));
  }

  /** The driver would answer for that of the caller, which has the same handle. */
  @Test
  void streamOfAnotherThread_isNotAskedAbout_whateverThatOfTheCallerDoes() throws Exception {
    DriverStream theirs = elsewhere(device::perThreadStream).state;
    CudaStream own = device.perThreadStream();
    for (boolean isCaptured : new boolean[] {false, true}) {
      if (isCaptured) {
        cuda.driver().captures().streamBeginCapture(0, own.handle(), RELAXED);
      }
      assertThat(own.state.isCapturing()).isEqualTo(isCaptured);
      calls.clear();
      assertThat(theirs.isCapturing()).isFalse();
      assertThat(theirs.ask(() -> true)).isFalse();
      assertThat(theirs.capture()).isNull();
      assertThat(calls).isEmpty();
      assertThat(theirs.ending().holds()).isZero();
    }
    long graph = cuda.driver().captures().streamEndCapture(0, own.handle());
    cuda.driver().graphs().graphDestroy(graph);
  }

  /** Else a capture could begin meanwhile, which the question would spoil. */
  @Test
  void question_isAskedWhileNobodyBeginsACapture() {
    assertThat(stream.handle()).isNotZero();
    Lock ends = stream.state.capturing.ends();
    AtomicReference<Boolean> isFree = new AtomicReference<>();
    boolean answer =
        stream.state.ask(() -> {
          isFree.set(CompletableFuture.supplyAsync(() -> isFree(ends)).join());
          return true;
        });
    assertThat(answer).isTrue();
    assertThat(isFree).hasValue(false);
  }

  private static boolean isFree(Lock lock) {
    boolean isFree = lock.tryLock();
    if (isFree) {
      lock.unlock();
    }
    return isFree;
  }

  /** A thread that holds it may be about to queue what it has noted. */
  @Test
  void notedWork_isNotDone_asLongAsItsThreadHoldsTheStream() {
    StreamClock clock = stream.state.clock;
    CudaDriver _ = stream.state.hold();
    long noted = clock.now();
    try {
      clock.ask(noted);
      assertThat(clock.isDone(noted, StreamClock.NOT_NOTED)).isFalse();
    } finally {
      stream.state.unhold();
    }
    clock.ask(clock.now());
    assertThat(clock.isDone(noted, StreamClock.NOT_NOTED)).isTrue();
  }

  /** What it did last is marked, and no moment makes that done. */
  @Test
  void closedStreamThatIsBusy_isAskedOnce() {
    assertThat(stream.handle()).isNotZero();
    driver.begin(stream);
    stream.close();
    calls.clear();
    assertThat(stream.state.isIdleSoon()).isFalse();
    assertThat(count("eventQuery")).isOne();
    driver.finish(stream);
    assertThat(stream.state.isIdleSoon()).isTrue();
  }

  @Test
  void streamOfNobodyElse_isAskedOnce_andWithoutAnEvent() {
    driver.begin(stream);
    calls.clear();
    assertThat(stream.state.isIdleSoon()).isFalse();
    assertThat(count("streamQuery")).isOne();
    driver.finish(stream);
    assertThat(stream.state.isIdleSoon()).isTrue();
    assertThat(count("streamQuery")).isEqualTo(2);
    assertThat(count("eventCreate")).isZero();
  }

  @Test
  void streamThatIsWrappedAsItsLastWrapperCloses_isWrappedAnew() {
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    CudaStream last = device.wrapStream(handle, this);
    AtomicReference<CudaStream> next = new AtomicReference<>();
    driver.atNextQuery(() ->
        next.set(CompletableFuture.supplyAsync(() -> device.wrapStream(handle, this)).join()));
    last.close();
    assertThat(last.isClosed()).isTrue();
    assertThat(next.get().isClosed()).isFalse();
    assertThat(next.get()).isNotEqualTo(last);
    next.get().synchronize();
    next.get().close();
    assertThat(next.get().isClosed()).isTrue();
  }

  /** Only its destruction is tried again: what it had is handed on, and its last work marked. */
  @Test
  void streamThatCannotBeDestroyed_isClosedAllTheSame() {
    assertThat(stream.handle()).isNotZero();
    driver.begin(stream);
    failures.set(1);
    assertThatThrownBy(stream::close).isInstanceOf(CudaException.class);
    assertThat(stream.isClosed()).isTrue();
    assertThat(stream.state.isOver()).isFalse();
    calls.clear();
    stream.state.end();
    assertThat(count("streamDestroy")).isOne();
    assertThat(count("streamGetCaptureInfo")).isZero();
    assertThat(count("eventRecord")).isZero();
    driver.finish(stream);
    assertThat(stream.state.isOver()).isTrue();
    stream.state.end();
    assertThat(count("streamDestroy")).isOne();
  }
}
