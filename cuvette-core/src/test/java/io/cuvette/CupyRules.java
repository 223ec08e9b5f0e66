package io.cuvette;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What CuPy documents of its pool, in the plainest way: units of 512 bytes; for each stream the
 * free blocks of its own, of which the smallest that fits is taken; an exact split and a full merge
 * within one allocation; a block goes back to where it came from; a miss allocates the rounded
 * size, and where that is beyond the limit all whole free allocations are released first.
 *
 * <p>Two rules are Cuvette's own. What was cached for a stream that is closed is everybody's: a
 * miss takes the best fit of it. And before anything is released, or memory refused, the best fit
 * of any stream is taken. A whole allocation then belongs to the stream that asked; a part of one
 * is lent.
 *
 * <p>Where several blocks of one size fit, any of them is right: the model follows the pool. Not
 * thread-safe.
 */
final class CupyRules {
  static final long UNIT = 512;

  /** Instead of a size: no block fits. */
  private static final long NONE = Long.MAX_VALUE;

  private final long limit;
  private final List<Arena> arenas = new ArrayList<>();
  private final Map<Long, Block> freeAt = new HashMap<>();

  /** The allocations that are held: where each begins, and where it ends. */
  private final TreeMap<Long, Long> allocations = new TreeMap<>();

  long held;
  long used;

  CupyRules(long limit) {
    this.limit = limit;
  }

  /** The blocks that go back to one stream. */
  static final class Arena {
    private final TreeSet<Block> free =
        new TreeSet<>(
            Comparator.comparingLong((Block block) -> block.bytes)
                .thenComparingLong(block -> block.address));
    private boolean isClosed;

    private long bestFit(long bytes) {
      Block found = free.ceiling(new Block(0, bytes, this));
      return found == null ? NONE : found.bytes;
    }
  }

  /** A part of an allocation, or all of it. */
  static final class Block {
    final long address;
    private long bytes;
    private Arena home;
    private @Nullable Block before;
    private @Nullable Block after;

    private Block(long address, long bytes, Arena home) {
      this.address = address;
      this.bytes = bytes;
      this.home = home;
    }

    private boolean isWhole() {
      return before == null && after == null;
    }
  }

  Arena open() {
    Arena arena = new Arena();
    arenas.add(arena);
    return arena;
  }

  void close(Arena arena) {
    arena.isClosed = true;
  }

  int freeBlocks() {
    return freeAt.size();
  }

  int allocations() {
    return allocations.size();
  }

  long largestFree() {
    return arenas.stream()
        .filter(arena -> !arena.free.isEmpty())
        .mapToLong(arena -> arena.free.last().bytes)
        .max()
        .orElse(0);
  }

  private static long rounded(long bytes) {
    return (bytes + UNIT - 1) / UNIT * UNIT;
  }

  /** The best fit of any arena but one. */
  private long bestFit(long bytes, Arena but, boolean closedOnly) {
    long best = NONE;
    for (Arena arena : arenas) {
      if (arena != but && (arena.isClosed || !closedOnly)) {
        best = Math.min(best, arena.bestFit(bytes));
      }
    }
    return best;
  }

  /**
   * A pool gave memory at an address for a request.
   *
   * @throws AssertionError if the rules say something else
   */
  Block allocated(Arena asking, long request, long address) {
    long bytes = rounded(request);
    long expected = asking.bestFit(bytes);
    Predicate<Arena> from = arena -> arena == asking;
    if (expected == NONE) {
      expected = bestFit(bytes, asking, true);
      from = arena -> arena.isClosed;
    }
    if (expected == NONE && held + bytes > limit) {
      expected = bestFit(bytes, asking, false);
      from = _ -> true;
    }
    if (expected == NONE) {
      if (held + bytes > limit) {
        release(null);
      }
      return grown(asking, bytes, address);
    }
    Block block = freeAt.get(address);
    require(
        block != null && block.bytes == expected && from.test(block.home),
        "%d bytes at 0x%x, of %s (expected: of a block of %d that the rules allow)",
        bytes,
        address,
        block == null ? "new memory" : "a block of " + block.bytes,
        expected);
    return take(asking, Objects.requireNonNull(block), bytes);
  }

  /** A pool refused a request for want of memory. */
  void refused(Arena asking, long request) {
    long bytes = rounded(request);
    require(held + bytes > limit, "%d bytes (expected: %d + %d fit)", bytes, held, limit);
    require(asking.bestFit(bytes) == NONE, "%d bytes: they are free here", bytes);
    if (bytes <= limit) {
      require(bestFit(bytes, asking, false) == NONE, "%d bytes: they are free", bytes);
      release(null);
      require(held + bytes > limit, "%d bytes: they can be released", bytes);
    }
  }

  private Block grown(Arena asking, long bytes, long address) {
    require(held + bytes <= limit, "%d bytes at 0x%x: beyond the limit", bytes, address);
    var below = allocations.lowerEntry(address + bytes);
    require(below == null || below.getValue() <= address, "0x%x is held already", address);
    allocations.put(address, address + bytes);
    held += bytes;
    used += bytes;
    return new Block(address, bytes, asking);
  }

  private Block take(Arena asking, Block block, long bytes) {
    remove(block);
    if (block.isWhole() && (block.bytes == bytes || block.home.isClosed)) {
      block.home = asking; // a part is lent
    }
    if (block.bytes > bytes) {
      Block tail = new Block(block.address + bytes, block.bytes - bytes, block.home);
      tail.before = block;
      tail.after = block.after;
      if (tail.after != null) {
        tail.after.before = tail;
      }
      block.after = tail;
      block.bytes = bytes;
      add(tail);
    }
    used += bytes;
    return block;
  }

  /** A block is given back, by whatever thread. */
  void freed(Block block) {
    used -= block.bytes;
    Block merged = block;
    if (block.before != null && isFree(block.before)) {
      merged = block.before;
      remove(merged);
      join(merged, block);
    }
    Block after = merged.after;
    if (after != null && isFree(after)) {
      remove(after);
      join(merged, after);
    }
    add(merged);
  }

  private static void join(Block head, Block tail) {
    head.bytes += tail.bytes;
    head.after = tail.after;
    if (tail.after != null) {
      tail.after.before = head;
    }
  }

  private boolean isFree(Block block) {
    return freeAt.get(block.address) == block;
  }

  private void add(Block block) {
    freeAt.put(block.address, block);
    block.home.free.add(block);
  }

  private void remove(Block block) {
    freeAt.remove(block.address);
    block.home.free.remove(block);
  }

  /** All whole free allocations of one stream are released, or of all if null; gives the bytes. */
  long release(@Nullable Arena of) {
    long before = held;
    for (Arena arena : of == null ? arenas : List.of(of)) {
      for (Block block : arena.free.stream().filter(Block::isWhole).toList()) {
        remove(block);
        allocations.remove(block.address);
        held -= block.bytes;
      }
    }
    return before - held;
  }

  private static void require(boolean holds, String message, Object... arguments) {
    if (!holds) {
      throw new AssertionError(message.formatted(arguments));
    }
  }
}
