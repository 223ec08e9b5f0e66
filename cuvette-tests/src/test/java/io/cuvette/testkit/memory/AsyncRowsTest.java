package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.HostRows;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Timeout;

/** Boxes, rows of the host and batches in order of a stream, and with a completion. */
@Timeout(120)
class AsyncRowsTest {
  private static final int MIB = 1 << 20;

  /** Every second row of 1,000 bytes. */
  private static final CopyBox APART = CopyBox.of(1000, 3).withTarget(0, 2000);

  private static final CopyBox TOGETHER = CopyBox.of(1000, 3).withSource(0, 2000);

  private static void get(CompletableFuture<Void> done) throws Exception {
    done.get(60, TimeUnit.SECONDS);
  }

  private static byte[] read(Buffer buffer) {
    byte[] all = new byte[(int) buffer.byteSize()];
    buffer.copyTo(MemorySegment.ofArray(all));
    return all;
  }

  private static byte[] bytes(MemorySegment memory) {
    return memory.toArray(ValueLayout.JAVA_BYTE);
  }

  /** Unequal rows of some memory, one of which has no bytes. */
  private static List<MemorySegment> rows(MemorySegment memory) {
    long third = memory.byteSize() / 3;
    return List.of(
        memory.asSlice(0, third - 5),
        memory.asSlice(third - 5, 0),
        memory.asSlice(third - 5, 5),
        memory.asSlice(third));
  }

  @CudaTest(seeds = 10)
  void boxes_goBetweenAllMemory_withACompletion(Cuda cuda, CudaStream stream) throws Exception {
    byte[] pattern = Bytes.random(1, 3000);
    try (Arena arena = Arena.ofShared();
        PinnedBuffer pinned = cuda.allocatePinned(3000);
        Buffer apart = cuda.allocate(6000, stream);
        Buffer together = cuda.allocate(3000, stream)) {
      for (MemorySegment host : List.of(arena.allocate(3000), pinned.segment())) {
        host.copyFrom(MemorySegment.ofArray(pattern));
        get(apart.copyFromAsync(host, APART, stream));
        get(together.copyFromAsync(apart, TOGETHER, stream));
        assertThat(read(together)).isEqualTo(pattern);
        host.fill((byte) 0);
        get(apart.copyToAsync(host, TOGETHER, stream));
        assertThat(bytes(host)).isEqualTo(pattern);
      }
    }
  }

  @CudaTest(seeds = 10)
  void rows_areGatheredAndScattered_inOrderOfTheStream(Cuda cuda, CudaStream stream)
      throws Exception {
    for (int bytes : new int[] {900, 5 * MIB + 77}) {
      byte[] pattern = Bytes.random(bytes, bytes);
      try (Arena arena = Arena.ofShared();
          PinnedBuffer pinned = cuda.allocatePinned(bytes);
          Buffer buffer = cuda.allocate(bytes, stream)) {
        MemorySegment pageable = arena.allocate(bytes);
        List<MemorySegment> mixed = new ArrayList<>(rows(pageable));
        mixed.set(3, rows(pinned.segment()).getLast());
        for (List<MemorySegment> rows :
            List.of(rows(pinned.segment()), rows(pageable), List.copyOf(mixed))) {
          pageable.copyFrom(MemorySegment.ofArray(pattern));
          pinned.segment().copyFrom(MemorySegment.ofArray(pattern));
          buffer.fill(1, stream);
          buffer.gatherFrom(rows, stream);
          stream.synchronize();
          assertThat(Arrays.equals(read(buffer), pattern)).isTrue();
          rows.forEach(row -> row.fill((byte) 0));
          get(buffer.scatterToAsync(rows, stream));
          buffer.fill(1, stream);
          assertThat(isAt(rows, pattern)).isTrue();
          get(buffer.gatherFromAsync(rows, stream));
          rows.forEach(row -> row.fill((byte) 0));
          buffer.scatterTo(rows, stream);
          stream.synchronize();
          assertThat(isAt(rows, pattern)).isTrue();
        }
      }
    }
  }

