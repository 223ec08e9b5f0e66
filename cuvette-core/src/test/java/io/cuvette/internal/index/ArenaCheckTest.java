package io.cuvette.internal.index;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Field;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Records that the other tests of the arena rely on being found where they are wrong. */
class ArenaCheckTest {
  private static final long ADDRESS = 0x10000;
  private static final long UNITS = 8;
  private static final int CHUNK = 3;
  private static final int SHIFT = Long.numberOfTrailingZeros(BlockArena.UNIT_BYTES);

  /** A block in use, and a free one behind it. */
  private final BlockArena arena = new BlockArena();

  /** The same in records of their own. */
  private final BlockTable blocks = new BlockTable();

  private final int free;

  ArenaCheckTest() {
    int _ = arena.add(ADDRESS, UNITS * BlockArena.UNIT_BYTES, CHUNK);
    int _ = arena.take(BlockArena.UNIT_BYTES);
    int used = blocks.create(ADDRESS, UNITS, ADDRESS, CHUNK);
    free = blocks.cut(used, 1, SHIFT);
  }

  private void check() {
    new ArenaCheck(arena, blocks, new SizeIndex(blocks, DenseSizes.LIMIT_UNITS), free).run();
  }

  @Test
  void recordsThatAgree_areValid() {
    assertThatCode(this::check).doesNotThrowAnyException();
  }

  @Test
  void blockOfAnotherBaseThanTheOneBefore_isNamed() {
    blocks.base(free, ADDRESS + BlockArena.UNIT_BYTES);
    assertThatThrownBy(this::check)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("base after block");
  }

  @Test
  void trieThatDoesNotAgreeWithItself_isNamed() throws ReflectiveOperationException {
    assertTrieIsWrong("root of height", trie -> trie.roots[2] = BlockTable.NONE);
    assertTrieIsWrong("height of root", trie -> trie.parents[trie.roots[2]] = ~1);
    assertTrieIsWrong("parts of height", trie -> trie.bitmaps[trie.roots[2] << 1] = 0);
    assertTrieIsWrong("whole of height", trie -> trie.bitmaps[(trie.roots[2] << 1) + 1] = 1);
    assertTrieIsWrong("parent of node", trie -> trie.parents[trie.parents[trie.leaf] >> 6] = 0);
    assertTrieIsWrong("parts of node", trie -> trie.bitmaps[trie.leaf << 1] = 0);
    assertTrieIsWrong("whole of node", trie -> trie.bitmaps[(trie.leaf << 1) + 1] = 1);
    assertTrieIsWrong("leaf of block", trie -> trie.table.leaf(trie.block, trie.leaf + 1));
    assertTrieIsWrong("before block", trie -> trie.table.before(trie.block, trie.block));
  }

  private static void assertTrieIsWrong(String what, Consumer<Trie> change)
      throws ReflectiveOperationException {
    Trie trie = new Trie();
    assertThat(trie.index.checkAndCount()).isOne();
    change.accept(trie);
    assertThatThrownBy(trie.index::checkAndCount)
        .isInstanceOf(AssertionError.class)
        .hasMessageStartingWith(what + ":");
  }

  /** One part of a chunk that is too large for the sizes that are addressed directly. */
  private static final class Trie {
    private static final long LARGE = 3 * 4096 + 2 * 64 + 1; // height 2

    final BlockTable table = new BlockTable();
    final SizeIndex index = new SizeIndex(table, DenseSizes.LIMIT_UNITS);
    final int block = table.create(0, LARGE + 1, 0, 0);
    final int[] roots;
    final int[] parents;
    final long[] bitmaps;
    final int leaf;

    Trie() throws ReflectiveOperationException {
      int _ = table.cut(block, LARGE, SHIFT);
      index.reserve(LARGE, 1);
      index.insert(block);
      Object sparse = of(index, "sparse");
      roots = (int[]) of(sparse, "roots");
      parents = (int[]) of(sparse, "parents");
      bitmaps = (long[]) of(sparse, "bitmaps");
      leaf = table.leaf(block);
    }

    private static Object of(Object owner, String name) throws ReflectiveOperationException {
      Field field = owner.getClass().getDeclaredField(name);
      field.setAccessible(true);
      return field.get(owner);
    }
  }
}
