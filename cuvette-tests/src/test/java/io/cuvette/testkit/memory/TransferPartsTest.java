package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What copies that take several chunks ask of the driver, and of page-locked memory. */
@Timeout(60)
class TransferPartsTest {
  private static final int PART = 2 << 20;
  private static final int PARTS = 8;

  private final ScriptedDriver script = new ScriptedDriver();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
  private final CudaStream stream = cuda.device(0).createStream();
  private final Buffer buffer = cuda.allocate((long) PARTS * PART, stream);

  @AfterEach
  void close() {
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    cuda.close();
  }

  private void copy(int bytes, boolean in) {
    MemorySegment heap = MemorySegment.ofArray(new byte[bytes]);
    if (in) {
      buffer.copyFrom(heap);
    } else {
      buffer.copyTo(heap);
    }
  }

  private long chunks() {
    return cuda.defaultPinnedMemoryPool().stats().growths();
  }

  /** Those that help have a chunk each to copy, and one that the device copies. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void copy_hasTwoChunksForEachThread_andTwoInsideACallback(boolean in) throws Exception {
    CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    other.addCallback(() -> copy(PARTS * PART, in)).get(60, TimeUnit.SECONDS);
    assertThat(chunks()).as("alone").isEqualTo(2);
    copy(PARTS * PART, in);
    int threads = 1 + Runtime.getRuntime().availableProcessors() / 2;
    assertThat(chunks()).isEqualTo(Math.min(PARTS, 2 * threads));
  }

  /** A byte less or more makes the last part shorter, or one more. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void copy_isOneCallAndOneMarkForEachPart(boolean in) {
    for (int bytes : new int[] {PART + 1, 2 * PART - 1, 2 * PART, 2 * PART + 1, 3 * PART}) {
      long copies = script.count("memcpyAsync");
      long marks = script.count("eventRecord");
      copy(bytes, in);
      int parts = (bytes + PART - 1) / PART;
      assertThat(script.count("memcpyAsync") - copies).as("%d bytes", bytes).isEqualTo(parts);
      assertThat(script.count("eventRecord") - marks).as("%d bytes", bytes).isEqualTo(parts);
    }
  }

  /** What there is no memory for is not asked for again by the same copy. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void copyThatGetsNoMoreMemory_asksForItOnce(boolean in) {
    AtomicInteger asked = new AtomicInteger();
    script.answer(
        "memHostAlloc",
        call -> {
          if (asked.incrementAndGet() > 1) {
            throw new CudaException(CudaStatus.OUT_OF_MEMORY, call.name(), "on purpose");
          }
          return call.proceed();
        });
    copy(PARTS * PART, in);
    assertThat(asked).hasValue(2);
    copy(PARTS * PART, in);
    assertThat(asked).hasValue(3);
  }

  /** Whichever it is of: it is not lost for the others. */
  @Test
  void eventThatCannotBeEnded_isToldByTheCopyThatMadeIt() {
    copy(2 * PART, true);
    long events = script.count("eventDestroy");
    copy(2 * PART, true);
    long each = script.count("eventDestroy") - events;
    assertThat(each).isEqualTo(2);
    for (int failing = 1; failing <= each; failing++) {
      AtomicInteger left = new AtomicInteger(failing);
      script.answer(
          "eventDestroy",
          call -> {
            if (left.decrementAndGet() == 0) {
              throw new CudaException(CudaStatus.UNKNOWN, call.name(), "on purpose");
            }
            return call.proceed();
          });
      assertThatThrownBy(() -> copy(2 * PART, true))
          .as("event %d", failing)
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("on purpose");
    }
    script.unscript("eventDestroy");
  }

  /** A thread that has nothing to copy sleeps. */
  @Test
  void copyThatTheDeviceIsNotDoneWith_isWaitedFor() {
    AtomicInteger left = new AtomicInteger(50);
    script.answer("eventQuery", call -> left.decrementAndGet() < 0 && (boolean) call.proceed());
    byte[] read = new byte[3 * PART];
    buffer.fill((byte) 7, stream);
    stream.synchronize();
    buffer.copyTo(MemorySegment.ofArray(read));
    assertThat(script.count("eventSynchronize")).isPositive();
    byte[] expected = new byte[read.length];
    Arrays.fill(expected, (byte) 7);
    assertThat(Arrays.equals(read, expected)).isTrue();
  }
}
