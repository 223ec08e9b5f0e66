package io.cuvette.internal.ordered;

import io.cuvette.BufferDescriptor;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.Addresses;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.lifetime.Entrance;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.Guard;
import io.cuvette.internal.stream.OpenStream;
import io.cuvette.internal.stream.PendingFrees;
import io.cuvette.internal.stream.StreamState;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The buffers that one resource has taken from pools of the driver and not freed yet. A buffer is
 * freed on its stream, behind the work of other streams that used it; if the stream is gone or
 * capturing, after that work is done. A few that only their own stream used stay idle here for the
 * next allocation on it, until somebody synchronises or asks about the pool: the driver would give
 * the same memory again, for several hundred nanoseconds. Thread-safe; freeing never waits.
 */
public final class StreamOrderedMemory {
  /** So many streams are remembered before the finished ones among them are forgotten. */
  private static final int LOOK_AGAIN = 32;

  private final PendingFrees<StreamOrderedLifetime> pending = new PendingFrees<>(this::freeOrKeep);
  private final StreamOrderedBlocks blocks = new StreamOrderedBlocks();

  /** What the blocks are shared as; null if they are for this process. */
  private volatile BufferDescriptor.@Nullable Kind sharedAs;

  /** The pool that all memory is from; null if from several, and then nothing is kept idle. */
  private final @Nullable DriverPool pool;

  /** The streams whose frees may not be done. */
  private final Set<StreamState> freedOn = ConcurrentHashMap.newKeySet();

  private volatile @Nullable StreamState lastFreedOn;

  /** Told the bytes of each block that the driver got back. */
  private volatile LongConsumer whenFreed = _ -> {};

  private final Predicate<StreamOrderedLifetime> canKeep = this::canKeepNow;
  private final Entrance entrance;
  private final @Nullable BlockListener watching;

  public StreamOrderedMemory(
      Entrance entrance, @Nullable BlockListener watching, @Nullable DriverPool pool) {
    this.entrance = entrance;
    this.watching = watching;
    this.pool = pool;
  }

  /** Has somebody told the bytes of each block that the driver gets back. */
  public void whenFreed(LongConsumer listener) {
    whenFreed = listener;
  }

  /** The blocks come from a pool that other processes can import. */
  public void shareAs(BufferDescriptor.Kind kind) {
    sharedAs = kind;
  }

  public BufferDescriptor.@Nullable Kind sharedAs() {
    return sharedAs;
  }

  /** The handle of the pool that a block is from; 0 if the driver does not tell. */
  public long poolOf(StreamOrderedLifetime block) {
    DriverPool all = pool;
    return all != null ? all.handle() : Addresses.poolOf(block.device, block.address);
  }

  /** The block that begins at an address; null if none does. */
  public @Nullable StreamOrderedLifetime find(long address) {
    for (StreamOrderedLifetime block : blocks.all()) {
      if (block.address == address && !block.ended()) {
        return block;
      }
    }
    return null;
  }

  /**
   * Makes a buffer of memory that was just allocated in order of a stream, which the caller holds.
   * The driver gets it back if there is no Java heap for that.
   */
  public Face own(Faces faces, long address, long bytes, long blockBytes, OpenStream stream) {
    try {
      return ownNow(faces, address, bytes, blockBytes, stream);
    } catch (OutOfMemoryError e) {
      CudaDriver driver = stream.state.session.driver();
      driver.ordered().memFreeAsync(stream.on().id(), address, stream.state.handle);
      throw e;
    }
  }

  private Face ownNow(Faces faces, long address, long bytes, long blockBytes, OpenStream stream) {
    Face buffer = faces.make(address, bytes, stream);
    StreamOrderedLifetime block =
        new StreamOrderedLifetime(buffer, this, address, bytes, blockBytes, stream);
    faces.own(buffer, block);
    block.opened();
    blocks.add(block);
    try {
      BlockReports.allocated(watching, block, address, stream.state);
    } catch (RuntimeException e) {
      Failures.closeAfter(e, block::close);
      throw e;
    }
    return buffer;
  }

  /** A buffer of idle memory of this size that the stream can use again at once; null if none. */
  public @Nullable Face reuse(Faces faces, long bytes, long blockBytes, OpenStream stream) {
    StreamOrderedLifetime idle = blocks.take(stream.state, blockBytes);
    if (idle == null) {
      return null;
    }
    try {
      return ownNow(faces, idle.address, bytes, blockBytes, stream);
    } catch (OutOfMemoryError e) {
      blocks.add(idle);
      giveBack(idle);
      throw e;
    }
  }

