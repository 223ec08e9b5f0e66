package io.cuvette.internal.caching;

import io.cuvette.MemoryLimit;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedPoolStats;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.base.Turns;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.block.OutOfMemoryText;
import io.cuvette.internal.index.SizeClasses;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.session.ThreadState;
import io.cuvette.internal.stream.CachingPool;
import io.cuvette.internal.stream.Callbacks;
import io.cuvette.internal.stream.OpenStream;
import io.cuvette.internal.stream.PendingFrees;
import io.cuvette.internal.stream.PoolLifetime;
import io.cuvette.internal.stream.Streams;
import org.jspecify.annotations.Nullable;

/** What a {@code PinnedMemoryPool} does, which can be forgotten. Thread-safe. */
public final class PinnedPoolCore implements CachingPool {
  private final Streams streams;
  private final Session session;
  private final ChunkSource upstream;

  /** What makes buffers without memory. */
  private final Faces faces;

  private final PinnedStore store;
  private final PendingFrees<PinnedBlock> pending = new PendingFrees<>(this::give);
  private final Turns turns = new Turns();
  private final @Nullable BlockListener watching;
  private volatile MemoryLimit limit;
  private volatile boolean closed;

  private final PoolLifetime lifetime;

  /** A pool for one object of its user. */
  public PinnedPoolCore(
      Object of, Streams streams, ChunkSource upstream, MemoryLimit limit, Faces faces) {
    this.streams = streams;
    this.faces = faces;
    this.session = streams.session();
    this.upstream = upstream;
    this.limit = limit;
    this.watching = session.driver().blockListener();
    this.store = new PinnedStore(limit.bytesOf(0));
    this.lifetime = new PoolLifetime(of, this, session.leaks());
    streams.relief().add(this, lifetime);
    lifetime.opened();
  }

  /** A block as a buffer, which belongs to a stream in name alone. */
  public Face allocate(long bytes, OpenStream of) {
    Checks.notNegative("bytes", bytes);
    session.checkOpen();
    checkOpen();
    if (bytes == 0) {
      return DirectMemory.emptyOfHost(faces, of);
    }
    int sizeClass = SizeClasses.classOf(bytes);
    PinnedChunk chunk = store.take(sizeClass);
    return lend(chunk != null ? chunk : find(bytes, sizeClass, of), bytes, of);
  }

  public long freeAllBlocks() {
    streams.relief().settleClosed();
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
    Callbacks callbacks = streams.callbacks();
    if (!callbacks.mayPutOff()
        || !callbacks.putOff(chunk.loan.memory.lifetime(), () -> giveUp(chunk))) {
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

  public boolean isClosed() {
    return closed;
  }

  /** It ends with its Cuda: it is not forgotten, nor listed as open. */
  public void keep() {
    lifetime.unlist();
  }

  @Override
  public boolean isForgotten() {
    return lifetime.isForgotten();
  }

  /** Does nothing the second time. */
  public void close() {
    if (lifetime.close()) {
      session.leaks().drain();
    }
  }

  @Override
  public long heldBytes() {
    return store.held().held();
  }

  @Override
  public void shut() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      pending.poll();
      releaseAll();
    } finally {
      forgetIfEmpty();
    }
  }

  @Override
  public void settleIfClosed() {
    if (closed) {
      pending.poll();
    }
  }

  @Override
  public void awaitIfClosed(@Nullable Device device) {
    if (closed) {
      pending.await();
    }
  }

  /** A closed pool that holds nothing has nothing left to end. */
  private void forgetIfEmpty() {
    if (store.held().held() == 0) {
      streams.relief().remove(this, lifetime);
    }
  }

  @Override
  public String toString() {
    return "PinnedMemoryPool";
  }

  public Streams streams() {
    return streams;
  }

  public Session session() {
    return session;
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
    if (closed) {
      Failures failures = new Failures();
      release(chunk.sizeClass, failures);
      forgetIfEmpty();
      failures.throwFirst();
    }
  }

  private void settle() {
    session.leaks().drain();
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
      block = new PinnedBlock(buffer, this, chunk, bytes);
      memory.faces().own(buffer, block);
      block.opened();
      lent = store.lend(block);
      if (!lent) {
        throw isClosedNow();
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
    report(block);
    return buffer;
  }

  private void report(PinnedBlock block) {
    try {
      BlockReports.allocatedForHost(watching, block, block.chunk.memory.address());
    } catch (RuntimeException e) {
      Failures.closeAfter(e, block::close);
      throw e;
    }
  }

  /** One step after the other, searching again after each. */
  private PinnedChunk find(long bytes, int sizeClass, OpenStream of) {
    Refusals refusals = new Refusals();
    PinnedChunk found = search(sizeClass, of, refusals);
    return found != null
        ? found
        : new PinnedRecovery(this, store, bytes, sizeClass, of, refusals).run();
  }

  /** What can be had without releasing anything or waiting, in hand. */
  public @Nullable PinnedChunk search(int sizeClass, OpenStream of, Refusals refusals) {
    settle();
    PinnedChunk cached = store.take(sizeClass);
    return cached != null ? cached : grow(sizeClass, of, refusals);
  }

  /** More memory from upstream; null if the limit or upstream says no. */
  private @Nullable PinnedChunk grow(int sizeClass, OpenStream of, Refusals refusals) {
    long blockBytes = PinnedStore.blockBytes(sizeClass);
    if (!refusals.isWorthAsking() || !store.held().reserve(blockBytes)) {
      return null;
    }
    PinnedChunk chunk = null;
    try {
      checkOpen(); // again: whoever closed it may not have seen the bytes just reserved
      chunk = adopt(ask(blockBytes, of), sizeClass);
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
      Failures.closeAfter(e, memory::close);
      throw e;
    }
    if (chunk == null) {
      memory.close();
      throw isClosedNow();
    }
    return chunk;
  }

  private void checkOpen() {
    if (closed) {
      throw isClosedNow();
    }
  }

  private IllegalStateException isClosedNow() {
    return new IllegalStateException(this + " is closed");
  }

  private Memory ask(long blockBytes, OpenStream of) {
    ThreadState state = session.state();
    state.enter(this, upstream.user());
    Memory given;
    try {
      given = upstream.allocate(blockBytes, of);
    } finally {
      state.leave();
    }
    return Upstream.check("the upstream allocator", given, blockBytes, session, null);
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
  public void endLent() {
    closed = true;
    lifetime.takeOver();
    Failures failures = new Failures();
    store.end(failures);
    pending.clear();
    failures.throwFirst();
  }

  @Override
  public void destroy() {
    Failures failures = new Failures();
    store.giveBackAll(failures);
    failures.throwFirst();
  }
}
