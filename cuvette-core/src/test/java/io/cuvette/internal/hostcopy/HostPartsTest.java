package io.cuvette.internal.hostcopy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is checked of memory of the host before it is copied, and said of it after. */
@SuppressWarnings("restricted")
class HostPartsTest {
  private static final int FILE_BYTES = 1 << 16;
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

  /** The array is the caller's, who may use it for the next rows before these are copied. */
  @Test
  void arrayOfRows_isNotChanged_andNotLookedAtAgain() {
    ByteBuffer first = ByteBuffer.allocate(4);
    Object[] rows = {first, new int[2]};
    ArrayRows taken = new ArrayRows(rows);
    assertThat(rows[0]).isSameAs(first);
    rows[1] = new int[5];
    assertThat(taken.get(1).byteSize()).isEqualTo(8);
  }

  private static Object row(Random random, int bytes, Arena arena) {
    byte[] content = new byte[bytes];
    random.nextBytes(content);
    MemorySegment native8 = arena.allocate(bytes, 8).copyFrom(MemorySegment.ofArray(content));
    return switch (random.nextInt(6)) {
      case 0 -> native8;
      case 1 -> native8.asByteBuffer();
      case 2 -> native8.toArray(ValueLayout.JAVA_DOUBLE);
      case 3 -> native8.toArray(ValueLayout.JAVA_SHORT);
      case 4 -> native8.toArray(ValueLayout.JAVA_INT);
      default -> content;
    };
  }

  /** Whatever they are, and wherever the pieces begin and end. */
  @Test
  void piecesOfManyRows_areTheirBytesOneAfterTheOther_bothWays() {
    Random random = new Random(17);
    int[][] sizes = {{20_000, 5}, {40, 2000}, {7, 30_000}, {1, 90_000}, {2, 32_768}};
    for (int[] each : sizes) {
      try (Arena arena = Arena.ofConfined()) {
        for (boolean arrays : new boolean[] {false, true}) {
          Object[] rows = new Object[each[0]];
          for (int i = 0; i < rows.length; i++) {
            int bytes = 8 * random.nextInt(1 + each[1]);
            rows[i] = arrays ? new byte[bytes] : row(random, bytes, arena);
          }
          checkPieces(new ArrayRows(rows), random);
        }
      }
    }
  }

  private static void checkPieces(List<MemorySegment> rows, Random random) {
    HostParts parts = HostParts.of("rows", rows, true);
    long bytes = rows.stream().mapToLong(MemorySegment::byteSize).sum();
    assertThat(parts.byteSize()).isEqualTo(bytes);
    byte[] content = new byte[(int) bytes];
    random.nextBytes(content);
    MemorySegment memory = MemorySegment.ofArray(content);
    int pieces = parts.pieces();
    assertThat(pieces).isEqualTo((int) Math.ceilDiv(bytes, HostParts.PIECE_BYTES));
    for (int piece = pieces - 1; piece >= 0; piece--) {
      parts.copy(piece, memory, (long) piece * HostParts.PIECE_BYTES, false);
    }
    long at = 0;
    for (MemorySegment row : rows) {
      assertThat(row.mismatch(memory.asSlice(at, row.byteSize()))).isEqualTo(-1);
      at += row.byteSize();
    }
    MemorySegment back = MemorySegment.ofArray(new byte[HostParts.PIECE_BYTES + 2]);
    for (int piece = 0; piece < pieces; piece++) {
      long from = (long) piece * HostParts.PIECE_BYTES;
      long length = Math.min(HostParts.PIECE_BYTES, bytes - from);
      assertThat(parts.bytesOf(piece)).isEqualTo(length);
      back.fill((byte) 0);
      parts.copy(piece, back, 1, true);
      assertThat(back.asSlice(1, length).mismatch(memory.asSlice(from, length))).isEqualTo(-1);
      assertThat(back.get(ValueLayout.JAVA_BYTE, 0)).isZero();
      assertThat(back.get(ValueLayout.JAVA_BYTE, length + 1)).isZero();
    }
  }

  /** What is checked is what is copied. */
  @Test
  void listThatChangesLater_isNotThatOfTheParts() {
    List<MemorySegment> given = new ArrayList<>(List.of(MemorySegment.ofArray(new byte[] {1})));
    HostParts parts = HostParts.of("rows", given, false);
    given.set(0, MemorySegment.ofArray(new byte[] {2}));
    byte[] copied = new byte[1];
    parts.copy(0, MemorySegment.ofArray(copied), 0, true);
    assertThat(copied).containsExactly(1);
    given.set(0, null);
    assertThatThrownBy(() -> HostParts.of("rows", given, false))
        .isInstanceOf(NullPointerException.class);
  }

