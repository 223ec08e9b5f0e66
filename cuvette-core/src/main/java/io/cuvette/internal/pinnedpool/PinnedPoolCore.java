package io.cuvette.internal.pinnedpool;

import io.cuvette.MemoryLimit;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedPoolStats;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.OutOfMemoryText;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.base.Turns;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.pool.PoolCore;
import io.cuvette.internal.session.DeferredFrees;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.Streams;
import org.jspecify.annotations.Nullable;

/** What a {@code PinnedMemoryPool} does, which can be forgotten. Thread-safe. */
public final class PinnedPoolCore extends PoolCore {
  private final PinnedStore store;
  private final PendingFrees<PinnedBlock> pending = new PendingFrees<>(this::give);
  private final Turns turns = new Turns();
  private final @Nullable BlockListener watching;
  private volatile MemoryLimit limit;

  /** A pool for one object of its user. */
  public PinnedPoolCore(
      Object of, Streams streams, ChunkSource upstream, MemoryLimit limit, Faces faces) {
    super(of, streams, upstream, "the upstream allocator", faces);
    this.limit = limit;
    this.watching = session().driver().blockListener();
    this.store = new PinnedStore(limit.bytesOf(0));
    opened();
  }

  /** A block as a buffer, which belongs to a stream in name alone. */
  public Face allocate(long bytes, OpenStream of) {
    Checks.notNegative("bytes", bytes);
    session().checkOpen();
    checkOpen();
    if (bytes == 0) {
      return DirectMemory.emptyOfHost(faces, of);
    }
    int sizeClass = SizeClasses.classOf(bytes);
    Face cached = store.lend(sizeClass, this, bytes, of);
    return cached != null ? report(cached) : lend(find(bytes, sizeClass, of), bytes, of);
  }

  /** The same if that releases nothing and waits for nothing; null if there is no memory now. */
  public @Nullable Face tryAllocate(long bytes, OpenStream of) {
    session().checkOpen();
    checkOpen();
    int sizeClass = SizeClasses.classOf(bytes);
    PinnedChunk chunk = search(sizeClass, of, new Refusals());
    return chunk == null ? null : lend(chunk, bytes, of);
  }

  public long freeAllBlocks() {
    streams().relief().awaitReturns();
    streams().relief().settleClosed();
    return release();
  }

  @Override
  public boolean isOfHost() {
    return true;
  }

  @Override
  public long release(@Nullable Device device) {
    return release();
  }

  public long release() {
    settle();
    return releaseAll();
  }

  private long releaseAll() {
    long released = 0;
    Failures failures = new Failures();
    for (int sizeClass = 0; sizeClass < SizeClasses.COUNT; sizeClass++) {
      released += release(sizeClass, failures);
    }
    failures.throwFirst();
    return released;
  }

  private long release(int sizeClass, Failures failures) {
    long released = 0;
    PinnedChunk chunk = store.remove(sizeClass);
    while (chunk != null) {
      try {
        giveUp(chunk);
        released += chunk.bytes();
      } catch (RuntimeException | Error e) {
        failures.add(e);
      }
      chunk = store.remove(sizeClass);
    }
    return released;
  }

  /** What would wait for callbacks is freed later, and counts until then. */
  private void giveUp(PinnedChunk chunk) {
    DeferredFrees frees = session().frees();
    if (!frees.mayPutOff()
        || !frees.putOff(chunk.loan.memory.block().wouldWait(), () -> giveUp(chunk))) {
      store.giveUp(chunk);
    }
  }

  public PinnedPoolStats stats() {
    settle();
    return store.stats(pending);
  }

  public MemoryLimit limit() {
    return limit;
  }

  public void setLimit(MemoryLimit next) {
    store.held().setLimit(next.bytesOf(0));
    limit = next;
  }

  public void assertConsistent() {
    store.assertConsistent();
  }

  @Override
  public long heldBytes() {
    return store.held().held();
  }

  @Override
  protected void releaseAtEnd() {
    pending.poll();
    releaseAll();
  }

  @Override
  public void settleIfClosed() {
    if (isClosed()) {
      pending.poll();
    }
  }

  @Override
  public void awaitIfClosed(@Nullable Device device) {
    if (isClosed()) {
      pending.await();
    }
  }

  @Override
  public String toString() {
    return "PinnedMemoryPool";
  }

