package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.GrowableBuffer;
import io.cuvette.GrowableOptions;
import io.cuvette.OpenObject;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Latches;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;

/** What uses a buffer that grows and shrinks: views across its end, and work that goes on. */
@Timeout(120)
class GrowableWorkTest {
  private static final long MIB = 1L << 20;

  /** To the byte, wherever they begin. */
  @CudaTest
  void viewsThatReachBehindTheEnd_areRefused_andThoseUpToItAreNot(Cuda cuda, CudaStream stream) {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      buffer.grow(8 * MIB);
      long end = 3 * MIB;
      long[] starts = {0, 1, MIB, end - 1};
      Buffer[] inside = new Buffer[starts.length];
      Buffer[] across = new Buffer[starts.length];
      for (int i = 0; i < starts.length; i++) {
        inside[i] = buffer.slice(starts[i], end - starts[i]);
        across[i] = buffer.slice(starts[i], end - starts[i] + 1);
      }
      Buffer all = buffer.slice(0, 8 * MIB);
      buffer.shrink(end);
      for (int i = 0; i < starts.length; i++) {
        Buffer good = inside[i];
        Buffer bad = across[i];
        assertThatCode(() -> good.fill((byte) 1, stream)).doesNotThrowAnyException();
        assertThatThrownBy(() -> bad.fill((byte) 1, stream))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("ends %d bytes into the growable buffer", end + 1)
            .hasMessageContaining("(expected: at most %d, to which it was shrunk)", end);
      }
      assertThatThrownBy(() -> all.fill((byte) 1, stream))
          .hasMessageContaining("ends %d bytes into", 8 * MIB);
      stream.synchronize();
    }
  }

  @CudaTest
  void openBuffer_isListed_untilItIsClosed(Cuda cuda) {
    GrowableBuffer buffer = cuda.device(0).growable(MIB);
    String listed = "growable buffer of at most %d bytes".formatted(MIB);
    assertThat(cuda.openObjects())
        .extracting(OpenObject::what)
        .filteredOn(what -> what.startsWith(listed))
        .hasSize(1);
    buffer.close();
    assertThat(cuda.openObjects())
        .extracting(OpenObject::what)
        .noneMatch(what -> what.startsWith(listed));
  }

  /** Only what was short of memory at first is said to be so. */
  @CudaTest(simulatedOnly = true)
  void growthThatFailsOtherwiseTheSecondTime_failsWithThat(Cuda cuda, ScriptedDriver script) {
    try (GrowableBuffer buffer = cuda.device(0).growable(32 * MIB)) {
      AtomicInteger calls = new AtomicInteger();
      script.answer(
          "memCreate",
          call -> {
            boolean isFirst = calls.incrementAndGet() == 1;
            CudaStatus status = isFirst ? CudaStatus.OUT_OF_MEMORY : CudaStatus.NOT_PERMITTED;
            throw new CudaException(status, call.name(), "on purpose");
          });
      assertThatThrownBy(() -> buffer.grow(8 * MIB))
          .isExactlyInstanceOf(CudaException.class)
          .extracting(failure -> ((CudaException) failure).status())
          .isEqualTo(CudaStatus.NOT_PERMITTED);
      assertThat(calls).hasValue(2);
      script.unscript("memCreate");
      buffer.grow(8 * MIB);
    }
  }

  /** The work goes on as long as nobody waits for it. */
  @CudaTest(simulatedOnly = true)
  void memoryWhoseWorkGoesOn_isBackWhenItIsClosed(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    long free = cuda.device(0).memoryInfo().freeBytes();
    GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
    buffer.grow(4 * MIB);
    try (Gate gate = Gate.on(stream)) {
      buffer.fill((byte) 1, stream);
      script.answer(
          "eventSynchronize",
          call -> {
            gate.open();
            return call.proceed();
          });
      buffer.close();
      assertThat(script.count("memUnmap")).isOne();
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free);
    }
  }

  /** Runs in a callback while another stream uses all of a buffer, which is then shrunk. */
  private static void whileItIsUsed(
      GrowableBuffer buffer, CudaStream busy, CudaStream other, Runnable body) throws Exception {
    buffer.grow(2 * MIB);
    buffer.grow(8 * MIB);
    CountDownLatch over = new CountDownLatch(1);
    var _ = busy.addCallback(() -> Latches.await(over));
    buffer.fill((byte) 1, busy);
    var ran = other.addCallback(body);
    try {
      ran.get(60, TimeUnit.SECONDS);
    } finally {
      over.countDown();
    }
    buffer.shrink(MIB);
    assertThat(buffer.blockBytes()).isEqualTo(2 * MIB);
  }

  /** A callback waits for nothing, and what comes after it asks again. */
  @CudaTest(simulatedOnly = true)
  void memoryWithWorkThatCouldNotBeMarked_staysMappedUntilItIsDone(
      Cuda cuda, ScriptedDriver script, @NonBlocking CudaStream busy, @NonBlocking CudaStream other)
      throws Exception {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      whileItIsUsed(
          buffer,
          busy,
          other,
          () -> {
            script.fail("eventCreate", CudaStatus.NOT_PERMITTED, 1);
            assertThatThrownBy(() -> buffer.shrink(MIB)).isInstanceOf(CudaException.class);
            buffer.shrink(MIB);
            assertThat(buffer.blockBytes()).isEqualTo(8 * MIB);
            buffer.grow(MIB); // it has that
            buffer.shrink(MIB);
            assertThat(buffer.blockBytes()).isEqualTo(8 * MIB);
          });
    }
  }

  /** A callback leaves it to later that the work is waited for. */
  @CudaTest(simulatedOnly = true)
  void eventsForWorkBehindTheEnd_areBack_onceTheEndIsElsewhere(
      Cuda cuda, @NonBlocking CudaStream busy, @NonBlocking CudaStream other, ScriptedDriver script)
      throws Exception {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      whileItIsUsed(
          buffer,
          busy,
          other,
          () -> {
            long made = script.count("eventCreate");
            long gone = script.count("eventDestroy");
            buffer.shrink(MIB);
            buffer.shrink(MIB / 2);
            assertThat(buffer.blockBytes()).isEqualTo(8 * MIB);
            assertThat(script.count("eventCreate")).isEqualTo(made + 2);
            assertThat(script.count("eventDestroy")).isEqualTo(gone);
            buffer.grow(4 * MIB);
            assertThat(script.count("eventDestroy")).isEqualTo(gone + 2);
          });
    }
  }

  /** Its own device has it anyway, and who is to have it is asked, not who has it. */
  @CudaTest(simulatedOnly = true, devices = 2)
  void devicesWithAccess_areNamedOnce_andAskedWhetherTheyReachIt(Cuda cuda, ScriptedDriver driver) {
    driver.answer("deviceCanAccessPeer", call -> call.number("device") == 1);
    driver.note("memSetAccess", call -> Arrays.toString(call.argument("locationIds", int[].class)));
    List<CudaDevice> peers = List.of(cuda.device(0), cuda.device(1));
    GrowableOptions options = GrowableOptions.ofMaxBytes(1 << 20).withPeers(peers);
    try (GrowableBuffer buffer = cuda.device(0).growable(options)) {
      buffer.grow(1);
    }
    assertThat(driver.notes()).containsExactly("[0, 1]");
  }
}
