package io.cuvette.internal.paged;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.EngineMemory;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.channel.PoolHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
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

  @Test
  void piece_isExportedOnce_andCopiedForEachWhoAsks() {
    AtomicInteger exports = new AtomicInteger();
    for (int i = 0; i < 3; i++) {
      for (long at : new long[] {AT, 2 * AT}) {
        pieces
            .of(
                at,
                () -> {
                  exports.incrementAndGet();
                  return exported();
                })
            .close();
      }
    }
    assertThat(exports).hasValue(2);
    pieces.drop(AT, 2 * AT);
  }

  /** Of those around it nothing ends. */
  @Test
  void range_endsWithItsLastByte() {
    List<PoolHandle> handles = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      PoolHandle handle = exported();
      handles.add(handle);
      pieces.of(i * AT, () -> handle).close();
    }
    pieces.drop(AT, 2 * AT);
    assertThat(handles)
        .extracting(PoolHandle::isClosed)
        .containsExactly(false, true, true, false, false, false);
    pieces.drop(3 * AT + 1, 2 * AT);
    assertThat(handles)
        .extracting(PoolHandle::isClosed)
        .containsExactly(false, true, true, false, true, true);
    pieces.drop(0, 6 * AT);
    assertThat(handles).allMatch(PoolHandle::isClosed);
  }
}
