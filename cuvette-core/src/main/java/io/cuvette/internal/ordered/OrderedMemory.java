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
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.lifetime.ShutdownGate;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.order.StreamOrder;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import java.util.List;
import java.util.Objects;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The buffers that one resource has taken from pools of the driver and not freed yet. A buffer is
 * freed on its stream, behind the work of other streams that used it; if the stream is gone or
 * capturing, after that work is done. A few that only their own stream used stay idle here for the
 * next allocation on it, until somebody synchronises or queries the pool: the driver would give the
 * same memory again, for several hundred nanoseconds. Thread-safe; freeing never waits.
 */
public final class OrderedMemory {
  private final PendingFrees<OrderedBlock> pending = new PendingFrees<>(this::freeOrKeep);
  private final OrderedBlocks blocks = new OrderedBlocks();

  /** What the blocks are shared as; null if they are for this process. */
  private volatile BufferDescriptor.@Nullable Kind sharedAs;

  /** The pool that all memory is from; null if from several, and then nothing is kept idle. */
  private final @Nullable OrderedSource pool;

  private final FreeingStreams freeing = new FreeingStreams();

  /** Told the bytes of each block that the driver got back. */
  private volatile LongConsumer whenFreed = _ -> {};

  private final Predicate<OrderedBlock> canKeep = this::canKeepNow;
  private final ShutdownGate gate;
  private final @Nullable BlockListener watching;

  public OrderedMemory(
      ShutdownGate gate, @Nullable BlockListener watching, @Nullable OrderedSource pool) {
    this.gate = gate;
    this.watching = watching;
    this.pool = pool;
  }

  /** Registers a listener for the size of each block that is freed to the driver. */
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

  /** The handle of the pool that a block is from; 0 if the driver does not report it. */
  public long poolOf(OrderedBlock block) {
    OrderedSource all = pool;
    return all != null ? all.handle() : Addresses.poolOf(block.device, block.address);
  }

  /** The block that begins at an address; null if none does. */
  public @Nullable OrderedBlock find(long address) {
    for (OrderedBlock block : blocks.all()) {
      if (block.address == address && !block.ended()) {
        return block;
      }
    }
    return null;
  }

  /**
   * Makes a buffer of memory that was just allocated in order of a stream, which the caller holds.
   * The driver gets it back if there is no Java heap for that, or whoever watches refuses it.
   *
   * @param capture what the memory is for, which was taken beside it then; null for none
   */
  public Face own(
      Faces faces,
      long address,
      long bytes,
      long blockBytes,
      OpenStream stream,
      @Nullable Capture capture) {
    try {
      return ownNow(faces, address, bytes, blockBytes, stream, capture);
    } catch (RuntimeException | Error e) {
      freeUnowned(address, stream, capture != null, e);
      throw e;
    }
  }

  /** Without a lambda, as there may be no Java heap. */
  private static void freeUnowned(
      long address, OpenStream stream, boolean isCaptured, Throwable failure) {
    CudaDriver driver = stream.state.session.driver();
    int device = stream.on().id();
    try {
      if (isCaptured) {
        driver.memory().memFree(device, address);
      } else {
        driver.ordered().memFreeAsync(device, address, stream.state.handle);
      }
    } catch (RuntimeException e) {
      Failures.joined(failure, e);
    }
  }

  /** Nothing is made if this fails: the caller has the memory as before. */
  private Face ownNow(
      Faces faces,
      long address,
      long bytes,
      long blockBytes,
      OpenStream stream,
      @Nullable Capture capture) {
    Face buffer = faces.make(address, bytes, stream);
    OrderedBlock block = new OrderedBlock(buffer, this, address, bytes, blockBytes, stream);
    if (capture != null) {
      block.use(capture);
    }
    faces.own(buffer, block);
    block.opened();
    try {
      BlockReports.allocated(watching, block, address, stream.state);
    } catch (RuntimeException | Error e) {
      block.clear();
      Failures.runAfter(e, () -> BlockReports.freed(watching, block, address));
      throw e;
    }
    blocks.add(block);
    return buffer;
  }

  /** A buffer of idle memory of this size that the stream can use again at once; null if none. */
  public @Nullable Face reuse(Faces faces, long bytes, long blockBytes, OpenStream stream) {
    OrderedBlock idle = blocks.take(stream.state, blockBytes);
    if (idle == null) {
      return null;
    }
    try {
      return ownNow(faces, idle.address, bytes, blockBytes, stream, null);
    } catch (RuntimeException | Error e) {
      blocks.add(idle);
      giveBackAfter(e, idle);
      throw e;
    }
  }

  private void giveBackAfter(Throwable failure, OrderedBlock idle) {
    try {
      giveBack(idle);
    } catch (RuntimeException e) {
      Failures.joined(failure, e);
    }
  }

  /** Whether nothing is left that the driver has to get back. */
  public boolean isEmpty() {
    return blocks.isEmpty();
  }

  /** Whether all frees that were queued are done. */
  public boolean freesAreDone() {
    return freeing.areDone(pool == null ? null : pool.session());
  }

  /** Frees what is idle of some streams, in order of its stream. */
  public void giveBackIdle(Predicate<? super DriverStream> of) {
    OrderedBlock taken = blocks.takeIdle(of);
    if (taken != null) {
      giveBackAll(taken);
    }
  }

