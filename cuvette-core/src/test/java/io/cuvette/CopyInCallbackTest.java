package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.instrument.TracingDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Copies inside a callback: none waits for the callback itself, nor leaves the driver memory. */
@Timeout(60)
class CopyInCallbackTest {
  private static final int BYTES = 64;

  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver -> TracingDriver.of(driver, call -> calls.add(call.call()))));
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final Buffer buffer = cuda.allocate(BYTES, stream);
  private final MemorySegment nativeMemory = Arena.ofAuto().allocate(BYTES);

  @AfterEach
  void close() {
    cuda.close();
  }

  private void inCallback(Runnable code) {
    buffer.fill((byte) 7, stream);
    stream.addCallback(code).join();
  }

  private long copies() {
    return calls.stream().filter(call -> call.startsWith("memcpy")).count();
  }

  @Test
  void copyThatWaitsOnTheStreamOfTheCallback_isRefused_beforeAnythingIsQueued() {
    MemorySegment heap = MemorySegment.ofArray(new byte[BYTES]);
    inCallback(() -> {
      try (var _ = stream.use()) {
        assertThatThrownBy(() -> buffer.copyTo(heap)).hasMessageStartingWith("copyTo on stream");
        assertThatThrownBy(() -> buffer.copyFrom(heap)).hasMessageStartingWith("copyFrom on");
        assertThatThrownBy(() -> buffer.copyTo(nativeMemory)).hasMessageStartingWith("copyTo on");
      }
    });
    assertThat(copies()).isZero();
  }

  /** Its wait may end before the copy does. */
  @Test
  void copyThatWaits_goesThroughMemoryOfTheLibrary() {
    String address = Long.toHexString(nativeMemory.address());
    inCallback(() -> {
      buffer.copyTo(nativeMemory);
      buffer.copyFrom(nativeMemory);
    });
    assertThat(nativeMemory.toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
    assertThat(copies()).isEqualTo(2);
    assertThat(calls).noneMatch(call -> call.contains(address));
  }

  /** The driver waits until it has read the memory, which is behind the callback. */
  @Test
  void copyOfNativeMemoryInTheStreamOfTheCallback_isRefused() {
    inCallback(() -> {
      assertThatThrownBy(() -> buffer.copyFrom(nativeMemory, stream))
          .hasMessageStartingWith("a copy of native memory on stream");
      assertThatThrownBy(() -> buffer.copyTo(nativeMemory, stream))
          .hasMessageStartingWith("a copy of native memory on stream");
    });
    assertThat(copies()).isZero();
  }

  /** Also where it has nothing to do as yet: the copy itself is behind the callback. */
  @Test
  void copyOfNativeMemoryInAStreamThatTakesTurnsWithTheCallbacks_isRefused_thoughItIsIdle() {
    CudaStream turning = cuda.device(0).createStream();
    CudaStream[] nulls = {cuda.device(0).nullStream(), cuda.device(0).legacyStream()};
    cuda.device(0).synchronize();
    for (CudaStream its : nulls) {
      for (CudaStream[] pair : new CudaStream[][] {{turning, its}, {its, turning}}) {
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        pair[0]
            .addCallback(() -> {
              failures.add(catchThrowable(() -> buffer.copyFrom(nativeMemory, pair[1])));
              failures.add(catchThrowable(() -> buffer.copyTo(nativeMemory, pair[1])));
            })
            .orTimeout(60, TimeUnit.SECONDS)
            .join();
        assertThat(failures)
            .hasSize(2)
            .allSatisfy(failure ->
                assertThat(failure)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageStartingWith("a copy of native memory on " + pair[1])
                    .hasMessageContaining("would wait for the callback itself"));
      }
    }
    assertThat(copies()).isZero();
  }

  /** The driver would wait for it too, and with no bound. */
  @Test
  void copyOfNativeMemoryInAnotherStream_waitsForTheWorkBeforeIt_asTheLibraryDoes() {
    CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    Buffer target = cuda.allocate(BYTES, other);
    inCallback(() -> {
      target.fill((byte) 1, other);
      calls.clear();
      target.copyFrom(nativeMemory, other);
    });
    assertThat(calls.stream().takeWhile(call -> !call.startsWith("memcpy")))
        .anyMatch(call -> call.startsWith("streamQuery"));
    assertThat(copies()).isEqualTo(1);
  }

  /** Behind other streams, say: the callback ends with an error, and not never. */
  @Test
  void copyOfNativeMemoryBehindWorkThatWaitsForTheCallback_isRefusedInTheEnd() {
    CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    Buffer target = cuda.allocate(BYTES, other);
    List<Throwable> failures = new CopyOnWriteArrayList<>();
    inCallback(() -> {
      cuda.engine().session().frees().setPatienceNanos(TimeUnit.MILLISECONDS.toNanos(20));
      other.waitFor(stream);
      for (Runnable copy :
          List.<Runnable>of(
              () -> target.copyFrom(nativeMemory, other),
              () -> target.copyTo(nativeMemory, other))) {
        failures.add(catchThrowable(copy::run));
      }
    });
    assertThat(failures)
        .hasSize(2)
        .allSatisfy(failure ->
            assertThat(failure)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageStartingWith("a copy of native memory on " + other + " in a callback of")
                .hasMessageContaining("not done after 20 ms"));
    assertThat(copies()).isZero();
    other.synchronize();
  }

  /** Not even of a buffer, whose segment may be closed as soon as the wait ends. */
  @Test
  void rowsThatAreWaitedFor_goThroughMemoryOfTheLibrary() {
    try (PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      CopyBox box = CopyBox.of(BYTES / 4, 2).withSource(0, BYTES / 2).withTarget(0, BYTES / 2);
      inCallback(() -> {
        buffer.copyTo(pinned.segment(), box);
        buffer.copyFrom(pinned.segment(), box);
      });
      String address = "address=" + pinned.address() + ",";
      assertThat(calls)
          .filteredOn(call -> call.startsWith("memcpy"))
          .hasSize(2)
          .noneMatch(call -> call.contains(address));
    }
  }
}
