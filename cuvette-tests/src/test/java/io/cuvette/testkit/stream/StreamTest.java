package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PriorityRange;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

class StreamTest {
  private static final int QUEUED = 200;

  @CudaTest
  void builtInStreams_haveTheDriversHandles(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    assertThat(device.nullStream().handle()).isZero();
    assertThat(device.legacyStream().handle()).isEqualTo(1);
    assertThat(device.nullStream()).isSameAs(device.nullStream());
    assertThat(device.nullStream()).isNotEqualTo(device.legacyStream());
    assertThat(device.nullStream().device()).isEqualTo(device);
    assertThat(device.nullStream().toString()).contains("null stream", "device 0");
  }

  @CudaTest
  void builtInStreams_cannotBeClosed(Cuda cuda) {
    CudaStream stream = cuda.device(0).nullStream();
    stream.close();
    assertThat(stream.isClosed()).isFalse();
    stream.synchronize();
    assertThat(stream.isDone()).isTrue();
  }

  @CudaTest
  void perThreadStream_isOnePerThread_andOnlyForIt(Cuda cuda) throws InterruptedException {
    CudaStream mine = cuda.device(0).perThreadStream();
    assertThat(mine.handle()).isEqualTo(2);
    assertThat(cuda.device(0).perThreadStream()).isEqualTo(mine);
    List<Runnable> calls =
        List.of(
            mine::synchronize,
            mine::isDone,
            () -> mine.record().close(),
            mine::onComplete,
            mine::use,
            () -> cuda.device(0).nullStream().waitFor(mine),
            () -> mine.waitFor(cuda.device(0).nullStream()));
    List<Throwable> thrown = new ArrayList<>();
    CudaStream[] other = new CudaStream[1];
    Thread thread =
        Thread.ofPlatform()
            .start(() -> {
              other[0] = cuda.device(0).perThreadStream();
              for (Runnable call : calls) {
                thrown.add(catchThrowable(call::run));
              }
            });
    thread.join();
    assertThat(other[0]).isNotEqualTo(mine);
    assertThat(thrown)
        .hasSameSizeAs(calls)
        .allSatisfy(e ->
            assertThat(e)
                .isInstanceOf(WrongThreadException.class)
                .hasMessageContaining("per-thread default stream"));
    mine.synchronize();
  }

  @CudaTest
  void perThreadStream_isRefusedOnAVirtualThread(Cuda cuda) throws InterruptedException {
    Throwable[] thrown = new Throwable[1];
    Thread.ofVirtual()
        .start(() -> {
          try {
            cuda.device(0).perThreadStream();
          } catch (RuntimeException e) {
            thrown[0] = e;
          }
        })
        .join();
    assertThat(thrown[0])
        .isInstanceOf(WrongThreadException.class)
        .hasMessageContaining("createStream()");
  }

  @CudaTest
  void streams_areEqualOnlyToThemselves_andWorkAsKeys(Cuda cuda, CudaStream one, CudaStream two) {
    Map<CudaStream, Integer> map = new HashMap<>();
    map.put(one, 1);
    map.put(two, 2);
    map.put(cuda.device(0).nullStream(), 0);
    assertThat(map).hasSize(3).containsEntry(one, 1).containsEntry(two, 2);
    assertThat(one).isNotEqualTo(two).isNotEqualTo(null).isNotEqualTo("stream");
  }

  @CudaTest
  void flags_areTheOnesAskedFor(Cuda cuda) {
    try (CudaStream blocking = cuda.device(0).createStream();
        CudaStream free = cuda.device(0).createStream(StreamOptions.NON_BLOCKING)) {
      assertThat(blocking.isNonBlocking()).isFalse();
      assertThat(free.isNonBlocking()).isTrue();
      assertThat(cuda.device(0).nullStream().isNonBlocking()).isFalse();
    }
  }

