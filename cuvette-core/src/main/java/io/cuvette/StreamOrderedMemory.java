package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.pool.SpinLock;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The buffers that one resource has taken from pools of the driver and not freed yet. A buffer is
 * freed on its stream, behind the work of other streams that used it; if the stream is gone or
 * capturing, after that work is done. Thread-safe; freeing never waits.
 */
final class StreamOrderedMemory {
  private final PendingFrees<StreamOrderedLifetime> pending =
      new PendingFrees<>(this::freeUnordered);
  private final SpinLock lock = new SpinLock();

  /** The newest of those alive: a list, so that each is reachable for the leak tracker. */
  private @Nullable StreamOrderedLifetime newest;

  private long liveBytes;

  /** Runs whenever the last one alive is freed; null before the resource is closed. */
  private volatile @Nullable Runnable whenEmpty;

  /** What the blocks are shared by; null if they are for this process. */
  private volatile @Nullable PoolSharing sharing;

  /** Told the bytes of each block that was freed. */
  private final LongConsumer freed;

  StreamOrderedMemory() {
    this(_ -> {});
  }

  StreamOrderedMemory(LongConsumer freed) {
    this.freed = freed;
  }

  /** Something to do each time the last block is freed. */
  void whenEmpty(Runnable then) {
    whenEmpty = then;
  }

  /** The blocks come from a pool that other processes can import. */
  void shareBy(PoolSharing by) {
    sharing = by;
  }

  @Nullable PoolSharing sharing() {
    return sharing;
  }

  /** The block that begins at an address; null if none does. */
  @Nullable StreamOrderedLifetime find(long address) {
    for (StreamOrderedLifetime block : alive()) {
      if (block.address == address && !block.ended()) {
        return block;
      }
    }
    return null;
  }

  /** Makes a buffer own memory that was just allocated. */
  <B extends BufferBase> B own(B buffer, long blockBytes) {
    StreamOrderedLifetime lifetime = new StreamOrderedLifetime(buffer, this, blockBytes);
    buffer.own(lifetime);
    lock.lock();
    try {
      lifetime.older = newest;
      if (newest != null) {
        newest.newer = lifetime;
      }
      newest = lifetime;
      liveBytes += blockBytes;
    } finally {
      lock.unlock();
    }
    return buffer;
  }

  /** Bytes not freed yet. */
  long liveBytes() {
    lock.lock();
    try {
      return liveBytes;
    } finally {
      lock.unlock();
    }
  }

  /** Frees what is waiting for other streams and can go now. */
  void settle() {
    if (!pending.isEmpty()) {
      pending.poll();
    }
  }

  /** Waits for what is waiting for other streams. */
  void await() {
    pending.await();
  }

  void free(StreamOrderedLifetime block) {
    StreamState home = block.home;
    if (home == null || !orderBehindUses(block, home) || !freeOn(home, block)) {
      pending.free(block, null);
    }
  }

  /** Frees all that is alive, for a resource or Cuda that is torn down. */
  void destroy() {
    Failures failures = new Failures();
    for (StreamOrderedLifetime block : alive()) {
      if (block.end()) {
        block.clear();
      }
      failures.run(() -> freeUnordered(block));
    }
    failures.throwFirst();
  }

  private List<StreamOrderedLifetime> alive() {
    lock.lock();
    try {
      List<StreamOrderedLifetime> all = new ArrayList<>();
      for (StreamOrderedLifetime block = newest; block != null; block = block.older) {
        all.add(block);
      }
      return all;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Makes the home stream wait for the others that used the block; false if one cannot be waited
   * for.
   */
  private static boolean orderBehindUses(StreamOrderedLifetime block, StreamState home) {
    for (var use = block.uses(); use != null; use = use.next()) {
      StreamState user = use.stream();
      if (!user.isIdle() && !user.ask(() -> follow(user, home))) {
        return false;
      }
    }
    return true;
  }

  static boolean follow(StreamState user, StreamState home) {
    CudaDriver driver = user.cuda.driver();
    int device = user.device.id();
    long event = driver.eventCreate(device, EventOptions.ORDER_ONLY.flags());
    try {
      driver.eventRecord(device, event, user.handle);
      return home.ask(() -> {
        driver.streamWaitEvent(home.device.id(), home.handle, event);
        return true;
      });
    } finally {
      driver.eventDestroy(device, event);
    }
  }

  private boolean freeOn(StreamState stream, StreamOrderedLifetime block) {
    boolean freed =
        stream.ask(() -> {
          stream.cuda.driver().memFreeAsync(stream.device.id(), block.address, stream.handle);
          return true;
        });
    if (freed) {
      remove(block);
    }
    return freed;
  }

  /** For memory that no stream uses any more. */
  private void freeUnordered(StreamOrderedLifetime block) {
    StreamState any = block.device.nullStream().state;
    if (!freeOn(any, block)) {
      block.device.cuda().driver().memFree(block.device.id(), block.address);
      remove(block);
    }
  }

  private void remove(StreamOrderedLifetime block) {
    if (!unlink(block)) {
      return;
    }
    freed.accept(block.blockBytes());
    Runnable then = whenEmpty;
    if (then != null && liveBytes() == 0) {
      then.run();
    }
  }

  /** False if it was removed before. */
  private boolean unlink(StreamOrderedLifetime block) {
    lock.lock();
    try {
      StreamOrderedLifetime older = block.older;
      StreamOrderedLifetime newer = block.newer;
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
      liveBytes -= block.blockBytes();
      return true;
    } finally {
      lock.unlock();
    }
  }
}
