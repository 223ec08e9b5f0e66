package io.cuvette.internal.ordered;

import io.cuvette.internal.stream.DriverStream;
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
  private final @Nullable OrderedBlock[] blocks = new OrderedBlock[MAX_BLOCKS];

  private int count;
  private long bytes;

  /**
   * Keeps a block; returns those for which there is no room any more, the oldest first and linked.
   * Needs no Java heap.
   */
  public @Nullable OrderedBlock put(OrderedBlock block) {
    int over = 0;
    long left = bytes;
    while (count - over == MAX_BLOCKS || left + block.blockBytes() > MAX_BLOCK_BYTES) {
      left -= at(over++).blockBytes();
    }
    OrderedBlock first = removeFirst(over);
    blocks[count++] = block;
    bytes += block.blockBytes();
    return first;
  }

  private @Nullable OrderedBlock removeFirst(int over) {
    OrderedBlock first = null;
    for (int i = over - 1; i >= 0; i--) {
      OrderedBlock removed = remove(i);
      removed.next = first;
      first = removed;
    }
    return first;
  }

  /** The newest block of this size that was freed on this stream. */
  public @Nullable OrderedBlock take(DriverStream stream, long blockBytes) {
    for (int i = count - 1; i >= 0; i--) {
      OrderedBlock block = at(i);
      if (block.home == stream && block.blockBytes() == blockBytes) {
        return remove(i);
      }
    }
    return null;
  }

  /** Takes out the blocks of some streams, the oldest first and linked. Needs no Java heap. */
  public @Nullable OrderedBlock takeAll(Predicate<? super DriverStream> of) {
    OrderedBlock first = null;
    for (int i = count - 1; i >= 0; i--) {
      if (of.test(Objects.requireNonNull(at(i).home))) {
        OrderedBlock removed = remove(i);
        removed.next = first;
        first = removed;
      }
    }
    return first;
  }

  public boolean isEmpty() {
    return count == 0;
  }

  private OrderedBlock at(int index) {
    return Objects.requireNonNull(blocks[index]);
  }

  private OrderedBlock remove(int index) {
    OrderedBlock removed = at(index);
    count--;
    System.arraycopy(blocks, index + 1, blocks, index, count - index);
    blocks[count] = null;
    bytes -= removed.blockBytes();
    return removed;
  }
}
