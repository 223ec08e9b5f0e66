package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.HostRows;
import io.cuvette.MemoryLimit;
import io.cuvette.PinnedAllocator;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Copies of memory that is not page-locked, through chunks that are. */
@Timeout(120)
class StagedTransferTest {
  private static final int MIB = 1 << 20;

  /** Around the bytes of a piece, of a chunk, and of all chunks. */
  private static final int[] SIZES = {
    65_536, 65_537, MIB / 4 + 1, MIB - 1, MIB, 2 * MIB, 2 * MIB + 1, 9 * MIB + 12_345
  };

  @CudaTest
  void everyKindOfHostMemory_goesInAndOut(Cuda cuda, @TempDir Path folder) throws IOException {
    for (int bytes : SIZES) {
      byte[] pattern = Bytes.random(bytes, bytes);
      try (Arena confined = Arena.ofConfined();
          Arena shared = Arena.ofShared();
          Buffer buffer = cuda.allocate(bytes)) {
        for (MemorySegment host :
            List.of(
                MemorySegment.ofArray(new byte[bytes]),
                confined.allocate(bytes),
                shared.allocate(bytes),
                MemorySegment.ofBuffer(ByteBuffer.allocateDirect(bytes)),
                mapped(folder.resolve("file" + bytes), bytes, shared))) {
          buffer.fill((byte) 0);
          host.copyFrom(MemorySegment.ofArray(pattern));
          buffer.copyFrom(host);
          host.fill((byte) 0);
          buffer.copyTo(host);
          assertThat(host.mismatch(MemorySegment.ofArray(pattern))).as("%s", host).isEqualTo(-1);
        }
      }
    }
  }

