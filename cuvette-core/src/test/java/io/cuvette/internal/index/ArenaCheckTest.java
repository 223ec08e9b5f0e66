package io.cuvette.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Field;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Records that the other tests of the arena rely on being found where they are wrong. */
class ArenaCheckTest {
  private static final long ADDRESS = 0x10000;
  private static final long UNITS = 8;
  private static final int CHUNK = 3;
  private static final long UNIT = BlockArena.UNIT_BYTES;
  private static final int SHIFT = Long.numberOfTrailingZeros(BlockArena.UNIT_BYTES);

  /** A block in use, and a free one behind it. */
  private final BlockArena arena = new BlockArena();

  /** The same in records of their own. */
  private final BlockTable blocks = new BlockTable();

  private final int used;
  private final int free;

  ArenaCheckTest() {
    int _ = arena.add(ADDRESS, UNITS * UNIT, CHUNK);
    int _ = arena.take(UNIT);
    used = blocks.create(ADDRESS, UNITS, ADDRESS, CHUNK);
    free = blocks.cut(used, 1, SHIFT);
  }

  private static void check(BlockArena arena, BlockTable blocks, int pending) {
    new ArenaCheck(arena, blocks, new SizeIndex(blocks, DenseSizes.LIMIT_UNITS), pending).run();
  }

  private void check() {
    check(arena, blocks, free);
  }

  private void checkNames(String what) {
    assertThatThrownBy(this::check)
        .isInstanceOf(AssertionError.class)
        .hasMessageStartingWith(what + ": ");
  }

  @Test
  void recordsThatAgree_areValid() {
    assertThatCode(this::check).doesNotThrowAnyException();
  }

  @Test
  void blockOfAnotherBaseThanTheOneBefore_isNamed() {
    blocks.base(free, ADDRESS + UNIT);
    checkNames("base after block");
  }

  @Test
  void bytesOfAChunkThatIsNotRecorded_areNamed() {
    int _ = arena.adopt(ADDRESS << 1, 5 * UNIT, CHUNK + 1);
    checkNames("usedBytes");
  }

  @Test
  void freeBytesOfAChunkThatIsNotRecorded_areNamed() {
    int _ = arena.add(ADDRESS << 1, 5 * UNIT, CHUNK + 1);
    checkNames("freeBytes");
  }

  @Test
  void blockWithoutBytes_isNamed() {
    int _ = blocks.create(ADDRESS << 1, 0, ADDRESS << 1, CHUNK + 1);
    checkNames("bytes of block");
  }

  @Test
  void blockThatEndsBeforeTheNext_isNamed() {
    BlockArena gap = new BlockArena();
    int whole = gap.adopt(ADDRESS, UNITS * UNIT, CHUNK);
    assertThat(gap.cut(whole, 2 * UNIT)).isEqualTo(free);
    int _ = gap.cut(whole, UNIT); // lies between them
    assertThatThrownBy(() -> check(gap, blocks, free))
        .hasMessageStartingWith("address after block: ");
  }