  @CudaTest
  void everyPriorityInTheRange_isKept_andTheRestRefused(Cuda cuda) {
    PriorityRange range = cuda.device(0).priorityRange();
    assertThat(range.greatest()).isLessThanOrEqualTo(range.least());
    for (int priority = range.greatest(); priority <= range.least(); priority++) {
      try (CudaStream stream =
          cuda.device(0).createStream(StreamOptions.DEFAULTS.withPriority(priority))) {
        assertThat(stream.priority()).isEqualTo(priority);
      }
    }
    for (int wrong : new int[] {range.greatest() - 1, range.least() + 1, Integer.MAX_VALUE}) {
      assertThatThrownBy(
              () -> cuda.device(0).createStream(StreamOptions.DEFAULTS.withPriority(wrong)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(
              "priority: %d (expected: %d, most urgent, to %d)",
              wrong, range.greatest(), range.least());
    }
  }

  @CudaTest
  void stream_isDone_onlyWhenItsWorkIs(Cuda cuda, CudaStream stream) {
    try (Buffer buffer = cuda.allocate(64, stream)) {
      assertThat(stream.isDone()).isTrue();
      try (Gate _ = Gate.on(stream)) {
        buffer.fill((byte) 1, stream);
        assertThat(stream.isDone()).isFalse();
      }
      stream.synchronize();
      assertThat(stream.isDone()).isTrue();
    }
  }

  @CudaTest(seeds = 30)
  void waitForAnEvent_ordersTheStreams(
      Cuda cuda, @NonBlocking CudaStream first, @NonBlocking CudaStream second) {
    try (Buffer buffer = cuda.allocate(1024, first);
        Buffer copy = cuda.allocate(1024, second)) {
      buffer.fill((byte) 1, first);
      buffer.fill((byte) 2, first);
      try (CudaEvent written = first.record()) {
        second.waitFor(written);
      }
      copy.copyFrom(buffer, second);
      second.synchronize();
      first.synchronize();
      assertThat(Bytes.of(copy)).containsOnly(2);
    }
  }

  @CudaTest(seeds = 30)
  void waitForAStream_ordersTheStreams(
      Cuda cuda, @NonBlocking CudaStream first, @NonBlocking CudaStream second) {
    try (Buffer buffer = cuda.allocate(1024, first);
        Buffer copy = cuda.allocate(1024, second)) {
      for (int i = 0; i < 5; i++) {
        buffer.fill((byte) i, first);
        second.waitFor(first);
        copy.copyFrom(buffer, second);
        first.waitFor(second);
      }
      second.synchronize();
      assertThat(Bytes.of(copy)).containsOnly(4);
    }
  }

  @CudaTest(devices = 2, seeds = 10)
  void streamsOfTwoDevices_waitForEachOther(
      Cuda cuda, CudaStream near, @OnDevice(1) CudaStream far) {
    try (Buffer buffer = cuda.allocate(1024, near);
        Buffer copy = cuda.allocate(1024, far)) {
      buffer.fill((byte) 5, near);
      far.waitFor(near);
      copy.copyFrom(buffer, far);
      far.synchronize();
      assertThat(Bytes.of(copy)).containsOnly(5);
    }
  }

  @CudaTest(seeds = 10)
  void nullStream_takesTurnsWithBlockingStreams(Cuda cuda, CudaStream blocking) {
    try (Buffer buffer = cuda.allocate(1024);
        Buffer copy = cuda.allocate(1024)) {
      buffer.fill((byte) 1, blocking);
      copy.copyFrom(buffer, cuda.device(0).nullStream());
      buffer.fill((byte) 2, blocking);
      blocking.synchronize();
      assertThat(Bytes.of(copy)).containsOnly(1);
    }
  }

  @CudaTest
  void closedStream_finishesItsWork_andRefusesMore(Cuda cuda) {
    CudaStream stream = cuda.device(0).createStream();
    try (Buffer buffer = cuda.allocate(64)) {
      buffer.fill((byte) 0);
      for (int i = 0; i <= QUEUED; i++) {
        buffer.fill((byte) 3, stream);
      }
      stream.close();
      stream.close();
      assertThat(stream.isClosed()).isTrue();
      cuda.device(0).synchronize();
      assertThat(Bytes.of(buffer)).containsOnly(3);
    }
    for (Runnable call :
        new Runnable[] {
          stream::synchronize,
          stream::isDone,
          stream::priority,
          stream::isCapturing,
          stream::isNonBlocking,
          () -> stream.record(),
          () -> stream.waitFor(cuda.device(0).nullStream()),
          () -> stream.onComplete(),
          () -> stream.use()
        }) {
      assertThatThrownBy(call::run)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
    }
  }

  @CudaTest(simulatedOnly = true)
  void streamThatTheDriverDoesNotDestroy_saysSo_andIsDestroyedByTheNext(
      Cuda cuda, ScriptedDriver driver) {
    CudaStream stream = cuda.device(0).createStream();
    driver.fail("streamDestroy", CudaStatus.INVALID_VALUE, 1);
    assertThatThrownBy(stream::close).isInstanceOf(CudaException.class);
    assertThat(stream.isClosed()).isTrue();
    cuda.device(0).createStream().close();
    assertThat(driver.count("streamDestroy")).isEqualTo(2);
  }

  /** What was asked about streams that it did not come to is asked again, and given back. */
  @CudaTest(simulatedOnly = true)
  void waitForADeviceThatFails_losesNoEvents(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream one, @NonBlocking CudaStream two) {
    for (int round = 0; round < 10; round++) {
      try (Gate _ = Gate.on(one);
          Gate _ = Gate.on(two)) {
        driver.fail("eventSynchronize", CudaStatus.UNKNOWN, 1);
        assertThatThrownBy(cuda.device(0)::synchronize).isInstanceOf(CudaException.class);
      }
      driver.unscript("eventSynchronize");
      cuda.device(0).synchronize();
    }
    assertThat(driver.count("eventCreate") - driver.count("eventDestroy")).isLessThan(10);
  }

  @CudaTest
  void waitForAClosedStream_isRefused(Cuda cuda) {
    CudaStream closed = cuda.device(0).createStream();
    closed.close();
    assertThatThrownBy(() -> cuda.device(0).nullStream().waitFor(closed))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }

  @CudaTest
  void streamsOfAnotherCuda_areRefused(Subject subject) {
    Cuda one = subject.cuda();
    Cuda two = subject.open(options -> options);
    CudaStream foreign = two.device(0).nullStream();
    try (Buffer buffer = one.allocate(64);
        CudaEvent event = one.device(0).createEvent()) {
      for (Runnable call :
          new Runnable[] {
            () -> buffer.fill((byte) 1, foreign),
            () -> buffer.recordUse(foreign),
            () -> one.allocate(64, foreign),
            () -> one.defaultMemoryPool().allocate(64, foreign),
            () -> one.setCurrentStream(foreign),
            () -> one.currentStream().waitFor(foreign),
            () -> event.record(foreign),
            () -> foreign.waitFor(event)
          }) {
        assertThatThrownBy(call::run).isInstanceOf(IllegalArgumentException.class);
      }
    }
  }
}
