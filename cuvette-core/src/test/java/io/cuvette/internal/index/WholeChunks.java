package io.cuvette.internal.index;

/** Takes entire chunks out of an arena, as pools do that release or lend them. */
final class WholeChunks {
  private WholeChunks() {}

  /** The smallest free chunk of at least so many bytes, in use now, or {@link BlockArena#NONE}. */
  static int take(BlockArena arena, long minBytes) {
    int block = arena.findWhole(minBytes);
    if (block != BlockArena.NONE) {
      arena.take(block, arena.bytes(block));
    }
    return block;
  }
}
