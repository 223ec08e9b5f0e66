package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.TracingDriver;
import io.cuvette.internal.fence.EndedStreams;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is done about streams that were closed before their work was. */
@Timeout(30)
class EndedStreamsTest {
  private final List<String> calls = new CopyOnWriteArrayList<>();
  private @Nullable BusyDriver made;
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2)))
              .withDecorator(this::decorated));
  private final BusyDriver driver = Objects.requireNonNull(made);
  private final EndedStreams ended = cuda.engine().streams().ended();

  private CudaDriver decorated(CudaDriver simulated) {
    made = new BusyDriver(simulated);
    return TracingDriver.of(made, call -> calls.add(call.call()));
  }

  @AfterEach
  void close() {
    cuda.close();
  }

  private List<CudaStream> closedWhileBusy(int count, int device) {
    List<CudaStream> streams =
        Stream.generate(() -> cuda.device(device).createStream(StreamOptions.NON_BLOCKING))
            .limit(count)
            .toList();
    streams.forEach(driver::begin);
    streams.forEach(CudaStream::close);
    assertThat(driver.liveEvents()).isEqualTo(count);
    return streams;
  }

  /** However many there are: who makes or closes a stream looks at some in passing. */
  @Test
  void lookInPassing_endsAfterTwoBusyOnes_or24ThatAreDone() {
    List<CudaStream> streams = closedWhileBusy(26, 0);
    calls.clear();
    ended.poll();
    assertThat(calls).filteredOn(call -> call.startsWith("eventQuery(")).hasSize(2);
    streams.forEach(driver::finish);
    ended.poll();
    assertThat(driver.liveEvents()).isEqualTo(2);
    ended.poll();
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void streamThatIsMade_looksAtSomeThatWereClosed() {
    closedWhileBusy(26, 0).forEach(driver::finish);
    try (CudaStream _ = cuda.device(1).createStream()) {
      assertThat(driver.liveEvents()).isEqualTo(2);
    }
  }

  @Test
  void waitForADevice_waitsForNoClosedStreamOfAnother() {
    List<CudaStream> streams = closedWhileBusy(3, 1);
    cuda.device(0).synchronize();
    assertThat(driver.waits()).isZero();
    cuda.device(1).synchronize();
    assertThat(driver.waits()).isEqualTo(3);
    streams.forEach(driver::finish);
  }

  @Test
  void waitForAStream_looksAtAllThatAreDone() {
    List<CudaStream> streams = closedWhileBusy(30, 0);
    streams.forEach(driver::finish);
    cuda.device(0).nullStream().synchronize();
    assertThat(driver.liveEvents()).isZero();
  }

  /** A program makes and closes any number of them. */
  @Test
  void closedStream_isForgotten() {
    WeakReference<?> left = madeAndClosed();
    for (int i = 0; i < 20 && left.get() != null; i++) {
      System.gc();
    }
    assertThat(left.get()).isNull();
  }

  @Test
  void closedStreamsThatWereWaitedFor_areForgotten_howeverMany() {
    List<WeakReference<DriverStream>> left = closedAndDone();
    cuda.device(0).synchronize();
    for (int i = 0; i < 20 && !left.stream().allMatch(each -> each.refersTo(null)); i++) {
      System.gc();
    }
    assertThat(left).hasSize(30).allMatch(each -> each.refersTo(null));
  }

  private List<WeakReference<DriverStream>> closedAndDone() {
    List<CudaStream> streams = closedWhileBusy(30, 0);
    streams.forEach(driver::finish);
    return streams.stream().map(stream -> new WeakReference<>(stream.state)).toList();
  }

  private WeakReference<?> madeAndClosed() {
    try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      return new WeakReference<>(stream.state);
    }
  }
}