  /** Gives back what was idle, linked. */
  private void giveBackAll(OrderedBlock taken) {
    RuntimeException failure = null;
    try {
      OrderedBlock rest = taken;
      while (rest != null) {
        OrderedBlock block = rest;
        rest = (OrderedBlock) block.next;
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
      gate.run(pending::poll);
    }
  }

  /** Waits for what is waiting for other streams. */
  public void await() {
    gate.run(pending::await);
  }

  /**
   * Waits for the frees that are queued on the streams of a device, as far as these can be queried.
   */
  public void awaitFrees(Device device) {
    await();
    freeing.await(device);
  }

  public void free(OrderedBlock block) {
    try {
      BlockReports.freed(watching, block, block.address);
    } finally {
      freeOrKeepIdle(block);
    }
  }

  private void freeOrKeepIdle(OrderedBlock block) {
    OrderedBlock out = isWorthKeeping(block) ? blocks.keep(block, canKeep) : block;
    if (out == block) {
      giveBack(block);
    } else if (out != null) {
      giveBackAll(out);
    }
  }

  /** Memory that other streams or processes know, or that has advice, goes to the driver. */
  private boolean isWorthKeeping(OrderedBlock block) {
    DriverStream home = Objects.requireNonNull(block.home);
    return pool != null
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
  private boolean canKeepNow(OrderedBlock block) {
    return pool != null && pool.canKeep() && !Objects.requireNonNull(block.home).isClosing();
  }

  /** What comes too late is alive as far as {@link #destroy} knows, which frees it. */
  private void giveBack(OrderedBlock block) {
    if (!gate.tryEnter()) {
      return;
    }
    try {
      giveBackNow(block);
    } finally {
      gate.leave();
    }
  }

  /** A failure is reported to whoever closed it, but not for want of Java heap. */
  private void giveBackNow(OrderedBlock block) {
    RuntimeException failure = null;
    try {
      if (freeAtHome(block)) {
        return;
      }
    } catch (RuntimeException e) {
      failure = e;
    } catch (OutOfMemoryError e) {
      // It is freed later.
    }
    failure = freeLater(block, failure);
    if (failure != null) {
      throw failure;
    }
  }

  /** Frees it in order of its stream; false if that cannot be. */
  private boolean freeAtHome(OrderedBlock block) {
    DriverStream home = Objects.requireNonNull(block.home);
    return !block.isCaptured() && orderBehindUses(block, home) && freeOn(home, block);
  }

  /**
   * Frees what was not freed when no stream uses it any more. If that fails too, the block is
   * pending already, where other threads find it: it must not come there twice.
   */
  private @Nullable RuntimeException freeLater(
      OrderedBlock block, @Nullable RuntimeException failure) {
    try {
      if (blocks.has(block)) {
        pending.free(block, null);
      }
      return failure;
    } catch (RuntimeException e) {
      return Failures.joined(failure, e);
    } catch (OutOfMemoryError e) {
      return failure;
    }
  }

  /**
   * Frees all that is alive, idle or not, for a Cuda that is torn down. No other thread allocates
   * or frees any more: all that did have left.
   */
  public void destroy() {
    Failures failures = new Failures();
    for (OrderedBlock block : allForDestroy()) {
      failures.run(block::abandon);
      failures.run(() -> freeAtLast(block));
    }
    failures.throwFirst();
  }

  /** There is no later try: without its order, if a stream cannot be queried. */
  private void freeAtLast(OrderedBlock block) {
    try {
      freeUnordered(block);
    } catch (CudaException e) {
      Failures.runAfter(e, () -> freePlainly(block));
      throw e;
    }
  }

  /** What is idle or waits for streams is among them and must not be freed once more. */
  private List<OrderedBlock> allForDestroy() {
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
  private static boolean orderBehindUses(OrderedBlock block, DriverStream home) {
    for (var use = block.uses(); use != null; use = use.next()) {
      if (!StreamOrder.follow(use.stream(), home)) {
        return false;
      }
    }
    return true;
  }

  private boolean freeOn(DriverStream stream, OrderedBlock block) {
    freeing.add(stream); // first: there may be no heap for it later
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

  /** The streams whose frees may not be done. */
  public FreeingStreams freeing() {
    return freeing;
  }

  /** For memory that no stream uses any more: it is tried again later if the driver refuses. */
  private void freeOrKeep(OrderedBlock block) {
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
  private void freeUnordered(OrderedBlock block) {
    DriverStream own = Objects.requireNonNull(block.home);
    DriverStream any = own.streams.nullStream(own.device);
    if (!freeOn(any, block)) {
      freePlainly(block);
    }
  }

  private void freePlainly(OrderedBlock block) {
    CudaDriver driver = block.device.session().driver();
    block.free(() -> driver.memory().memFree(block.device.id(), block.address));
    remove(block);
  }

  private void remove(OrderedBlock block) {
    if (blocks.remove(block)) {
      whenFreed.accept(block.blockBytes());
      if (pool != null && pool.isClosed() && blocks.isEmpty()) {
        pool.emptied();
      }
    }
  }
}
