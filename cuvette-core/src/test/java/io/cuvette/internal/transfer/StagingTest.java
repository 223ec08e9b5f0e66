package io.cuvette.internal.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.hostcopy.HostParts;
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
}
