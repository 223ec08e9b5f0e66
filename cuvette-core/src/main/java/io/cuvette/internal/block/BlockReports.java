package io.cuvette.internal.block;

import io.cuvette.driver.BlockListener;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.stream.DriverStream;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Reports the blocks of pools to whoever watches memory; null if nobody does. Stateless. */
public final class BlockReports {
  /** The depth of memory allocated elsewhere, of which it is not known what is lent. */
  public static final int FOREIGN = -1;

  private BlockReports() {}

  /** The depth of a block that is cut from memory of upstream. */
  public static int depthAbove(Memory upstream) {
    int depth = upstream.block().depth();
    return depth == FOREIGN ? FOREIGN : depth + 1;
  }

  /**
   * A pool lends a block in order of a stream, which is not destroyed before that is reported; of
   * one that has ended nothing can be queued any more.
   */
  public static void allocated(
      @Nullable BlockListener listener, Block given, long address, DriverStream stream) {
    if (listener != null && given.depth() > 0) {
      if (stream.ending().tryHoldAgain()) {
        try {
          listener.blockAllocated(block(given, address), stream.device.id(), stream.handle);
        } finally {
          stream.unhold();
        }
      } else {
        listener.blockAllocated(block(given, address));
      }
    }
  }

  /** A pool lends a block that the host may use at once. */
  public static void allocatedForHost(BlockListener listener, Block given, long address) {
    if (given.depth() > 0) {
      listener.blockAllocated(block(given, address));
    }
  }

  /** The buffer of a block is closed; before the pool has the block back. */
  public static void freed(@Nullable BlockListener listener, Block block, long address) {
    if (listener != null && block.depth() > 0) {
      if (!block.isCaptured()) {
        listener.leftByGraphs(block(block, address));
      }
      listener.blockFreed(block(block, address));
    }
  }

  private static BlockListener.Block block(Block block, long address) {
    return new BlockListener.Block(block.depth(), address, block.requestedBytes());
  }

  /** The host is about to copy bytes between a buffer and a segment. */
  public static void hostCopy(Memory buffer, MemorySegment other, long bytes, boolean in) {
    BlockListener listener = buffer.on().session().driver().blockListener();
    if (listener != null) {
      listener.hostAccess(buffer.address(), bytes, in);
      if (other.isNative()) {
        listener.hostAccess(other.address(), bytes, !in);
      }
      if (!in && isWritable(other)) { // else the copy is refused
        listener.hostCopy(buffer.address(), bytes, other.isNative() ? other.address() : 0);
      }
    }
  }

  /**
   * The host is about to read or write several parts of memory off the heap; one alone is reported
   * as it is copied.
   */
  public static void hostAccess(Memory buffer, HostParts host, boolean in) {
    BlockListener listener = buffer.on().session().driver().blockListener();
    if (listener != null && !host.isOne()) {
      host.forEachNative(part -> listener.hostAccess(part.address(), part.byteSize(), !in));
    }
  }

  private static boolean isWritable(MemorySegment target) {
    return target.scope().isAlive()
        && target.isAccessibleBy(Thread.currentThread())
        && !target.isReadOnly();
  }

  /** Work queued by other means uses a buffer. */
  public static void usedElsewhere(Memory buffer, DriverStream stream) {
    BlockListener listener = buffer.on().session().driver().blockListener();
    if (listener != null && buffer.byteSize() > 0 && stream.ending().tryHoldAgain()) {
      try {
        listener.usedElsewhere(
            buffer.address(), buffer.byteSize(), stream.device.id(), stream.handle);
      } finally {
        stream.unhold();
      }
    }
  }
}
