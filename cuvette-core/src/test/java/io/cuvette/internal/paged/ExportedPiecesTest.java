package io.cuvette.internal.paged;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.EngineMemory;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.channel.PoolHandle;
import org.junit.jupiter.api.Test;

/** One descriptor of each piece, as long as the piece is mapped. */
class ExportedPiecesTest {
  private static final long AT = 0x200000;

  private final DescriptorCalls calls = EngineMemory.descriptors();
  private final ExportedPieces pieces = new ExportedPieces();

  private PoolHandle exported() {
    return new PoolHandle(calls, calls.memoryFile("piece", 0), null);
  }

  /** Else it would keep the memory of the piece until the collector finds it. */
  @Test
  void pieceThatAnotherThreadExportsMeanwhile_hasTheDescriptorOfThat() {
    PoolHandle ours = exported();
    PoolHandle theirs = exported();
    PoolHandle copy =
        pieces.of(
            AT,
            () -> {
              pieces.of(AT, () -> theirs).close();
              return ours;
            });
    assertThat(ours.isClosed()).isTrue();
    assertThat(theirs.isClosed()).isFalse();
    assertThat(calls.compare(copy.descriptor(), theirs.descriptor()))
        .isEqualTo(DescriptorCalls.Sameness.SAME);
    pieces.drop(AT, 1);
    assertThat(theirs.isClosed()).isTrue();
    assertThat(copy.isClosed()).isFalse();
    copy.close();
  }
}
