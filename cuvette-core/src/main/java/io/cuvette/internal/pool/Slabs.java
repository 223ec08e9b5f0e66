package io.cuvette.internal.pool;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.index.BlockArena;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Blocks that are in use as far as their source knows, and are cut further here: parts of them are
 * in use or free, by best fit over all. What is free goes back in any size:
 *
 * <pre>
 *   here     slab 4   │ in use │ free      │ in use │ free │      block 17 of the source
 *   after    slab 4   │ in use │             slab 9 │ in use │    17 and 23, both in use
 * </pre>
 *
 * <p>Not thread-safe; what gives memory to the source, or takes it, is guarded by its lock too.
 */
public final class Slabs {
  /** No part. */
  public static final int NONE = BlockArena.NONE;

  /** Sizes of 4 MiB and more, of which there are few, are in a trie. */
  private static final int MOST_DENSE_UNITS = 1 << 13;

  private final Source source;
  private final BlockArena parts = new BlockArena(MOST_DENSE_UNITS);

  /** By the number of a slab: its block in the source, and the memory that it is a part of. */
  private int[] blocks = new int[4];

  private @Nullable Memory[] chunks = new Memory[4];
  private int[] unused = new int[4];
  private int unusedCount;
  private int count;

  /** No slabs. */
  public Slabs(Source source) {
    this.source = source;
  }

  /** Where slabs come from. Each step changes nothing if the Java heap is full. */
  public interface Source {
    /** Takes a free block, or its first bytes. */
    void take(int block, long bytes);

    /** Cuts a block in use after some bytes; both parts are in use. The second. */
    int cut(int block, long bytes);

    /** Frees a block that is free since a time. */
    void give(int block, long bytes, long time);
  }

  /**
   * Takes a slab from the source. Changes nothing if the Java heap is full.
   *
   * @param block a free one
   * @param bytes how much of it
   * @param chunk the memory that it is a part of
   */
  public void add(int block, long bytes, Memory chunk, long address) {
    int slab = reserve();
    int part = parts.add(address, bytes, slab);
    boolean isTaken = false;
    try {
      source.take(block, bytes);
      isTaken = true;
    } finally {
      if (!isTaken) {
        int _ = parts.remove(part);
      }
    }
    enter(slab, block, chunk);
  }

  /** The number of the next slab, for which there is room. */
  private int reserve() {
    int slab = unusedCount > 0 ? unused[unusedCount - 1] : count;
    int room = blocks.length;
    if (slab == room) {
      @Nullable Memory[] moreChunks = Arrays.copyOf(chunks, room * 2);
      int[] moreUnused = Arrays.copyOf(unused, room * 2);
      blocks = Arrays.copyOf(blocks, room * 2);
      chunks = moreChunks;
      unused = moreUnused;
    }
    return slab;
  }

  private void enter(int slab, int block, @Nullable Memory chunk) {
    blocks[slab] = block;
    chunks[slab] = chunk;
    if (slab == count) {
      count++;
    } else {
      unusedCount--;
    }
  }

  /**
   * The smallest free part of at least so many bytes, or {@link #NONE}. Makes room in the Java heap
   * for taking it, and changes nothing else.
   */
  public int find(long bytes) {
    return parts.find(bytes);
  }

  /**
   * Whether a part that was found is to be cut for a block: it is little larger, or was cut last.
   * Else another may be, here or elsewhere, that large blocks miss less.
   */
  public boolean suits(int part, long bytes) {
    return isClose(parts.bytes(part), bytes) || parts.isNewest(part);
  }

  /** Whether so many free bytes are little more than a block has. */
  public static boolean isClose(long freeBytes, long bytes) {
    return freeBytes <= 2 * bytes;
  }

  /** Size of the smallest free part of at least so many bytes; 0 if there is none. */
  public long bestFitBytes(long bytes) {
    return parts.bestFitBytes(bytes);
  }

  public long bytes(int part) {
    return parts.bytes(part);
  }

  /** Takes the first bytes of a part that was found. Allocates nothing in the Java heap. */
  public void take(int part, long bytes) {
    parts.take(part, bytes);
  }

  /** Frees a part in use. Changes nothing if the Java heap is full. */
  public void give(int part) {
    int _ = parts.give(part);
  }

  /** The memory that the slab of a part is a part of. */
  public Memory chunk(int part) {
    return Objects.requireNonNull(chunks[parts.chunk(part)]);
  }

  public long address(int part) {
    return parts.address(part);
  }

  /**
   * Gives the smallest free part of at least so many bytes back to the source; false if there is
   * none. If the Java heap is full, nothing was freed.
   */
  public boolean release(long bytes, long time) {
    int part = parts.bestFit(bytes);
    if (part != NONE) {
      release(part, time);
    }
    return part != NONE;
  }

  /** Gives all that is free back, as far as the Java heap allows; false if that is nothing. */
  public boolean releaseAll(long time) {
    boolean any = false;
    int part = parts.bestFit(BlockArena.UNIT_BYTES);
    while (part != NONE) {
      releaseSlab(part, time);
      any = true;
      part = parts.bestFit(BlockArena.UNIT_BYTES);
    }
    return any;
  }

  /** The last part comes first: each is moved to another slab once at most. */
  private void releaseSlab(int any, long time) {
    int part = any;
    for (int next = part; next != NONE; next = parts.next(next)) {
      part = next;
    }
    while (part != NONE) {
      int prev = parts.prev(part);
      if (parts.isFree(part)) {
        release(part, time);
      }
      part = prev;
    }
  }

  /** What is beside a part becomes slabs of its own, before and behind it. */
  private void release(int part, long time) {
    int next = parts.next(part);
    if (next != NONE) {
      splitBefore(next);
    }
    if (parts.prev(part) != NONE) {
      splitBefore(part);
    }
    int slab = parts.chunk(part);
    source.give(blocks[slab], parts.bytes(part), time);
    int _ = parts.remove(part);
    chunks[slab] = null;
    unused[unusedCount++] = slab;
  }

  private void splitBefore(int part) {
    int slab = parts.chunk(part);
    int other = reserve();
    parts.makeRoomForPending();
    int block = source.cut(blocks[slab], parts.offset(part));
    parts.split(part, other);
    enter(other, block, chunks[slab]);
  }

  /** How many more parts are in use than there are slabs. */
  public int blocksBeside() {
    return parts.usedBlocks() - parts.chunks();
  }

  /** Checks all that this class promises. */
  public void assertValid() {
    parts.assertValid();
    assert parts.chunks() == count - unusedCount : this;
  }
}
