package io.cuvette.internal.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.DriverStream;
import java.util.Optional;
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
}
