package io.cuvette.internal.ordered;

import io.cuvette.internal.stream.StreamState;
import java.util.Objects;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A few blocks whose buffers are closed and which the driver has not got back yet: the next
 * allocation of the same size on the same stream takes one without asking the driver. Not
 * thread-safe: its owner has the lock.
 */
public final class IdleBlocks {
  /** A larger block is rare enough for the driver's own price. */
  public static final long MAX_BLOCK_BYTES = 64L << 20;

  private static final int MAX_BLOCKS = 16;

  /** The oldest first. */
  private final @Nullable StreamOrderedLifetime[] blocks = new StreamOrderedLifetime[MAX_BLOCKS];

  private int count;
  private long bytes;

  /**
   * Keeps a block; returns those for which there is no room any more, the oldest first and linked.
   * Needs no Java heap.
   */
  public @Nullable StreamOrderedLifetime put(StreamOrderedLifetime block) {
    int over = 0;
    long left = bytes;
    while (count - over == MAX_BLOCKS || left + block.blockBytes() > MAX_BLOCK_BYTES) {
      left -= at(over++).blockBytes();
    }
    StreamOrderedLifetime first = removeFirst(over);
    blocks[count++] = block;
    bytes += block.blockBytes();
    return first;
  }

  private @Nullable StreamOrderedLifetime removeFirst(int over) {
    StreamOrderedLifetime first = null;
    for (int i = over - 1; i >= 0; i--) {
      StreamOrderedLifetime removed = remove(i);
      removed.next = first;
      first = removed;
    }
    return first;
  }

  /** The newest block of this size that was freed on this stream. */
  public @Nullable StreamOrderedLifetime take(StreamState stream, long blockBytes) {
    for (int i = count - 1; i >= 0; i--) {
      StreamOrderedLifetime block = at(i);
      if (block.home == stream && block.blockBytes() == blockBytes) {
        return remove(i);
      }
    }
    return null;
  }

  /** Takes out the blocks of some streams, the oldest first and linked. Needs no Java heap. */
  public @Nullable StreamOrderedLifetime takeAll(Predicate<StreamState> of) {
    StreamOrderedLifetime first = null;
    for (int i = count - 1; i >= 0; i--) {
      StreamState home = at(i).home;
      if (home != null && of.test(home)) {
        StreamOrderedLifetime removed = remove(i);
        removed.next = first;
        first = removed;
      }
    }
    return first;
  }

  public boolean isEmpty() {
    return count == 0;
  }

  private StreamOrderedLifetime at(int index) {
    return Objects.requireNonNull(blocks[index]);
  }

  private StreamOrderedLifetime remove(int index) {
    StreamOrderedLifetime removed = at(index);
    count--;
    System.arraycopy(blocks, index + 1, blocks, index, count - index);
    blocks[count] = null;
    bytes -= removed.blockBytes();
    return removed;
  }
}