  /** Whether nothing is left that the driver has to get back. */
  public boolean isEmpty() {
    return blocks.isEmpty();
  }

  /** Whether all frees that were queued are done. */
  public boolean freesAreDone() {
    lastFreedOn = null;
    freedOn.removeIf(stream -> isOfAnEndedCuda(stream) || isSettled(stream));
    return freedOn.isEmpty();
  }

  /**
   * Another Cuda of the process may have freed imported memory last. Once it is closed, it has
   * waited for its streams, and its driver answers no more.
   */
  private boolean isOfAnEndedCuda(StreamState stream) {
    return pool != null && stream.session != pool.session() && stream.session.isClosed();
  }

  /**
   * Whether the frees on a stream are done and the driver has noticed. One (580) that was asked
   * whether a stream is idle has not: it keeps what an imported pool had, if that is destroyed
   * then, for good. Waiting for a stream that is idle takes no time.
   */
  private static boolean isSettled(StreamState stream) {
    return stream.isIdleSoon() && (stream.isClosed() || stream.ask(stream::awaitWork));
  }

  /** Frees what is idle of some streams, in order of its stream. */
  public void giveBackIdle(Predicate<StreamState> of) {
    StreamOrderedLifetime taken = blocks.takeIdle(of);
    if (taken != null) {
      giveBackAll(taken);
    }
  }

