package io.cuvette.internal.hostcopy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** What is checked of memory of the host before it is copied, and said of it after. */
@SuppressWarnings("restricted")
class HostPartsTest {
  private static final long MOST = (long) Integer.MAX_VALUE * HostParts.PIECE_BYTES;

  private static MemorySegment ofBytes(long bytes) {
    return MemorySegment.NULL.reinterpret(bytes);
  }

  @Test
  void moreBytesThanABufferHas_areRefused_alsoWhereTheirSumOverflows() {
    for (List<MemorySegment> parts :
        List.of(
            List.of(ofBytes(MOST + 1)),
            List.of(ofBytes(MOST), ofBytes(1)),
            List.of(ofBytes(MOST), ofBytes(Long.MAX_VALUE)))) {
      assertThatThrownBy(() -> HostParts.of("rows", parts, false))
          .isInstanceOf(IndexOutOfBoundsException.class)
          .hasMessage("rows: more bytes than %d (expected: those of a buffer)", MOST);
    }
    assertThatThrownBy(() -> HostParts.of("source", ofBytes(MOST + 1), false))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThat(HostParts.of("source", ofBytes(MOST), false).pieces()).isEqualTo(Integer.MAX_VALUE);
  }

  @Test
  void whatThisThreadMayNotUse_isNamed() throws InterruptedException {
    AtomicReference<MemorySegment> made = new AtomicReference<>();
    Arena closed = Arena.ofConfined();
    MemorySegment gone = closed.allocate(8);
    closed.close();
    MemorySegment fine = MemorySegment.ofArray(new byte[8]);
    Thread.ofPlatform().start(() -> made.set(Arena.ofConfined().allocate(8))).join();
    MemorySegment elsewhere = made.get();
    for (boolean written : new boolean[] {false, true}) {
      assertThatThrownBy(() -> HostParts.of("source", elsewhere, written))
          .isInstanceOf(WrongThreadException.class)
          .hasMessageStartingWith("source: ")
          .hasMessageEndingWith(" is confined to another thread");
      assertThatThrownBy(() -> HostParts.of("rows", List.of(fine, elsewhere), written))
          .isInstanceOf(WrongThreadException.class)
          .hasMessageStartingWith("rows[1]: ");
      assertThatThrownBy(() -> HostParts.of("rows", List.of(fine, gone), written))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("rows[1]: the arena of ");
    }
    assertThatThrownBy(() -> HostParts.of("rows", List.of(fine, fine.asReadOnly()), true))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageEndingWith("is read-only");
    assertThat(HostParts.of("rows", List.of(fine, fine.asReadOnly()), false).byteSize())
        .isEqualTo(16);
  }

  /** The JVM does not say which memory it was. */
  @Test
  void arenaThatIsClosedBeforeItsPieceIsCopied_isNamed_ifItIsThatOfThePart() {
    MemorySegment fine = MemorySegment.ofArray(new byte[8]);
    for (boolean fromHere : new boolean[] {false, true}) {
      Arena arena = Arena.ofConfined();
      HostParts mine = HostParts.of("rows", List.of(fine, arena.allocate(8)), false);
      HostParts others = HostParts.of("source", fine, false);
      MemorySegment memory = arena.allocate(16);
      arena.close();
      assertThatThrownBy(() -> mine.copy(0, MemorySegment.ofArray(new byte[16]), 0, fromHere))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("rows[1]: the arena of ")
          .hasMessageEndingWith("was closed during the copy");
      assertThatThrownBy(() -> others.copy(0, memory, 0, fromHere))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageNotContaining("source");
    }
  }

  /** Rows of every type of array are measured by it. */
  @Test
  void rowsOfArrays_haveTheBytesOfTheirType() {
    Object[] arrays = {
      new byte[3], new short[3], new char[3], new int[3], new float[3], new long[3], new double[3]
    };
    long[] expected = {3, 6, 6, 12, 12, 24, 24};
    for (int i = 0; i < arrays.length; i++) {
      Object[] rows = {arrays[i], arrays[i]};
      HostParts parts = HostParts.of("rows", new ArrayRows(rows), false);
      assertThat(parts.byteSize()).as("%s", arrays[i].getClass()).isEqualTo(2 * expected[i]);
    }
  }
}
