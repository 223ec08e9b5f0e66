package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What is left of a copy of rows that fails, is made from everywhere, or is too large. */
@Timeout(120)
class BoxFailuresTest {
  private static final Pattern WRITTEN = Pattern.compile("bytes 0 to (\\d+) were written");
  private static final int ROWS = 6000;
  private static final CopyBox APART = CopyBox.of(1000, ROWS).withTarget(0, 1500);

  private static byte[] read(Buffer buffer) {
    byte[] all = new byte[(int) buffer.byteSize()];
    buffer.copyTo(MemorySegment.ofArray(all));
    return all;
  }

  private static void failAfter(ScriptedDriver driver, int calls, String... names) {
    AtomicInteger left = new AtomicInteger(calls);
    for (String name : names) {
      driver.answer(
          name,
          call -> {
            if (left.getAndDecrement() == 0) {
              throw new CudaException(CudaStatus.INVALID_VALUE, name, "the test");
            }
            return call.proceed();
          });
    }
  }

  /** What is written is as many bytes, row after row, as the error says. */
  @CudaTest
  void rowsThroughChunks_areWrittenAsFarAsTheErrorSays(ScriptedDriver driver, Cuda cuda) {
    byte[] from = Bytes.random(1, 1000 * ROWS);
    try (Buffer target = cuda.allocate(1500L * ROWS)) {
      int calls = 0;
      while (true) {
        target.fill((byte) 0);
        failAfter(driver, calls, "memcpyAsync", "memcpy3DAsync");
        String text = failure(() -> target.copyFrom(MemorySegment.ofArray(from), APART));
        if (text.isEmpty()) {
          break;
        }
        calls++;
        assertThat(text).contains("copy of 6000000 bytes in rows of 1000 to the device");
        driver.unscript("memcpyAsync");
        driver.unscript("memcpy3DAsync");
        Matcher written = WRITTEN.matcher(text);
        int bytes = written.find() ? Integer.parseInt(written.group(1)) : 0;
        byte[] to = read(target);
        for (int i = 0; i < from.length; i += i % 1000 == 999 ? 1 : 333) {
          byte expected = i < bytes ? from[i] : 0;
          assertThat(to[i / 1000 * 1500 + i % 1000])
              .as("byte %d of %d", i, bytes)
              .isEqualTo(expected);
        }
      }
      assertThat(calls).as("several of each chunk").isGreaterThan(5);
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    }
  }

  /** Many layers are one call. */
  @CudaTest
  void layersThroughChunks_areAllWrittenThatTheErrorSays(ScriptedDriver driver, Cuda cuda) {
    CopyBox layers = CopyBox.of(1000, 4, ROWS / 4).withTarget(0, 1000, 5);
    byte[] from = Bytes.random(2, 1000 * ROWS);
    try (Buffer target = cuda.allocate(1250L * ROWS)) {
      target.fill((byte) 0);
      failAfter(driver, 2, "memcpyAsync", "memcpy3DAsync");
      String text = failure(() -> target.copyFrom(MemorySegment.ofArray(from), layers));
      Matcher written = WRITTEN.matcher(text);
      assertThat(written.find()).isTrue();
      int bytes = Integer.parseInt(written.group(1));
      assertThat(bytes).isGreaterThan(1 << 20);
      driver.unscript("memcpyAsync");
      driver.unscript("memcpy3DAsync");
      byte[] to = read(target);
      for (int i = bytes - 1000; i < bytes + 1000; i++) {
        assertThat(to[i / 4000 * 5000 + i % 4000]).isEqualTo(i < bytes ? from[i] : 0);
      }
    }
  }

  private static String failure(Runnable copy) {
    try {
      copy.run();
    } catch (CudaException e) {
      return e.getMessage();
    }
    return "";
  }