  private static Field field(Object of, String name) throws ReflectiveOperationException {
    Field field = of.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  @Test
  void firstBlockThatDoesNotBeginItsChunk_isNamed() throws ReflectiveOperationException {
    BlockTable own = (BlockTable) field(arena, "blocks").get(arena);
    own.base(used, ADDRESS - UNIT);
    checkNames("offset of first block");
  }

  /** Where assertions are on, as here. */
  @Test
  void wrongRecordBesideAChange_isFoundAtOnce() throws ReflectiveOperationException {
    BlockTable own = (BlockTable) field(arena, "blocks").get(arena);
    own.base(free, ADDRESS + UNIT);
    assertThatThrownBy(() -> arena.take(free, UNIT)).isInstanceOf(AssertionError.class);
    own.base(free, ADDRESS);
    assertThatCode(() -> arena.give(free)).doesNotThrowAnyException();
  }

  @Test
  void largestBlockThatIsNotKnown_isNamed() throws ReflectiveOperationException {
    BlockArena wrong = new BlockArena();
    int large = wrong.adopt(ADDRESS, 4 * UNIT, CHUNK);
    int small = wrong.adopt(ADDRESS << 1, 2 * UNIT, CHUNK);
    int _ = wrong.give(large); // is in the index then
    int _ = wrong.give(small);
    wrong.assertValid();
    Object index = field(wrong, "index").get(wrong);
    Object dense = field(index, "dense").get(index);
    Arrays.fill((long[]) field(dense, "top").get(dense), 0);
    assertThatThrownBy(wrong::assertValid).hasMessageStartingWith("largestFreeBytes: ");
  }

  /** What is counted beside the records, each by itself. */
  @Test
  void numberThatIsOneTooLarge_isNamed() throws ReflectiveOperationException {
    String[][] numbers = {
      {"", "usedUnits", "usedBytes"},
      {"", "heldUnits", "freeBytes"},
      {"index", "wholeUnits", "releasableBytes"},
      {"", "usedBlocks", "usedBlocks"},
      {"blocks", "live", "freeBlocks"},
      {"", "chunks", "chunks"}
    };
    for (String[] each : numbers) {
      BlockArena wrong = new BlockArena();
      int[] three = new int[3];
      for (int chunk = 0; chunk < three.length; chunk++) {
        three[chunk] = wrong.adopt(ADDRESS << chunk, (2 + chunk) * UNIT, chunk);
      }
      int _ = wrong.give(three[0]); // is in the index then
      int _ = wrong.give(three[1]);
      wrong.assertValid();
      Object of = each[0].isEmpty() ? wrong : field(wrong, each[0]).get(wrong);
      Field number = field(of, each[1]);
      if (number.getType() == int.class) {
        number.setInt(of, number.getInt(of) + 1);
      } else {
        number.setLong(of, number.getLong(of) + 1);
      }
      assertThatThrownBy(wrong::assertValid)
          .isInstanceOf(AssertionError.class)
          .hasMessageStartingWith(each[2] + ": ");
    }
  }

  /** Whether it says that there is a block where none is, or the other way round. */
  @Test
  void bitAboveOthersThatIsWrong_isNamed() throws ReflectiveOperationException {
    for (String words : new String[] {"middle", "top"}) {
      for (int kind : new int[] {SizeIndex.PARTS, SizeIndex.WHOLE}) {
        SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
        index.reserve(3, 1);
        index.insert(blocks.create(ADDRESS << 1, 3, ADDRESS << 1, CHUNK));
        assertThat(index.checkAndCount()).isEqualTo(1);
        Object dense = field(index, "dense").get(index);
        long[] bits = (long[]) field(dense, words).get(dense);
        assertThat(bits[kind]).isEqualTo(kind == SizeIndex.WHOLE ? 1 : 0);
        bits[kind] ^= 1;
        assertThatThrownBy(index::checkAndCount).hasMessageStartingWith("bit of word: " + kind);
      }
    }
  }

  @Test
  void recycledBlockBehindAnother_isNamed() {
    blocks.recycle(free);
    checkNames("next of block");
  }

  @Test
  void nextBlockThatKnowsNothingOfTheOneBefore_isNamed() {
    blocks.recycle(free);
    int again = blocks.create(ADDRESS + UNIT, UNITS - 1, ADDRESS, CHUNK);
    assertThat(again).isEqualTo(free);
    checkNames("prev of next of block");
  }

  /** Found at the one behind it, which has a lower number. */
  @Test
  void blockThatKnowsNothingOfTheNext_isNamed() {
    BlockArena other = new BlockArena();
    BlockTable records = new BlockTable();
    int first = other.add(ADDRESS << 1, UNIT, 0);
    int _ = other.add(ADDRESS, UNITS * UNIT, CHUNK);
    int _ = other.remove(first);
    assertThat(records.create(ADDRESS << 1, 1, ADDRESS << 1, 0)).isEqualTo(first);
    int head = records.create(ADDRESS, UNITS, ADDRESS, CHUNK);
    records.recycle(first);
    assertThat(other.take(UNIT)).isEqualTo(head);
    int tail = records.cut(head, 1, SHIFT);
    assertThat(tail).isLessThan(head);
    assertThatCode(() -> check(other, records, tail)).doesNotThrowAnyException();
    records.recycle(head);
    assertThatThrownBy(() -> check(other, records, tail))
        .hasMessage("prev of block: %d (expected to agree with %d)", head, tail);
  }

  @Test
  void freeBlocksBesideEachOther_areNamed() {
    BlockArena apart = new BlockArena();
    int _ = apart.add(ADDRESS, UNIT, CHUNK);
    int _ = apart.add(ADDRESS + UNIT, (UNITS - 1) * UNIT, CHUNK);
    assertThatThrownBy(() -> check(apart, blocks, free))
        .hasMessageStartingWith("free neighbour of block: ");
  }

  /** Two chunks of the arena are one in the records. */
  @Test
  void chunksThatTheRecordsHaveAsOne_areNamed() {
    for (int second : new int[] {CHUNK, CHUNK + 1}) {
      BlockArena apart = new BlockArena();
      int first = apart.adopt(ADDRESS, UNIT, CHUNK);
      int _ = apart.add(ADDRESS + UNIT, (UNITS - 1) * UNIT, second);
      assertThat(first).isEqualTo(used);
      assertThatThrownBy(() -> check(apart, blocks, free))
          .hasMessageStartingWith(second == CHUNK ? "chunks: " : "chunk after block: ");
    }
  }

  @Test
  void freeBlockThatIsNotIndexed_isNamed_unlessItIsThePendingOne() {
    assertThatThrownBy(() -> check(arena, blocks, BlockTable.NOTHING))
        .hasMessageStartingWith("pending block: ");
    blocks.first(free, BlockTable.NOTHING);
    checkNames("pending block");
    assertThatThrownBy(() -> check(arena, blocks, BlockTable.NOTHING))
        .hasMessageStartingWith("blocks in the index: ");
  }

  /** Blocks of two leaves, in a list of one. */
  @Test
  void indexedBlockOfAnotherLeaf_isNamed() {
    SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
    int large = blocks.create(ADDRESS << 1, 1 << 20, ADDRESS << 1, CHUNK);
    index.reserve(1 << 20, 1);
    index.insert(large);
    assertThat(index.checkAndCount()).isEqualTo(1);
    blocks.leaf(large, blocks.leaf(large) + 1);
    assertThatThrownBy(index::checkAndCount).hasMessageStartingWith("leaf of block: ");
  }

  /** It was listed as another kind than it is. */
  @Test
  void indexWhoseBitsAreOfAnotherKind_isNamed() {
    for (long units : new long[] {3, 100, 5000, 1 << 20, 1L << 40}) {
      SizeIndex index = new SizeIndex(blocks, DenseSizes.LIMIT_UNITS);
      int part = blocks.create(ADDRESS << 1, units + 1, ADDRESS << 1, CHUNK);
      int _ = blocks.cut(part, units, SHIFT);
      index.reserve(units, 2);
      index.insert(part);
      assertThat(index.checkAndCount()).isEqualTo(1);
      blocks.split(blocks.next(part), CHUNK + 1);
      assertThatThrownBy(index::checkAndCount).hasMessageStartingWith("kind of block: ");
    }
  }

  /** What the trie of a size says above its leaves, each by itself. */
  @Test
  void recordOfLargeBlocksThatIsWrong_isNamed() throws ReflectiveOperationException {
    for (int kind : new int[] {SizeIndex.PARTS, SizeIndex.WHOLE}) {
      String heights = kind == SizeIndex.WHOLE ? "wholeHeights" : "partHeights";
      String word = kind == SizeIndex.WHOLE ? "whole" : "parts";
      checkNames(
          sparse(kind),
          word + " of height: 0 (expected to agree with 3)",
          trie -> {
            Field known = field(trie, heights);
            known.setLong(trie, known.getLong(trie) ^ (1 << HEIGHT));
          });
      checkNames(
          sparse(kind),
          word + " of height: 0 (expected to agree with 3)",
          trie -> ((long[]) field(trie, "bitmaps").get(trie))[kind] = 0);
      checkNames(
          sparse(kind),
          word + " of node: 1 (expected to agree with 4)",
          trie -> ((long[]) field(trie, "bitmaps").get(trie))[(1 << 1) + kind] = 0);
      checkNames(
          sparse(kind),
          "root of height: -1 (expected to agree with 3)",
          trie -> ((int[]) field(trie, "roots").get(trie))[HEIGHT] = BlockTable.NONE);
      checkNames(
          sparse(kind),
          "height of root: 4 (expected to agree with 3)",
          trie -> ((int[]) field(trie, "parents").get(trie))[0] = ~(HEIGHT + 1));
      checkNames(
          sparse(kind),
          "parent of node: 1 (expected to agree with 0)",
          trie -> ((int[]) field(trie, "parents").get(trie))[1]++);
    }
  }

  private static final int HEIGHT = 3;

  private interface Break {
    void in(Object trie) throws ReflectiveOperationException;
  }

  /** With a block of 2²⁰ units, of a kind: nodes 0 to 3 of the trie of height 3. */
  private SparseSizes sparse(int kind) {
    SparseSizes index = new SparseSizes(blocks);
    int block = blocks.create(ADDRESS << 1, (1 << 20) + 1 - kind, ADDRESS << 1, CHUNK);
    if (kind == SizeIndex.PARTS) {
      block = blocks.cut(block, 1, SHIFT);
    }
    index.reserve(blocks.units(block), 1);
    index.insert(block, blocks.units(block), kind);
    assertThat(index.checkAndCount()).isEqualTo(1);
    return index;
  }

  private static void checkNames(SparseSizes index, String what, Break broken)
      throws ReflectiveOperationException {
    broken.in(index);
    assertThatThrownBy(index::checkAndCount).isInstanceOf(AssertionError.class).hasMessage(what);
  }

  @Test
  void blockOfNoState_isNamed() {
    int block = blocks.create(ADDRESS << 1, 1, ADDRESS << 1, CHUNK + 1);
    blocks.before(block, -4); // as what is recycled
    checkNames("state of block");
  }

  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // it would go on for ever
  void blockThatIsRecycledTwice_isNamed() {
    blocks.recycle(free);
    blocks.recycle(free);
    checkNames("recycled twice");
  }

  @Test
  void listOfBlocks_isOfThoseThatBelongThere() {
    int other = blocks.create(ADDRESS << 1, 1, ADDRESS << 1, CHUNK + 1);
    int whole = blocks.create(ADDRESS << 2, 1, ADDRESS << 2, CHUNK + 2);
    blocks.first(other, whole);
    blocks.first(whole, BlockTable.NOTHING);
    assertThatThrownBy(() -> blocks.checkAndCountList(other, true, 1))
        .hasMessageStartingWith("before block: ");
    blocks.before(whole, other);
    assertThat(blocks.checkAndCountList(other, true, 1)).isEqualTo(2);
    assertThatThrownBy(() -> blocks.checkAndCountList(other, true, 2))
        .hasMessageStartingWith("units of block: ");
    assertThatThrownBy(() -> blocks.checkAndCountList(other, false, 1))
        .hasMessageStartingWith("kind of block: ");
    assertThatThrownBy(() -> blocks.checkAndCountList(used, false, 1))
        .hasMessageStartingWith("state of listed block: ");
  }
}
