package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;

/** Copies whose thread is interrupted: they end between two parts, and say what is written. */
@Timeout(120)
class InterruptedTransferTest {
  private static final int MIB = 1 << 20;
  private static final int BYTES = 9 * MIB + 24; // a multiple of 33
  private static final byte[] PATTERN = Bytes.random(1, BYTES);
  private static final Pattern WRITTEN = Pattern.compile("bytes 0 to (\\d+) were written");

  /** The copies of native memory that take long, all of the same bytes. */
  private enum Form {
    PLAIN {
      @Override
      void in(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.copyFrom(host);
      }

      @Override
      void out(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.copyTo(host);
      }
    },
    ROWS {
      @Override
      void in(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.gatherFrom(rows(host));
      }

      @Override
      void out(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.scatterTo(rows(host));
      }
    },
    BOX {
      @Override
      void in(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.copyFrom(host, CopyBox.of(host.byteSize() / 3, 3));
      }

      @Override
      void out(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.copyTo(host, CopyBox.of(host.byteSize() / 3, 3));
      }
    },
    PLAIN_ASYNC {
      @Override
      void in(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.copyFromAsync(host, stream).join();
      }

      @Override
      void out(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.copyToAsync(host, stream).join();
      }
    },
    ROWS_ASYNC {
      @Override
      void in(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.gatherFromAsync(rows(host), stream).join();
      }

      @Override
      void out(Buffer buffer, MemorySegment host, CudaStream stream) {
        buffer.scatterToAsync(rows(host), stream).join();
      }
    };

    abstract void in(Buffer buffer, MemorySegment host, CudaStream stream);

    abstract void out(Buffer buffer, MemorySegment host, CudaStream stream);
  }

  private static List<MemorySegment> rows(MemorySegment memory) {
    return List.of(memory.asSlice(0, 100), memory.asSlice(100));
  }

  @AfterEach
  void end() {
    boolean _ = Thread.interrupted();
  }

  /** How many bytes a copy says that it has written; all if it went through. */
  private static int written(Runnable copy) {
    try {
      copy.run();
      return BYTES;
    } catch (CancellationException e) {
      assertThat(e)
          .hasMessageStartingWith("the thread is interrupted; copy of " + BYTES + " bytes");
      Matcher matcher = WRITTEN.matcher(e.getMessage());
      if (matcher.find()) {
        assertThat(e.getMessage()).as("it is known exactly").doesNotContain("some may be");
        return Integer.parseInt(matcher.group(1));
      }
      assertThat(e).hasMessageEndingWith("no byte was written");
      return 0;
    } finally {
      assertThat(Thread.interrupted()).as("stays interrupted").isTrue();
    }
  }

  private static boolean areFirst(MemorySegment memory, int written) {
    MemorySegment rest = memory.asSlice(written);
    return memory.asSlice(0, written).mismatch(MemorySegment.ofArray(PATTERN).asSlice(0, written))
            == -1
        && rest.mismatch(MemorySegment.ofArray(new byte[(int) rest.byteSize()])) == -1;
  }

  private static void interruptAfter(ScriptedDriver driver, int calls) {
    AtomicInteger left = new AtomicInteger(calls);
    for (String name : List.of("memcpyAsync", "memcpy3DAsync")) {
      driver.answer(
          name,
          call -> {
            if (left.getAndDecrement() == 0) {
              Thread.currentThread().interrupt();
            }
            return call.proceed();
          });
    }
  }

  private static void uninterrupted(ScriptedDriver driver) {
    driver.unscript("memcpyAsync");
    driver.unscript("memcpy3DAsync");
  }