  private static MemorySegment mapped(Path path, long bytes, Arena arena) throws IOException {
    try (FileChannel file =
        FileChannel.open(
            path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    }
  }

  @CudaTest
  void rows_areGatheredIntoOneBlock_andScatteredAgain(Cuda cuda) {
    float[][] rows = new float[2000][];
    int total = 0;
    for (int i = 0; i < rows.length; i++) {
      rows[i] = new float[i % 7 == 0 ? 0 : 300 + i % 311];
      for (int j = 0; j < rows[i].length; j++) {
        rows[i][j] = total++;
      }
    }
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 4L * total + 4)) {
        buffer.fill((byte) 0);
        buffer.gatherFrom(HostRows.of(rows));
        float[] flat = new float[total + 1];
        buffer.copyTo(MemorySegment.ofArray(flat));
        for (int i = 0; i < total; i++) {
          assertThat(flat[i]).isEqualTo(i);
        }
        assertThat(flat[total]).as("behind the rows").isZero();
        float[][] back =
            Arrays.stream(rows).map(row -> new float[row.length]).toArray(float[][]::new);
        buffer.scatterTo(HostRows.of(back));
        assertThat(Arrays.deepEquals(back, rows)).isTrue();
      }
    }
  }

  @CudaTest
  void mixedRows_areGathered_andWhatIsNoRowIsNamed(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(64)) {
      MemorySegment segment = Arena.ofAuto().allocate(8);
      segment.set(ValueLayout.JAVA_LONG, 0, 42);
      buffer.gatherFrom(HostRows.of(List.of(new int[] {1, 2}, segment, ByteBuffer.allocate(3))));
      ByteBuffer out = ByteBuffer.allocate(19).order(java.nio.ByteOrder.nativeOrder());
      buffer.copyTo(MemorySegment.ofBuffer(out));
      assertThat(out.getInt(4)).isEqualTo(2);
      assertThat(out.getLong(8)).isEqualTo(42);
      assertThatThrownBy(() -> HostRows.of(List.of(new int[1], "text")))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("rows[1]: java.lang.String");
      assertThatThrownBy(() -> HostRows.of(new float[][] {{1}, null}))
          .isInstanceOf(NullPointerException.class)
          .hasMessage("rows[1]");
      assertThatThrownBy(() -> buffer.gatherFrom(HostRows.of(new long[3][3])))
          .isInstanceOf(IndexOutOfBoundsException.class)
          .hasMessageContaining("72 bytes");
      assertThatThrownBy(() ->
              buffer.scatterTo(List.of(segment, MemorySegment.ofArray(new byte[1]).asReadOnly())))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("targets[1]");
      assertThatCode(() -> buffer.gatherFrom(List.of())).doesNotThrowAnyException();
    }
  }

  @CudaTest
  @SuppressWarnings("restricted") // memory that nobody reads
  void rowsThatAreNoMemory_areRefused_andBuffersStayAsTheyWere(Cuda cuda) {
    MemorySegment gibibyte = MemorySegment.NULL.reinterpret(1L << 30);
    ByteBuffer bytes = ByteBuffer.allocate(16).position(4);
    List<MemorySegment> rows = HostRows.of(List.of(bytes));
    bytes.position(12);
    assertThat(rows.getFirst().byteSize()).isEqualTo(12);
    try (Buffer buffer = cuda.allocate(64)) {
      buffer.gatherFrom(rows);
      for (int shift : new int[] {0, 32}) { // 2^50 bytes, and more than a long counts
        List<MemorySegment> many =
            Collections.nCopies(1 << 20, gibibyte.reinterpret(1L << (30 + shift)));
        assertThatThrownBy(() -> buffer.gatherFrom(many))
            .isInstanceOf(IndexOutOfBoundsException.class)
            .hasMessage("sources: more bytes than 562949953159168 (expected: those of a buffer)");
      }
      assertThatThrownBy(() -> buffer.scatterTo(Arrays.asList(gibibyte, null)))
          .isInstanceOf(NullPointerException.class)
          .hasMessage("targets[1]");
      assertThatThrownBy(() -> CopyBatch.of(List.of(buffer), Arrays.asList((Buffer) null)))
          .isInstanceOf(NullPointerException.class)
          .hasMessage("sources[0]");
    }
  }

  @CudaTest
  void fileThatShrinks_isOneErrorThatSaysWhatWasWritten(Cuda cuda, @TempDir Path folder)
      throws IOException {
    int bytes = 8 * MIB;
    for (int round = 0; round < 20; round++) {
      Path path = folder.resolve("shrinks" + round);
      try (Arena arena = Arena.ofShared();
          Buffer buffer = cuda.allocate(bytes)) {
        buffer.fill((byte) 1);
        MemorySegment file = mapped(path, bytes, arena);
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
          channel.truncate(5L * MIB);
        }
        assertThatThrownBy(() -> buffer.copyFrom(file))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("has shrunk")
            .hasMessageContaining("copy of %d bytes to the device".formatted(bytes))
            .hasMessageContaining("written");
        assertThatThrownBy(() -> buffer.copyTo(file))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("has shrunk")
            .hasMessageContaining("bytes 0 to");
        assertThatThrownBy(() -> buffer.copyFrom(file.asSlice(6L * MIB, 4096)))
            .as("few bytes")
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining(
                "source: the file that %s is mapped from has shrunk, or cannot be read",
                file.asSlice(6L * MIB, 4096))
            .hasMessageContaining("no byte was written");
        buffer.copyFrom(file.asSlice(0, 5L * MIB));
      }
    }
  }

  /** This thread copies alone, one part after the other: which is known to the byte. */
  @CudaTest
  void partThatCannotBeWritten_isTheOneThatMayBeInPart(Cuda cuda, @TempDir Path folder)
      throws IOException {
    int bytes = 5 * MIB;
    Path path = folder.resolve("shrinks");
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(bytes)) {
      buffer.fill((byte) 1);
      MemorySegment whole = arena.allocate(4L * MIB);
      MemorySegment shrunk = mapped(path, MIB, arena);
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.truncate(0);
      }
      assertThatThrownBy(() -> buffer.scatterTo(List.of(whole, shrunk)))
          .hasMessageEndingWith(
              "copy of 5242880 bytes to the host: bytes 0 to 4194304 were written, of the next"
                  + " 1048576 some may be");
      assertThat(whole.mismatch(arena.allocate(4L * MIB).fill((byte) 1))).isEqualTo(-1);
      assertThatThrownBy(() -> buffer.gatherFrom(List.of(whole, shrunk)))
          .hasMessageEndingWith(
              "copy of 5242880 bytes to the device: bytes 0 to 4194304 were written");
      assertThatThrownBy(() -> buffer.copyTo(shrunk.asSlice(0, 4096)))
          .hasMessageEndingWith(
              "copy of 4096 bytes to the host: bytes 0 to 0 were written, of the next 4096 some"
                  + " may be");
    }
  }

  @CudaTest
  void fileInOrderOfAStream_goesThroughChunks_andIsRefusedInACapture(
      Cuda cuda, CudaStream stream, @TempDir Path folder) throws IOException {
    byte[] pattern = Bytes.random(11, 3 * MIB + 5);
    try (Arena arena = Arena.ofShared();
        Buffer buffer = cuda.allocate(pattern.length, stream)) {
      Path path = folder.resolve("file");
      MemorySegment file = mapped(path, pattern.length, arena);
      file.copyFrom(MemorySegment.ofArray(pattern));
      buffer.copyFrom(file, stream);
      file.fill((byte) 0); // has been read
      buffer.copyTo(file, stream);
      stream.synchronize();
      assertThat(file.mismatch(MemorySegment.ofArray(pattern))).isEqualTo(-1);
      assertThatThrownBy(() -> stream.capture(() -> buffer.copyFrom(file.asSlice(0, 8), stream)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("PinnedBuffer");
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.truncate(0);
      }
      assertThatThrownBy(() -> buffer.copyFrom(file.asSlice(0, 8), stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("has shrunk");
      assertThatThrownBy(() -> buffer.copyTo(file, stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("has shrunk");
    }
  }

  @CudaTest
  void arenaThatIsClosedMeanwhile_isAnErrorOrTooLate(Cuda cuda) throws Exception {
    int bytes = 6 * MIB;
    try (Buffer buffer = cuda.allocate(bytes);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int round = 0; round < 20; round++) {
        Arena arena = Arena.ofShared();
        MemorySegment host = arena.allocate(bytes);
        Future<?> copy = threads.submit(() -> buffer.copyFrom(host));
        Thread.yield();
        arena.close();
        try {
          copy.get();
        } catch (java.util.concurrent.ExecutionException e) {
          assertThat(e.getCause()).isInstanceOf(IllegalStateException.class);
        }
      }
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    }
  }

  @Tag("simulated")
  @Test
  void transferOfManyBytes_holdsNoMoreThanItMay() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withTransferBytes(3 * MIB))) {
      byte[] pattern = Bytes.random(3, 40 * MIB);
      try (Buffer buffer = cuda.allocate(pattern.length)) {
        buffer.copyFrom(MemorySegment.ofArray(pattern));
        byte[] back = new byte[pattern.length];
        buffer.copyTo(MemorySegment.ofArray(back));
        assertThat(back).isEqualTo(pattern);
      }
      assertThat(cuda.defaultPinnedMemoryPool().stats().peakUsedBytes()).isBetween(1L, 3L * MIB);
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    }
    assertThatThrownBy(() -> CudaOptions.simulated().withTransferBytes(5))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("transferBytes: 5 (expected: 1048576");
  }

  /** Whether memory is page-locked is a question; that it is not known is one of its answers. */
  @CudaTest
  void driverThatFails_asItIsAskedAboutTheMemory_failsTheCopy(Cuda cuda, ScriptedDriver driver) {
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(MIB)) {
      MemorySegment host = arena.allocate(MIB);
      driver.fail("pointerGetAttribute", CudaStatus.ECC_UNCORRECTABLE, 1);
      assertThatThrownBy(() -> buffer.copyFrom(host))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("pointerGetAttribute");
      driver.fail("pointerGetAttribute", CudaStatus.INVALID_VALUE, 1);
      buffer.copyFrom(host);
    }
  }

  @CudaTest
  void withoutPinnedMemory_aTransferGoesOn(Cuda cuda) {
    byte[] pattern = Bytes.random(5, 5 * MIB + 77);
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
    for (long limit : new long[] {4096, 3 * MIB}) { // for none, and for one chunk
      cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.ofBytes(limit));
      try (Buffer buffer = cuda.allocate(pattern.length)) {
        buffer.copyFrom(MemorySegment.ofArray(pattern));
        byte[] back = new byte[pattern.length];
        buffer.copyTo(MemorySegment.ofArray(back));
        assertThat(back).as("limit %d", limit).isEqualTo(pattern);
      } finally {
        cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.none());
      }
    }
  }

  @CudaTest
  void manyVirtualThreadsAtOnce_transferTheirOwnBytes(Cuda cuda) throws Exception {
    int threads = 1000;
    List<Future<?>> all = new ArrayList<>();
    try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < threads; i++) {
        int seed = i;
        all.add(
            executor.submit(() -> {
              byte[] pattern = Bytes.random(seed, 70_000 + 300 * seed);
              try (Buffer buffer = cuda.allocate(pattern.length)) {
                buffer.copyFrom(MemorySegment.ofArray(pattern));
                byte[] back = new byte[pattern.length];
                buffer.copyTo(MemorySegment.ofArray(back));
                assertThat(Arrays.equals(back, pattern)).isTrue();
              }
            }));
      }
    }
    for (Future<?> each : all) {
      each.get();
    }
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    assertThat(cuda.defaultPinnedMemoryPool().stats().peakUsedBytes())
        .isLessThanOrEqualTo(256L * MIB);
  }

  @CudaTest
  void manyTransfers_leaveNothing(Cuda cuda) throws InterruptedException {
    byte[] some = Bytes.random(4, 3 * MIB);
    try (Buffer buffer = cuda.allocate(some.length)) {
      buffer.copyFrom(MemorySegment.ofArray(some));
      buffer.copyFrom(MemorySegment.ofArray(some).asSlice(0, 100_000));
      long held = cuda.defaultPinnedMemoryPool().totalBytes();
      for (int i = 0; i < 10_000; i++) {
        buffer.copyFrom(MemorySegment.ofArray(some).asSlice(0, 100_000));
      }
      for (int i = 0; i < 50; i++) {
        buffer.copyFrom(MemorySegment.ofArray(some));
      }
      assertThat(cuda.defaultPinnedMemoryPool().totalBytes())
          .as("the first may have needed fewer chunks")
          .isLessThanOrEqualTo(held + some.length);
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    }
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("cuvette-copies-")) {
        assertThat(thread.join(Duration.ofSeconds(60))).as("%s ends", thread).isTrue();
      }
    }
  }

  /** Chunks would be long gone when it is launched. */
  @CudaTest(simulatedOnly = true)
  void nativeMemoryInACapture_isReadAndWrittenByEachLaunch(
      Cuda cuda, @NonBlocking CudaStream stream) {
    for (int bytes : new int[] {100, MIB}) {
      try (Arena arena = Arena.ofShared();
          Buffer buffer = cuda.allocate(bytes, stream)) {
        MemorySegment from = arena.allocate(bytes);
        MemorySegment to = arena.allocate(bytes);
        try (CudaGraph graph =
                stream.capture(() -> {
                  buffer.copyFrom(from, stream);
                  buffer.copyTo(to, stream);
                });
            CudaGraphExec executable = graph.instantiate()) {
          for (byte value = 1; value < 3; value++) {
            from.fill(value);
            executable.launch(stream);
            stream.synchronize();
            assertThat(to.mismatch(from)).as("%d bytes", bytes).isEqualTo(-1);
          }
        }
      }
    }
  }

  /** The driver has read it when the call returns, and the stream may be anywhere. */
  @CudaTest(simulatedOnly = true)
  void fewBytesInOrderOfAStream_doNotWaitForIt(Cuda cuda, @NonBlocking CudaStream stream) {
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(64 << 10, stream)) {
      MemorySegment host = arena.allocate(64 << 10).fill((byte) 1);
      try (Gate _ = Gate.on(stream)) {
        buffer.copyFrom(host, stream);
        assertThat(stream.isDone()).isFalse();
        host.fill((byte) 2);
      }
      stream.synchronize();
      assertThat(Bytes.areAll(buffer, 1)).isTrue();
    }
  }

  /** It is slower, which nobody would know else; and said once. */
  @Test
  void transferWithoutPinnedMemory_isToldOnce() {
    List<LogRecord> told = new ArrayList<>();
    long thread = Thread.currentThread().threadId();
    Logger log = Logger.getLogger("io.cuvette.transfers");
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"));
        Buffer buffer = cuda.allocate(4 * MIB)) {
      log.setFilter(record -> record.getLongThreadID() != thread || !told.add(record));
      MemorySegment bytes = MemorySegment.ofArray(new byte[4 * MIB]);
      buffer.copyFrom(bytes);
      assertThat(told).isEmpty();
      cuda.defaultPinnedMemoryPool().freeAllBlocks();
      cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.ofBytes(4096));
      buffer.copyFrom(bytes);
      buffer.copyFrom(bytes);
    } finally {
      log.setFilter(null);
    }
    assertThat(told).hasSize(1);
    assertThat(told.getFirst().getLevel()).isEqualTo(Level.WARNING);
    assertThat(told.getFirst().getMessage()).startsWith("no page-locked memory for a transfer (");
  }

  /** Which the library asks as often as it needs to, and gives back at the end. */
  @CudaTest
  void transfer_goesThroughMemoryOfTheUsersAllocator(Cuda cuda) {
    AtomicInteger asked = new AtomicInteger();
    PinnedAllocator before = cuda.pinnedAllocator();
    cuda.setPinnedAllocator(bytes -> {
      asked.incrementAndGet();
      return cuda.directPinned().allocate(bytes);
    });
    for (int bytes : SIZES) {
      byte[] pattern = Bytes.random(bytes, bytes);
      byte[] back = new byte[bytes];
      try (Buffer buffer = cuda.allocate(bytes)) {
        buffer.copyFrom(MemorySegment.ofArray(pattern));
        buffer.copyTo(MemorySegment.ofArray(back));
      }
      assertThat(back).isEqualTo(pattern);
    }
    assertThat(asked).hasPositiveValue();
    cuda.setPinnedAllocator(before);
  }
}