  @CudaTest(devices = 2)
  void rowsBetweenDevices_areQueuedAsFarAsTheErrorSays(ScriptedDriver driver, Cuda cuda) {
    try (CudaStream near = cuda.device(0).createStream();
        CudaStream far = cuda.device(1).createStream();
        Buffer source = cuda.allocate(100, near);
        Buffer target = cuda.allocate(100, far)) {
      source.fill((byte) 4);
      target.fill((byte) 0);
      failAfter(driver, 2, "memcpyPeerAsync");
      CopyBox box = CopyBox.of(5, 4).withSource(3, 20).withTarget(0, 10);
      assertThatThrownBy(() -> target.copyFrom(source, box, far))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("copy of 4 rows of 5 bytes: the first 2 are queued, no other");
      failAfter(driver, 0, "memcpyPeerAsync");
      assertThatThrownBy(() -> target.copyFrom(source, CopyBox.of(5, 1), far))
          .isInstanceOf(CudaException.class)
          .hasMessageNotContaining("rows");
      far.synchronize();
      byte[] all = read(target);
      assertThat(all[14]).isEqualTo((byte) 4);
      assertThat(all[20]).isZero();
    }
  }

  @CudaTest
  void fileThatShrinks_isOneErrorThatSaysHowManyRowsWereWritten(Cuda cuda, @TempDir Path folder)
      throws Exception {
    Path path = folder.resolve("rows");
    CopyBox box = CopyBox.of(4096, 8).withTarget(0, 8192);
    try (Arena arena = Arena.ofShared();
        FileChannel file =
            FileChannel.open(
                path,
                StandardOpenOption.CREATE,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE);
        Buffer device = cuda.allocate(8 * 8192);
        PinnedBuffer pinned = cuda.allocatePinned(8 * 8192)) {
      MemorySegment mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, 8 * 4096, arena);
      mapped.fill((byte) 5);
      file.truncate(3 * 4096);
      assertThatThrownBy(() -> device.copyFrom(mapped, box))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("has shrunk")
          .hasMessageContaining("copy of 32768 bytes in rows of 4096 to the device");
      assertThatThrownBy(() -> pinned.copyFrom(mapped, box))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("copy of 8 rows: the first 3 were written");
      assertThat(pinned.segment().get(ValueLayout.JAVA_BYTE, 2 * 8192 + 4095)).isEqualTo((byte) 5);
      pinned.copyFrom(mapped, CopyBox.of(4096, 3));
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isEqualTo(8 * 8192);
    }
  }

  /** No call of the driver takes a pitch of 2 GiB. */
  @CudaTest
  void pitchesThatNoCallTakes_areCopiedRowByRow(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    long pitch = 1L << 31;
    CopyBox box = CopyBox.of(16, 2).withTarget(8, pitch);
    byte[] rows = Bytes.random(2, 32);
    try (Buffer target = cuda.allocate(pitch + 64, stream);
        Buffer source = cuda.allocate(32, stream);
        PinnedBuffer pinned = cuda.allocatePinned(32)) {
      source.copyFrom(MemorySegment.ofArray(rows));
      pinned.segment().copyFrom(MemorySegment.ofArray(rows));
      List<Runnable> copies =
          List.of(
              () -> target.copyFrom(source, box, stream),
              () -> target.copyFrom(pinned.segment(), box, stream),
              () -> target.copyFrom(MemorySegment.ofArray(rows), box));
      for (Runnable copy : copies) {
        try (Buffer first = target.slice(0, 64);
            Buffer second = target.slice(pitch, 64)) {
          first.fill((byte) 0);
          second.fill((byte) 0);
          copy.run();
          stream.synchronize();
          assertThat(read(first.slice(8, 16))).isEqualTo(Arrays.copyOf(rows, 16));
          assertThat(read(second.slice(8, 16))).isEqualTo(Arrays.copyOfRange(rows, 16, 32));
        }
      }
      failAfter(driver, 1, "memcpyAsync");
      assertThatThrownBy(copies.get(1)::run)
          .hasMessageContaining("copy of 2 rows of 16 bytes: the first 1 are queued, no other");
      driver.unscript("memcpyAsync");
      assertThat(driver.count("memcpy3DAsync")).isZero();
    }
  }

  /** A callback may queue copies in streams other than its own, and copy rows of the heap. */
  @CudaTest
  void callbacks_copyRows(Cuda cuda, CudaStream stream) throws Exception {
    CopyBox box = CopyBox.of(10, 3).withTarget(0, 20);
    try (CudaStream other = cuda.currentDevice().createStream();
        PinnedBuffer pinned = cuda.allocatePinned(30);
        Buffer target = cuda.allocate(60, other)) {
      pinned.segment().fill((byte) 8);
      target.fill((byte) 0);
      stream
          .addCallback(() -> {
            target.copyFrom(pinned.segment(), box, other);
            other.synchronize();
          })
          .get();
      other.synchronize();
      assertThat(read(target)[41]).isEqualTo((byte) 8);
      stream
          .addCallback(
              () -> target.copyFrom(MemorySegment.ofArray(Bytes.random(4, 30)), box, other))
          .handle((_, e) -> e)
          .thenAccept(e ->
              assertThat(e)
                  .as("heap memory in order of a stream")
                  .isInstanceOf(IllegalArgumentException.class))
          .get();
    }
  }

  @CudaTest
  void manyThreadsAtOnce_copyTheirRows_andLeaveNoChunk(Cuda cuda) throws Exception {
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> all = new ArrayList<>();
      for (int i = 0; i < 200; i++) {
        int seed = i;
        all.add(threads.submit(() -> copyThereAndBack(cuda, seed)));
      }
      for (Future<?> each : all) {
        each.get();
      }
    }
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  private static void copyThereAndBack(Cuda cuda, int seed) {
    CopyBox in = CopyBox.of(300, 10, 3).withTarget(seed % 7, 400, 12);
    CopyBox out = CopyBox.of(300, 10, 3).withSource(seed % 7, 400, 12);
    byte[] rows = Bytes.random(seed, 9000);
    byte[] back = new byte[9000];
    try (Buffer buffer = cuda.allocate(400 * 12 * 3 + 7)) {
      buffer.copyFrom(MemorySegment.ofArray(rows), in);
      buffer.copyTo(MemorySegment.ofArray(back), out);
    }
    assertThat(back).isEqualTo(rows);
  }

  /** The driver has no address of it, so that rows go one after the other. */
  @CudaTest
  void boxesWithoutPageLockedMemory_areTheSameBytes(Cuda cuda) {
    CopyBox box = CopyBox.of(1000, 4, 30).withTarget(7, 1100, 5);
    byte[] from = Bytes.random(5, 1000 * 4 * 30);
    byte[] expected = new byte[7 + 1100 * 5 * 30];
    for (int row = 0; row < 4 * 30; row++) {
      System.arraycopy(from, 1000 * row, expected, 7 + 1100 * (row / 4 * 5 + row % 4), 1000);
    }
    byte[] back = new byte[from.length];
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
    cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.ofBytes(4096));
    try (Buffer target = cuda.allocate(expected.length)) {
      target.fill((byte) 0);
      target.copyFrom(MemorySegment.ofArray(from), box);
      assertThat(read(target)).isEqualTo(expected);
      target.copyTo(MemorySegment.ofArray(back), CopyBox.of(1000, 4, 30).withSource(7, 1100, 5));
      assertThat(back).isEqualTo(from);
    } finally {
      cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.none());
    }
  }

  /** The chunks that they go through are others' when the graph is launched. */
  @CudaTest
  void boxesOfMemoryThatIsNotPageLocked_areRefusedInACapture_andNothingIsCaptured(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    CopyBox box = CopyBox.of(8, 4);
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(64, stream)) {
      stream.synchronize();
      driver.note("memcpyAsync", "memcpy3DAsync", "memcpyHtoDAsync", "memcpyDtoHAsync");
      MemorySegment outside = arena.allocate(64);
      MemorySegment heap = MemorySegment.ofArray(new byte[64]);
      CudaGraph graph =
          stream.capture(() -> {
            for (CopyBox each : List.of(box, box.withTarget(0, 16), box.withSource(0, 16))) {
              for (MemorySegment host : List.of(outside, heap)) {
                assertThatThrownBy(() -> buffer.copyFrom(host, each, stream))
                    .isInstanceOfAny(IllegalStateException.class, IllegalArgumentException.class);
                assertThatThrownBy(() -> buffer.copyTo(host, each, stream))
                    .isInstanceOfAny(IllegalStateException.class, IllegalArgumentException.class);
              }
            }
          });
      graph.close();
      assertThat(driver.takeNotes()).isEmpty();
    }
  }
}