  @CudaTest
  void copiesToTheDevice_endBetweenParts(ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    host.copyFrom(MemorySegment.ofArray(PATTERN));
    byte[] found = new byte[BYTES];
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      for (Form form : Form.values()) {
        for (int calls = 0; calls < 4; calls++) {
          buffer.fill((byte) 0);
          interruptAfter(driver, calls);
          int written = written(() -> form.in(buffer, host, stream));
          uninterrupted(driver);
          assertThat(written)
              .as("parts are whole")
              .satisfiesAnyOf(
                  all -> assertThat(all).isEqualTo(BYTES),
                  some -> assertThat(some % (256 << 10)).isZero());
          buffer.copyTo(MemorySegment.ofArray(found));
          assertThat(areFirst(MemorySegment.ofArray(found), written)).as("%s", form).isTrue();
        }
      }
    }
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  @CudaTest
  void copiesToTheHost_endBetweenParts(ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      buffer.copyFrom(MemorySegment.ofArray(PATTERN));
      for (Form form : Form.values()) {
        for (int calls = 0; calls < 4; calls++) {
          host.fill((byte) 0);
          interruptAfter(driver, calls);
          int written = written(() -> form.out(buffer, host, stream));
          uninterrupted(driver);
          assertThat(areFirst(host, written)).as("%s: %d", form, written).isTrue();
        }
      }
    }
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  /** Where no driver is called: pinned memory is copied by threads. */
  @CudaTest
  void threadThatIsInterruptedAlready_beginsNothing(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    host.copyFrom(MemorySegment.ofArray(PATTERN));
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      buffer.fill((byte) 0);
      pinned.segment().fill((byte) 0);
      for (Form form : Form.values()) {
        for (Buffer each : List.of(buffer, pinned)) {
          long before = driver.count("launchHostFunc");
          Thread.currentThread().interrupt();
          if (form == Form.BOX && each == pinned) { // one row after the other
            assertThatThrownBy(() -> form.in(each, host, stream))
                .isInstanceOf(CancellationException.class)
                .hasMessageEndingWith("copy of 1 rows: the first 0 were written");
            assertThat(Thread.interrupted()).isTrue();
          } else {
            assertThat(written(() -> form.in(each, host, stream))).as("%s", form).isZero();
          }
          assertThat(driver.count("launchHostFunc")).isEqualTo(before);
        }
      }
      assertThat(Bytes.areAll(buffer, 0)).isTrue();
      assertThat(areFirst(pinned.segment(), 0)).isTrue();
    }
  }

  @CudaTest
  void copiesBetweenHostAndPinnedMemory_endBetweenPieces(Cuda cuda, CudaStream stream)
      throws InterruptedException {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    host.copyFrom(MemorySegment.ofArray(PATTERN));
    Random random = new Random(3);
    try (PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      for (int i = 0; i < 40; i++) {
        pinned.segment().fill((byte) 0);
        Thread copying = Thread.currentThread();
        int spins = random.nextInt(40_000);
        Thread other =
            Thread.ofPlatform()
                .start(() -> {
                  for (int spin = 0; spin < spins; spin++) {
                    Thread.onSpinWait();
                  }
                  copying.interrupt();
                });
        AtomicInteger written = new AtomicInteger(BYTES);
        try {
          pinned.copyFrom(host);
        } catch (CancellationException e) {
          Matcher matcher = WRITTEN.matcher(e.getMessage());
          written.set(matcher.find() ? Integer.parseInt(matcher.group(1)) : 0);
        }
        while (!Thread.interrupted()) {
          Thread.onSpinWait();
        }
        other.join();
        assertThat(areFirst(pinned.segment(), written.get())).as("%s", written).isTrue();
      }
    }
  }

  @CudaTest
  void copyOfOnePart_isNoLongerThanAnInterrupt(Cuda cuda) {
    byte[] pattern = Arrays.copyOf(PATTERN, 2 * MIB);
    byte[] back = new byte[2 * MIB];
    try (Buffer buffer = cuda.allocate(2 * MIB);
        PinnedBuffer pinned = cuda.allocatePinned(2 * MIB)) {
      for (Buffer each : List.of(buffer, pinned)) {
        Thread.currentThread().interrupt();
        each.copyFrom(MemorySegment.ofArray(pattern));
        each.copyTo(MemorySegment.ofArray(back));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(back).isEqualTo(pattern);
        Thread.currentThread().interrupt();
        each.copyFrom(MemorySegment.ofArray(pattern), CopyBox.of(MIB, 2));
        assertThat(Thread.interrupted()).isTrue();
        Arrays.fill(back, (byte) 0);
      }
    }
  }

  /** As futures of an executor are cancelled. */
  @CudaTest(seeds = 5)
  void manyThatAreCancelledAtAnyMoment_leaveNoChunkAndNoThread(Cuda cuda) throws Exception {
    List<Future<?>> all = new ArrayList<>();
    AtomicInteger ended = new AtomicInteger();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < 60; i++) {
        int seed = i;
        all.add(threads.submit(() -> copyUntilInterrupted(cuda, seed, ended)));
      }
      for (Future<?> each : all) {
        boolean _ = each.cancel(true);
      }
    }
    assertThat(ended).as("all ended, one way or the other").hasValue(started.getAndSet(0));
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    byte[] back = new byte[BYTES];
    try (Buffer buffer = cuda.allocate(BYTES)) {
      buffer.copyFrom(MemorySegment.ofArray(PATTERN));
      buffer.copyTo(MemorySegment.ofArray(back));
    }
    assertThat(back).isEqualTo(PATTERN);
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("cuvette-copies-")) {
        assertThat(thread.join(Duration.ofSeconds(60))).as("%s ends", thread).isTrue();
      }
    }
  }

  /** Tasks that are cancelled before they start do not. */
  private final AtomicInteger started = new AtomicInteger();

  private void copyUntilInterrupted(Cuda cuda, int seed, AtomicInteger ended) {
    started.incrementAndGet();
    MemorySegment heap = MemorySegment.ofArray(PATTERN);
    try (CudaStream stream = cuda.currentDevice().createStream();
        var _ = stream.use();
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      for (int i = 0; i < 20; i++) {
        if ((seed + i) % 2 == 0) {
          buffer.gatherFrom(rows(heap));
        } else {
          buffer.copyFrom(heap, CopyBox.of(BYTES / 11, 11));
        }
      }
    } catch (CancellationException e) {
      assertThat(e).hasMessageContaining("the thread is interrupted; copy of");
    } finally {
      ended.incrementAndGet();
    }
  }

  /** None of them is long alone. */
  @CudaTest
  void manyShortRowsOfHostMemory_endBetweenTwo(Cuda cuda) {
    CopyBox rows = CopyBox.of(1024, 3 * 1024).withTarget(0, 1025);
    try (PinnedBuffer pinned = cuda.allocatePinned(1025 * 3 * 1024)) {
      pinned.segment().fill((byte) 0);
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> pinned.copyFrom(MemorySegment.ofArray(PATTERN), rows))
          .isInstanceOf(CancellationException.class)
          .hasMessageEndingWith("copy of 3072 rows: the first 0 were written");
      assertThat(Thread.interrupted()).isTrue();
      assertThat(areFirst(pinned.segment(), 0)).isTrue();
    }
  }
}