  /** Gives back what was idle, linked. */
  private void giveBackAll(StreamOrderedLifetime taken) {
    RuntimeException failure = null;
    try {
      StreamOrderedLifetime rest = taken;
      while (rest != null) {
        StreamOrderedLifetime block = rest;
        rest = (StreamOrderedLifetime) block.next;
        block.next = null;
        try {
          giveBack(block);
        } catch (RuntimeException e) {
          failure = Failures.joined(failure, e);
        }
      }
    } finally {
      blocks.gaveBack(); // also after an error: others wait for it
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Waits until the driver has all that was idle and that threads are giving back now. */
  public void awaitGivenBack() {
    Await.until(() -> !blocks.isGivingBack());
  }

  /** Whether the collector has found a buffer that was not taken back yet. */
  public boolean hasForgotten() {
    return blocks.hasForgotten();
  }

  /** Bytes not freed yet. */
  public long liveBytes() {
    return blocks.liveBytes();
  }

  /** Frees what is waiting for other streams and can go now. */
  public void settle() {
    if (!pending.isEmpty()) {
      entrance.run(pending::poll);
    }
  }

  /** Waits for what is waiting for other streams. */
  public void await() {
    entrance.run(pending::await);
  }

  /**
   * Waits for the frees that are queued on the streams of a device, as far as these can be asked.
   */
  public void awaitFrees(Device device) {
    await();
    for (StreamState stream : freedOn) {
      if (stream.device.equals(device)) {
        stream.await();
        boolean _ = isSettled(stream); // so that the driver notices
      }
    }
  }

  public void free(StreamOrderedLifetime block) {
    try {
      BlockReports.freed(watching, block, block.address);
    } finally {
      freeOrKeepIdle(block);
    }
  }

  private void freeOrKeepIdle(StreamOrderedLifetime block) {
    StreamOrderedLifetime out = isWorthKeeping(block) ? blocks.keep(block, canKeep) : block;
    if (out == block) {
      giveBack(block);
    } else if (out != null) {
      giveBackAll(out);
    }
  }

  /** Memory that other streams or processes know, or that has advice, goes to the driver. */
  private boolean isWorthKeeping(StreamOrderedLifetime block) {
    StreamState home = block.home;
    return pool != null
        && home != null
        && home.confinedTo == null
        && block.isUsedAtHomeAlone()
        && !block.isExported()
        && block.isAsGiven()
        && block.blockBytes() <= IdleBlocks.MAX_BLOCK_BYTES;
  }

  /**
   * Under the lock, so that nothing is kept after what it is of was emptied, to close or for want
   * of memory.
   */
  private boolean canKeepNow(StreamOrderedLifetime block) {
    StreamState home = block.home;
    return pool != null
        && !pool.isClosed()
        && !pool.session().isClosed()
        && !pool.pools().isShort()
        && home != null
        && !home.isClosing();
  }

  /**
   * What comes too late is alive as far as {@link #destroy} knows, which frees it. What could not
   * be given back is tried again; who closed it is told of a failure, but for want of Java heap.
   */
  private void giveBack(StreamOrderedLifetime block) {
    if (!entrance.tryEnter()) {
      return;
    }
    try {
      giveBackNow(block);
    } catch (OutOfMemoryError e) {
      freeLater(block);
    } catch (RuntimeException e) {
      try {
        freeLater(block);
      } catch (RuntimeException second) {
        throw Failures.joined(e, second);
      }
      throw e;
    } finally {
      entrance.leave();
    }
  }

  private void freeLater(StreamOrderedLifetime block) {
    if (blocks.has(block)) {
      pending.free(block, null);
    }
  }

  private void giveBackNow(StreamOrderedLifetime block) {
    StreamState home = block.home;
    if (home == null
        || block.isCaptured()
        || !orderBehindUses(block, home)
        || !freeOn(home, block)) {
      pending.free(block, null);
    }
  }

  /**
   * Frees all that is alive, idle or not, for a Cuda that is torn down. Nobody else allocates or
   * gives back any more: all threads that did have left.
   */
  public void destroy() {
    Failures failures = new Failures();
    for (StreamOrderedLifetime block : allForDestroy()) {
      failures.run(block::abandon);
      failures.run(() -> freeAtLast(block));
    }
    failures.throwFirst();
  }

  /** There is no later try: without its order, if a stream cannot be asked. */
  private void freeAtLast(StreamOrderedLifetime block) {
    try {
      freeUnordered(block);
    } catch (CudaException e) {
      Failures.closeAfter(e, () -> freePlainly(block));
      throw e;
    }
  }

  /** What is idle or waits for streams is among them and must not be given back once more. */
  private List<StreamOrderedLifetime> allForDestroy() {
    pending.clear();
    if (blocks.takeIdle(_ -> true) != null) {
      blocks.gaveBack();
    }
    return blocks.all();
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

  public static boolean follow(StreamState user, StreamState home) {
    Guard work = Guard.of(user);
    try {
      work.record();
      return home.ask(() -> work.precede(home));
    } finally {
      work.abandon();
    }
  }

  private boolean freeOn(StreamState stream, StreamOrderedLifetime block) {
    rememberFreedOn(stream); // first: there may be no heap for it later
    boolean freed =
        stream.ask(() -> {
          CudaDriver driver = stream.session.driver();
          block.free(() ->
              driver.ordered().memFreeAsync(stream.device.id(), block.address, stream.handle));
          return true;
        });
    if (freed) {
      remove(block);
    }
    return freed;
  }

  /** Some free was queued on a stream, which has to come to it before the pool can end. */
  public void rememberFreedOn(StreamState stream) {
    if (lastFreedOn == stream) {
      return;
    }
    if (freedOn.size() >= LOOK_AGAIN) {
      freedOn.removeIf(StreamState::isOver);
    }
    freedOn.add(stream);
    lastFreedOn = stream;
  }

  /** What another object freed into the same pool. */
  public void rememberFreesOf(StreamOrderedMemory other) {
    freedOn.addAll(other.freedOn);
  }

  /** For memory that no stream uses any more: it is tried again later if the driver refuses. */
  private void freeOrKeep(StreamOrderedLifetime block) {
    try {
      freeUnordered(block);
    } catch (RuntimeException | OutOfMemoryError e) {
      if (blocks.has(block)) {
        pending.add(block);
      }
      throw e;
    }
  }

  /** For memory that no stream uses any more. */
  private void freeUnordered(StreamOrderedLifetime block) {
    StreamState own = Objects.requireNonNull(block.home);
    StreamState any = own.streams.nullStream(own.device);
    if (!freeOn(any, block)) {
      freePlainly(block);
    }
  }

  private void freePlainly(StreamOrderedLifetime block) {
    CudaDriver driver = block.device.session().driver();
    block.free(() -> driver.memory().memFree(block.device.id(), block.address));
    remove(block);
  }

  private void remove(StreamOrderedLifetime block) {
    if (blocks.remove(block)) {
      whenFreed.accept(block.blockBytes());
      if (pool != null && pool.isClosed() && blocks.isEmpty()) {
        pool.emptied();
      }
    }
  }
}
