package io.cuvette.internal.ordered;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.stream.DriverStream;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of one {@link OrderedMemory} that the driver has not got back, and which of them are
 * idle, under one short lock. Makes no driver call, and needs no Java heap under the lock.
 * Thread-safe.
 */
public final class OrderedBlocks {
  private final SpinLock lock = new SpinLock();

  /** The newest of all: a list, so that each is reachable for the leak tracker. */
  private @Nullable OrderedBlock newest;

  private final IdleBlocks idle = new IdleBlocks();
  private long liveBytes;

  /** The threads that are freeing what was idle: the driver does not have it yet. */
  private volatile int givingBack;

  /** Adds one; an idle one comes back that was taken and not used. */
  public void add(OrderedBlock block) {
    lock.lock();
    try {
      block.older = newest;
      if (newest != null) {
        newest.newer = block;
      }
      newest = block;
      if (!block.isIdle) {
        liveBytes += block.blockBytes();
      }
    } finally {
      lock.unlock();
    }
  }

  /** False if it was removed before. */
  public boolean remove(OrderedBlock block) {
    lock.lock();
    try {
      return unlink(block);
    } finally {
      lock.unlock();
    }
  }

  private boolean unlink(OrderedBlock block) {
    OrderedBlock older = block.older;
    OrderedBlock newer = block.newer;
    if (older != null) {
      older.newer = newer;
    }
    if (newer != null) {
      newer.older = older;
    } else if (newest == block) {
      newest = older;
    } else {
      return false;
    }
    block.older = null;
    block.newer = null;
    if (!block.isIdle) {
      liveBytes -= block.blockBytes();
    }
    return true;
  }

  /** Whether the driver has not got it back yet. */
  public boolean has(OrderedBlock block) {
    lock.lock();
    try {
      return block == newest || block.newer != null;
    } finally {
      lock.unlock();
    }
  }

  public boolean isEmpty() {
    lock.lock();
    try {
      return newest == null;
    } finally {
      lock.unlock();
    }
  }

  /** The bytes of those that are not idle. */
  public long liveBytes() {
    lock.lock();
    try {
      return liveBytes;
    } finally {
      lock.unlock();
    }
  }

  /** Takes an idle one out that a stream can use again; null if there is none of the size. */
  public @Nullable OrderedBlock take(DriverStream stream, long blockBytes) {
    lock.lock();
    try {
      OrderedBlock block = idle.take(stream, blockBytes);
      if (block != null) {
        unlink(block);
      }
      return block;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Keeps a block idle.
   *
   * @param can decides, under the lock, whether that is possible at all
   * @return what is to be freed instead: the block itself; or those for which there is no room any
   *     more, the oldest first and linked, after which {@link #gaveBack} follows; or null
   */
  public @Nullable OrderedBlock keep(OrderedBlock block, Predicate<OrderedBlock> can) {
    lock.lock();
    try {
      if (!can.test(block)) {
        return block;
      }
      block.isIdle = true;
      liveBytes -= block.blockBytes();
      return givenBack(idle.put(block));
    } finally {
      lock.unlock();
    }
  }

  /**
   * Removes what is idle of some streams, to be freed: the oldest first, linked; {@link #gaveBack}
   * follows. Null if that is nothing.
   */
  public @Nullable OrderedBlock takeIdle(Predicate<? super DriverStream> of) {
    lock.lock();
    try {
      return givenBack(idle.takeAll(of));
    } finally {
      lock.unlock();
    }
  }

  @SuppressWarnings("NonAtomicVolatileUpdate") // under the lock
  private @Nullable OrderedBlock givenBack(@Nullable OrderedBlock taken) {
    givingBack += taken == null ? 0 : 1;
    return taken;
  }

  @SuppressWarnings("NonAtomicVolatileUpdate")
  public void gaveBack() {
    lock.lock();
    try {
      givingBack--;
    } finally {
      lock.unlock();
    }
  }

  /** Whether threads are giving back what was idle. */
  public boolean isGivingBack() {
    return givingBack > 0;
  }

  /** Whether the collector has found a buffer that was not taken back yet. */
  public boolean hasForgotten() {
    lock.lock();
    try {
      OrderedBlock block = newest;
      while (block != null && !block.isForgotten()) {
        block = block.older;
      }
      return block != null;
    } finally {
      lock.unlock();
    }
  }

  /** All there are. */
  public List<OrderedBlock> all() {
    OrderedBlock[] all = {};
    for (int count = fill(all); count > all.length; count = fill(all)) {
      all = new OrderedBlock[count];
    }
    List<OrderedBlock> found = new ArrayList<>(all.length);
    for (OrderedBlock block : all) {
      if (block != null) {
        found.add(block);
      }
    }
    return found;
  }

  /** Those that there is room for; the number of all. */
  private int fill(@Nullable OrderedBlock[] all) {
    lock.lock();
    try {
      int count = 0;
      for (OrderedBlock block = newest; block != null; block = block.older) {
        if (count < all.length) {
          all[count] = block;
        }
        count++;
      }
      return count;
    } finally {
      lock.unlock();
    }
  }
}
