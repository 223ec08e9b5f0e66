package io.cuvette.internal.index;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
}