  @Test
  void segmentsOffTheHeap_areGivenOneByOne_andNoOthers() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment off = arena.allocate(8);
      MemorySegment on = MemorySegment.ofArray(new byte[8]);
      List<List<Object>> cases =
          List.of(
              List.of(off), List.of(on), List.of(on, off, on, off), List.of(new int[2], off, on));
      for (List<Object> each : cases) {
        List<MemorySegment> found = new ArrayList<>();
        HostParts.of("rows", new ArrayRows(each.toArray()), false).forEachNative(found::add);
        assertThat(found).allMatch(off::equals).hasSize(Collections.frequency(each, off));
      }
      List<MemorySegment> found = new ArrayList<>();
      HostParts.of("source", on, false).forEachNative(found::add);
      HostParts.of("rows", List.of(on, on), false).forEachNative(found::add);
      HostParts.of("rows", new ArrayRows(new int[3][2]), false).forEachNative(found::add);
      assertThat(found).isEmpty();
      HostParts.of("source", off, false).forEachNative(found::add);
      assertThat(found).containsExactly(off);
    }
  }

  /** Threads that help may not touch what is confined to this one. */
  @Test
  void partsAreForAllThreads_ifEachIs() {
    MemorySegment heap = MemorySegment.ofArray(new int[2]);
    Object[][] rows = {{new int[2], new int[3]}, {new int[2], heap}};
    try (Arena confined = Arena.ofConfined();
        Arena shared = Arena.ofShared()) {
      MemorySegment mine = confined.allocate(8);
      MemorySegment ours = shared.allocate(8);
      for (MemorySegment each : List.of(heap, mine, ours)) {
        boolean forAll = each != mine;
        assertThat(HostParts.of("source", each, false).isForAllThreads()).isEqualTo(forAll);
        for (List<MemorySegment> parts : List.of(List.of(heap, each), List.of(each, ours))) {
          assertThat(HostParts.of("rows", parts, false).isForAllThreads()).isEqualTo(forAll);
        }
        ArrayRows mixed = new ArrayRows(new Object[] {each, new byte[1]});
        assertThat(HostParts.of("rows", mixed, false).isForAllThreads()).isEqualTo(forAll);
      }
      assertThat(HostParts.of("rows", List.of(), false).isForAllThreads()).isTrue();
      for (Object[] each : rows) {
        assertThat(HostParts.of("rows", new ArrayRows(each), false).isForAllThreads()).isTrue();
      }
    }
  }

  /** Of memory that nobody knows to be of a file the JVM's own error is all that is known. */
  @Test
  void fileThatShrank_isThatOfThePart_orOfTheBuffer(@TempDir Path folder) throws IOException {
    MemorySegment heap = MemorySegment.ofArray(new byte[FILE_BYTES]);
    try (Arena arena = Arena.ofShared();
        FileChannel file =
            FileChannel.open(
                folder.resolve("rows"),
                StandardOpenOption.CREATE,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
      MemorySegment mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, FILE_BYTES, arena);
      MemorySegment unknown = MemorySegment.ofAddress(mapped.address()).reinterpret(FILE_BYTES);
      file.truncate(0);
      List<MemorySegment> parts = List.of(MemorySegment.ofArray(new byte[8]), mapped);
      String shrunk = "the file that %s is mapped from has shrunk, or cannot be read";
      MemorySegment room = MemorySegment.ofArray(new byte[2 * FILE_BYTES]);
      checkShrunk(HostParts.of("rows", parts, false), room, "rows[1]: " + shrunk.formatted(mapped));
      checkShrunk(
          HostParts.of("source", mapped, false), room, "source: " + shrunk.formatted(mapped));
      checkShrunk(HostParts.of("source", heap, false), mapped, shrunk.formatted("the buffer"));
      HostParts source = HostParts.of("source", unknown, false);
      assertThatThrownBy(() -> source.copy(0, room, 0, true)).isInstanceOf(InternalError.class);
    }
  }

  private static void checkShrunk(HostParts source, MemorySegment target, String message) {
    assertThatThrownBy(() -> source.copy(0, target, 0, true))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(message)
        .hasCauseInstanceOf(InternalError.class);
  }
}