  /** A byte that the driver may not reach makes the whole copy wait, and none is left out. */
  @CudaTest(seeds = 3)
  void rowsOfOneByte_areCopied_whateverTheyAreOf(Cuda cuda, CudaStream stream) {
    byte[] pattern = {1, 2, 3};
    try (Arena arena = Arena.ofShared();
        PinnedBuffer pinned = cuda.allocatePinned(3);
        Buffer buffer = cuda.allocate(3, stream)) {
      MemorySegment pageable = arena.allocate(1);
      for (int other = -1; other < 3; other++) {
        List<MemorySegment> rows = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
          rows.add(i == other ? pageable : pinned.segment().asSlice(i, 1));
          rows.get(i).set(ValueLayout.JAVA_BYTE, 0, pattern[i]);
        }
        buffer.fill(9, stream);
        buffer.gatherFrom(rows, stream);
        stream.synchronize();
        assertThat(read(buffer)).containsExactly(pattern);
        rows.forEach(row -> row.fill((byte) 0));
        buffer.scatterTo(rows, stream);
        stream.synchronize();
        assertThat(isAt(rows, pattern)).isTrue();
      }
    }
  }

  private static boolean isAt(List<MemorySegment> rows, byte[] pattern) {
    long at = 0;
    for (MemorySegment row : rows) {
      if (row.mismatch(MemorySegment.ofArray(pattern).asSlice(at, row.byteSize())) != -1) {
        return false;
      }
      at += row.byteSize();
    }
    return true;
  }

  /** Also without a stream: what is still to be written there must not be read before. */
  @CudaTest(seeds = 20)
  void rowsThatTheStreamWrites_areReadAfterThat(Cuda cuda, CudaStream stream) {
    MemorySegment other = Arena.ofAuto().allocate(10);
    try (var _ = stream.use();
        Buffer source = cuda.allocate(3 * MIB);
        Buffer target = cuda.allocate(3 * MIB + 10);
        PinnedBuffer pinned = cuda.allocatePinned(3 * MIB)) {
      List<List<MemorySegment>> all =
          List.of(List.of(pinned.segment()), List.of(pinned.segment(), other));
      for (List<MemorySegment> rows : all) {
        source.fill((byte) 1);
        source.copyTo(pinned);
        source.fill((byte) 2, stream);
        source.copyTo(pinned, stream);
        target.gatherFrom(rows);
        assertThat(Bytes.areAll(target.slice(0, 3 * MIB), 2)).as("waits").isTrue();
        source.fill((byte) 3, stream);
        source.copyTo(pinned, stream);
        target.gatherFrom(rows, stream);
        assertThat(Bytes.areAll(target.slice(0, 3 * MIB), 3)).as("in order").isTrue();
      }
    }
  }

  @CudaTest
  void pageLockedMemory_isCopiedLater_alsoWhenAllIsClosed(Cuda cuda, CudaStream stream)
      throws Exception {
    byte[] pattern = Bytes.random(3, 3000);
    List<CompletableFuture<Void>> copies = new ArrayList<>();
    try (Buffer target = cuda.allocate(3000, stream);
        PinnedBuffer scattered = cuda.allocatePinned(3000)) {
      try (Gate _ = Gate.on(stream)) {
        try (PinnedBuffer pinned = cuda.allocatePinned(3000);
            PinnedBuffer back = cuda.allocatePinned(3000);
            Buffer apart = cuda.allocate(6000, stream);
            Buffer between = cuda.allocate(3000, stream);
            Buffer last = cuda.allocate(3000, stream)) {
          pinned.segment().copyFrom(MemorySegment.ofArray(pattern));
          copies.add(apart.copyFromAsync(pinned.segment(), APART, stream));
          copies.add(between.copyFromAsync(apart, TOGETHER, stream));
          copies.add(between.scatterToAsync(rows(back.segment()), stream));
          copies.add(last.gatherFromAsync(rows(back.segment()), stream));
          copies.add(
              CopyBatch.of(List.of(target, scattered), List.of(last, last)).copyAsync(stream));
          copies.add(apart.copyToAsync(back.segment(), TOGETHER, stream));
          assertThat(copies.getLast().cancel(true)).as("the device has it").isFalse();
        }
        assertThat(copies).noneMatch(CompletableFuture::isDone);
      }
      for (CompletableFuture<Void> each : copies) {
        get(each);
      }
      assertThat(read(target)).isEqualTo(pattern);
      assertThat(bytes(scattered.segment())).isEqualTo(pattern);
    }
  }

  @CudaTest
  void memoryThatIsNotPageLocked_isNeededNoMoreAfterTheCall(Cuda cuda, CudaStream stream)
      throws Exception {
    try (Buffer target = cuda.allocate(3 * MIB, stream)) {
      CompletableFuture<Void> done;
      try (Arena confined = Arena.ofConfined()) {
        MemorySegment memory = confined.allocate(3 * MIB);
        memory.fill((byte) 9);
        done = target.gatherFromAsync(rows(memory), stream);
        memory.fill((byte) 0);
      }
      get(done);
      assertThat(Bytes.areAll(target, 9)).isTrue();
      ByteBuffer direct = ByteBuffer.allocateDirect(30);
      get(target.scatterToAsync(HostRows.of(List.of(direct)), stream));
      assertThat(direct.get(29)).isEqualTo((byte) 9);
    }
  }

  @CudaTest
  void memoryThatCouldMove_isRefused_andNothingIsQueued(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    MemorySegment heap = MemorySegment.ofArray(new byte[3000]);
    String way = "copy it into a PinnedBuffer first";
    Class<? extends Exception> type = IllegalArgumentException.class;
    try (PinnedBuffer pinned = cuda.allocatePinned(3000);
        Buffer buffer = cuda.allocate(2999, stream)) {
      List<MemorySegment> one = List.of(rows(pinned.segment()).getFirst(), heap);
      List<MemorySegment> arrays = HostRows.of(new float[2][3]);
      CopyBox box = CopyBox.of(10, 2);
      refuse(type, "sources[1]: heap segment of 3000", () -> buffer.gatherFromAsync(one, stream));
      refuse(type, way, () -> buffer.scatterToAsync(arrays, stream));
      refuse(type, way, () -> buffer.copyFromAsync(heap, box, stream));
      refuse(type, way, () -> buffer.copyToAsync(heap, box, stream));
      assertNothingIsQueued(driver);
    }
  }

  @CudaTest
  void whatDoesNotFit_isRefused_andNothingIsQueued(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (PinnedBuffer pinned = cuda.allocatePinned(3000);
        Buffer buffer = cuda.allocate(2999, stream)) {
      List<MemorySegment> rows = rows(pinned.segment());
      List<MemorySegment> readOnly = List.of(rows.get(2), rows.getFirst().asReadOnly());
      List<MemorySegment> own = List.of(rows.getLast(), pinned.segment().asSlice(0, 5));
      refuse(
          IndexOutOfBoundsException.class,
          "copy of 3000 bytes into",
          () -> buffer.gatherFromAsync(rows, stream));
      refuse(
          IndexOutOfBoundsException.class,
          "copy of 3000 bytes out of",
          () -> buffer.scatterToAsync(rows, stream));
      refuse(
          IllegalArgumentException.class,
          "targets[1]: ",
          () -> buffer.scatterToAsync(readOnly, stream));
      refuse(
          IllegalArgumentException.class,
          "1005 bytes are in both ranges",
          () -> pinned.gatherFromAsync(own, stream));
      assertThatThrownBy(() -> buffer.gatherFromAsync(Arrays.asList(rows.getFirst(), null), stream))
          .isInstanceOf(NullPointerException.class);
      assertNothingIsQueued(driver);
    }
  }

  @CudaTest
  void whatIsClosed_isRefused_andNothingIsQueued(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    Class<? extends Exception> type = IllegalStateException.class;
    CudaStream ended = cuda.currentDevice().createStream();
    ended.close();
    Buffer closed = cuda.allocate(6000, stream);
    closed.close();
    try (PinnedBuffer pinned = cuda.allocatePinned(3000);
        Buffer buffer = cuda.allocate(2999, stream)) {
      List<MemorySegment> rows = rows(pinned.segment());
      CopyBatch batch = CopyBatch.of(List.of(closed), List.of(buffer));
      refuse(type, "is closed", () -> closed.gatherFromAsync(rows, stream));
      refuse(type, "is closed", () -> batch.copyAsync(stream));
      refuse(type, "is closed", () -> buffer.gatherFromAsync(List.of(), ended));
      assertNothingIsQueued(driver);
    }
  }

  private static void assertNothingIsQueued(ScriptedDriver driver) {
    assertThat(driver.count("memcpyAsync") + driver.count("memcpy3DAsync")).isZero();
    assertThat(driver.count("launchHostFunc")).isZero();
  }

  private static void refuse(Class<? extends Exception> type, String text, Supplier<?> copy) {
    assertThatThrownBy(copy::get).isInstanceOf(type).hasMessageContaining(text);
  }

  @CudaTest
  void captures_takeTheFormsWithAStream_andRefuseCompletions(Cuda cuda, CudaStream stream) {
    MemorySegment pageable = Arena.ofAuto().allocate(3000);
    try (PinnedBuffer pinned = cuda.allocatePinned(3000);
        PinnedBuffer back = cuda.allocatePinned(3000);
        Buffer buffer = cuda.allocate(3000, stream)) {
      List<Runnable> completions =
          List.of(
              () -> refuseIn(stream, () -> buffer.gatherFromAsync(rows(pageable), stream)),
              () -> refuseIn(stream, () -> buffer.scatterToAsync(rows(pinned.segment()), stream)),
              () -> refuseIn(stream, () -> buffer.copyFromAsync(pinned, CopyBox.of(1, 1), stream)),
              () ->
                  refuseIn(
                      stream,
                      () -> CopyBatch.of(List.of(buffer), List.of(pinned)).copyAsync(stream)));
      completions.forEach(Runnable::run);
      assertThatThrownBy(() -> stream.capture(() -> buffer.gatherFrom(rows(pageable), stream)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("gatherFrom")
          .hasMessageContaining("captur");
      try (CudaGraph graph =
              stream.capture(() -> {
                buffer.gatherFrom(rows(pinned.segment()), stream);
                buffer.scatterTo(rows(back.segment()), stream);
              });
          CudaGraphExec exec = graph.instantiate()) {
        for (int i = 1; i < 3; i++) {
          pinned.segment().fill((byte) i);
          exec.launch(stream);
          stream.synchronize();
          assertThat(bytes(back.segment())).containsOnly(i);
        }
      }
    }
  }

  private interface Copy {
    CompletableFuture<Void> begin();
  }

  private static void refuseIn(CudaStream stream, Copy copy) {
    assertThatThrownBy(() ->
            stream.capture(() -> {
              var _ = copy.begin();
            }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("expected: the copy with the stream that gives none");
  }

  @CudaTest
  void rowThatFails_saysWhichAreQueued(ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (PinnedBuffer pinned = cuda.allocatePinned(3000);
        Buffer buffer = cuda.allocate(3000, stream)) {
      pinned.segment().fill((byte) 4);
      buffer.fill((byte) 0);
      AtomicInteger left = new AtomicInteger(2);
      driver.answer(
          "memcpyAsync",
          call -> {
            if (left.getAndDecrement() == 0) {
              throw new CudaException(CudaStatus.INVALID_VALUE, "memcpyAsync", "the test");
            }
            return call.proceed();
          });
      assertThatThrownBy(
              () -> {
                var _ = buffer.gatherFromAsync(rows(pinned.segment()), stream);
              })
          .isInstanceOf(CudaException.class)
          .hasMessageContaining(
              "copy of 3 rows to the device: bytes 0 to 1000 are queued, no other");
      driver.unscript("memcpyAsync");
      assertThat(Bytes.areAll(buffer.slice(0, 1000), 4)).isTrue();
      assertThat(Bytes.areAll(buffer.slice(1000), 0)).isTrue();
    }
  }
}
