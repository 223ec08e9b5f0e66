package io.cuvette.internal.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.DriverStream;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class StagingTest {
  private static final long PIECE = HostParts.PIECE_BYTES;
  private static final ChunkSource NONE = (_, _) -> null;

  /** So that a transfer that has one waits for no memory for the next. */
  @Test
  void twoChunksOfTheMostBytes_areWithinTheLimit_andOfWholePieces() {
    assertThat(new Staging(NONE, 8 * PIECE).mostBytes()).isEqualTo(4 * PIECE);
    assertThat(new Staging(NONE, 9 * PIECE + 1).mostBytes()).isEqualTo(4 * PIECE);
    assertThat(new Staging(NONE, 2 * PIECE - 1).mostBytes()).isZero();
  }

  @Test
  void nothingIsUsedAtFirst() {
    assertThat(new Staging(NONE, 8 * PIECE).usedBytes()).isZero();
  }

  /** A pool may round sizes up by an eighth, but those of a power of two. */
  @Test
  void bytesOfAChunk_areCountedInWholePages_withWhatAPoolMayAdd() {
    long[][] counted = {
      {1, 4096}, {2048, 4096}, {4096, 4096}, {8192, 8192}, {1 << 20, 1 << 20}, // powers of two
      {3, 4096}, {4097, 8192}, {7000, 8192}, {12_288, 16_384}, {3 * PIECE, 3 * PIECE * 9 / 8}
    };
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        Buffer buffer = cuda.allocate(64)) {
      for (long[] each : counted) {
        assertThat(asked(cuda, buffer, 64 * PIECE, each[0]))
            .as("%d bytes", each[0])
            .contains(each[1]);
      }
    }
  }

  /** What is beyond the limit is not even asked for. */
  @Test
  void chunksOfAllTransfers_haveNoMoreThanTheLimit() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        Buffer buffer = cuda.allocate(64)) {
      for (long limit : new long[] {1 << 20, 16 * PIECE, 64 * PIECE, 1L << 31}) {
        assertThat(asked(cuda, buffer, limit, limit)).contains(limit);
        assertThat(asked(cuda, buffer, limit, limit / 2)).contains(limit / 2);
        assertThat(asked(cuda, buffer, limit, limit + 1)).isEmpty();
        assertThat(asked(cuda, buffer, limit, 2 * limit)).isEmpty();
        assertThat(asked(cuda, buffer, limit, limit - 4096)).as("with an eighth more").isEmpty();
      }
    }
  }

  /** What is counted while the pool is asked for a chunk; empty if it is not asked. */
  private static Optional<Long> asked(Cuda cuda, Buffer buffer, long limit, long bytes) {
    AtomicReference<Staging> staging = new AtomicReference<>();
    AtomicReference<Long> used = new AtomicReference<>();
    staging.set(
        new Staging(
            (_, _) -> {
              used.set(staging.get().usedBytes());
              return null;
            },
            limit));
    DriverStream stream = EngineMemory.streamOf(cuda.device(0).nullStream());
    OpenStream open = new OpenStream(stream, false);
    assertThat(staging.get().more(EngineMemory.of(buffer), open, bytes)).isNull();
    assertThat(staging.get().usedBytes()).as("given back").isZero();
    return Optional.ofNullable(used.get());
  }

  /** Copies so many pieces from the heap, alone, through what a source has. */
  private static void copy(Cuda cuda, Staging staging, int pieces) {
    DriverStream stream = EngineMemory.streamOf(cuda.device(0).nullStream());
    byte[] bytes = new byte[(int) (pieces * PIECE)];
    Arrays.fill(bytes, (byte) pieces);
    try (Buffer buffer = cuda.allocate(bytes.length)) {
      StagedCopy.run(
          EngineMemory.of(buffer),
          PackedRows.of(bytes.length),
          HostParts.of("source", MemorySegment.ofArray(bytes), false),
          new OpenStream(stream, false),
          staging,
          true,
          true);
      byte[] copied = new byte[bytes.length];
      buffer.copyTo(MemorySegment.ofArray(copied));
      assertThat(copied).isEqualTo(bytes);
    }
  }

  /** Which has none for the others either, and may be slow to say so. */
  @Test
  void sourceThatHasNoMemoryForTheFirstChunk_isNotAskedForMore() {
    AtomicInteger asked = new AtomicInteger();
    Staging staging =
        new Staging(
            (bytes, _) -> {
              asked.incrementAndGet();
              throw new OutOfPinnedMemoryException(bytes, "cuMemHostAlloc", "the test's");
            },
            64 * PIECE);
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      copy(cuda, staging, 40);
    }
    assertThat(asked).hasValue(1);
    assertThat(staging.usedBytes()).isZero();
  }

  /** As inside a callback: the others may wait for it. Each wait would be a fifth of a second. */
  @Test
  void copyOfAThreadThatMayNotWait_goesOnAtOnce_whereOthersHaveAllMemory() {
    AtomicReference<Staging> staging = new AtomicReference<>();
    AtomicInteger asked = new AtomicInteger();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      staging.set(
          new Staging(
              (_, _) -> {
                asked.incrementAndGet();
                long quickest = Long.MAX_VALUE; // this thread may have no processor for a while
                for (int i = 1; i <= 25; i++) {
                  long start = System.nanoTime();
                  copy(cuda, staging.get(), 3);
                  quickest = Math.min(quickest, System.nanoTime() - start);
                }
                assertThat(quickest).isLessThan(TimeUnit.MILLISECONDS.toNanos(180));
                return null;
              },
              8 * PIECE));
      DriverStream stream = EngineMemory.streamOf(cuda.device(0).nullStream());
      try (Buffer buffer = cuda.allocate(64)) {
        OpenStream open = new OpenStream(stream, false);
        assertThat(staging.get().more(EngineMemory.of(buffer), open, 8 * PIECE)).isNull();
      }
    }
    assertThat(asked).hasValue(1);
  }
}