  public void free(PinnedBlock block) {
    try {
      BlockReports.freed(watching, block, block.chunk.memory.address());
    } finally {
      freeOrdered(block);
    }
  }

  private void freeOrdered(PinnedBlock block) {
    if (block.isUsedAtHomeAlone()) {
      give(block);
    } else {
      pending.free(block, null);
    }
  }

  public PendingFrees<PinnedBlock> pending() {
    return pending;
  }

  public Turns turns() {
    return turns;
  }

  private void give(PinnedBlock block) {
    store.give(block);
    releaseIfClosed(block.chunk);
  }

  /** What comes back to a closed pool goes on to upstream. */
  private void releaseIfClosed(PinnedChunk chunk) {
    if (isClosed()) {
      Failures failures = new Failures();
      release(chunk.sizeClass, failures);
      forgetIfEmpty();
      failures.throwFirst();
    }
  }

  private void settle() {
    session().leaks().drain();
    pending.poll();
  }

  /** Lends a chunk in hand; it is cached again if it cannot be. */
  private Face lend(PinnedChunk chunk, long bytes, OpenStream of) {
    Memory memory = chunk.memory;
    PinnedBlock block = null;
    Face buffer;
    boolean lent = false;
    try {
      buffer = memory.faces().cut(memory, 0, bytes, of);
      block = new PinnedBlock(buffer, this, chunk, chunk.stripe, bytes);
      memory.faces().own(buffer, block);
      block.opened();
      lent = store.lend(block);
      if (!lent) {
        throw closedNow();
      }
    } finally {
      if (!lent) {
        if (block != null) {
          block.clear();
        }
        store.putBack(chunk);
        releaseIfClosed(chunk);
      }
    }
    return report(buffer);
  }

  private Face report(Face lent) {
    if (watching != null) {
      Memory memory = faces.memory(lent);
      try {
        BlockReports.allocatedForHost(watching, memory.block(), memory.address());
      } catch (RuntimeException e) {
        Failures.runAfter(e, memory::close);
        throw e;
      }
    }
    return lent;
  }

  /** One step after the other, searching again after each. */
  private PinnedChunk find(long bytes, int sizeClass, OpenStream of) {
    Refusals refusals = new Refusals();
    PinnedChunk found = search(sizeClass, of, refusals);
    return found != null
        ? found
        : new PinnedShortage(this, store, bytes, sizeClass, of, refusals).run();
  }

  /** What can be had without releasing anything or waiting, in hand. */
  public @Nullable PinnedChunk search(int sizeClass, OpenStream of, Refusals refusals) {
    settle();
    PinnedChunk cached = store.take(sizeClass);
    return cached != null ? cached : grow(sizeClass, of, refusals);
  }

  /** Requests more memory from upstream; null if the limit or upstream refuses. */
  private @Nullable PinnedChunk grow(int sizeClass, OpenStream of, Refusals refusals) {
    long blockBytes = PinnedStore.blockBytes(sizeClass);
    if (!refusals.isWorthAsking() || !store.held().reserve(blockBytes)) {
      return null;
    }
    PinnedChunk chunk = null;
    try {
      checkOpen(); // again: whoever closed it may not have seen the bytes just reserved
      chunk = adopt(upstream().ask(blockBytes, of, null), sizeClass);
      return chunk;
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      refusals.add(e);
      return null;
    } finally {
      if (chunk == null) {
        store.held().unreserve(blockBytes);
      }
    }
  }

  /** What cannot be adopted goes back, but for memory that the pool has already. */
  private PinnedChunk adopt(Memory memory, int sizeClass) {
    PinnedChunk chunk;
    try {
      chunk = store.add(memory, sizeClass);
    } catch (OutOfMemoryError e) {
      Failures.runAfter(e, memory::close);
      throw e;
    }
    if (chunk == null) {
      memory.close();
      throw closedNow();
    }
    return chunk;
  }

  public OutOfPinnedMemoryException outOfMemory(
      long bytes, long blockBytes, RecoveryStep step, Refusals refusals) {
    store.failed();
    String call = "allocatePinned(bytes=%d)".formatted(bytes);
    return refusals.explain(
        new OutOfPinnedMemoryException(
            bytes,
            call,
            OutOfMemoryText.ofPinned(store.stats(pending), bytes, blockBytes, step, call)));
  }

  @Override
  protected void endLent(Failures failures) {
    store.end(failures);
    pending.clear();
  }
}
