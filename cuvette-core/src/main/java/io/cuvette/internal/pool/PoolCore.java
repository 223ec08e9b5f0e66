package io.cuvette.internal.pool;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.fence.CachingPool;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.Streams;

/**
 * What a caching pool does for its user's object, its buffers and its {@code Cuda}, which all know
 * this alone: so the object can be forgotten. Thread-safe.
 */
public abstract class PoolCore implements CachingPool, ObjectEnding.Ended {
  private final Streams streams;
  private final Session session;
  private final Upstream upstream;

  /** Makes buffers without memory, and reads all of them. */
  protected final Faces faces;

  private final ObjectEnding ending;
  private volatile boolean closed;
  private volatile long heldAtEnd;

  /**
   * A pool; {@link #opened} follows.
   *
   * @param of the object of its user
   * @param source where chunks come from, which also makes the buffers
   * @param name of the source, for messages
   * @param faces makes buffers without memory
   */
  protected PoolCore(Object of, Streams streams, ChunkSource source, String name, Faces faces) {
    this.streams = streams;
    this.session = streams.session();
    this.upstream = new Upstream(this, name, source, session);
    this.faces = faces;
    this.ending = new ObjectEnding(of, session, this);
  }

  /** Lists the pool, once it is complete. */
  protected final void opened() {
    streams.relief().add(this);
    session.children().addPool(ending.atEndOfSession());
    ending.opened();
  }

  public final Streams streams() {
    return streams;
  }

  public final Session session() {
    return session;
  }

  public final Upstream upstream() {
    return upstream;
  }

  public final boolean isClosed() {
    return closed;
  }

  public final void checkOpen() {
    if (closed) {
      throw closedNow();
    }
  }

  protected final IllegalStateException closedNow() {
    return new IllegalStateException(this + " is closed");
  }

  /** It ends with its Cuda: it is not forgotten, nor listed as open. */
  public final void keep() {
    ending.unlist();
  }

  @Override
  public final boolean isForgotten() {
    return ending.isForgotten();
  }

  /** Does nothing the second time. */
  public final void close(Object of) {
    if (ending.close(of)) {
      session.leaks().drain();
    }
  }

  /** Frees what is cached and rejects further allocations; buffers in use stay valid. */
  @Override
  public final void end(ObjectEnding caller) {
    heldAtEnd = heldBytes();
    try {
      closed = true;
      releaseAtEnd(); // all of it again if it failed before
    } finally {
      forgetIfEmpty();
    }
  }

  /** The bytes that it holds from upstream. */
  public abstract long heldBytes();

  /** Whether it has nothing from upstream. */
  protected boolean isEmpty() {
    return heldBytes() == 0;
  }

  /** What it held when it was closed. */
  @Override
  public final long bytes() {
    return heldAtEnd;
  }

  /** Gives back what is cached, and what streams have finished with. */
  protected abstract void releaseAtEnd();

  /** A closed pool that holds nothing has nothing left to end. */
  public final void forgetIfEmpty() {
    if (isEmpty()) {
      streams.relief().remove(this);
      session.children().remove(ending.atEndOfSession());
    }
  }

  /** Closes the buffers in use. */
  @Override
  public final void endNow(ObjectEnding caller) {
    closed = true;
    Failures failures = new Failures();
    endLent(failures);
    failures.throwFirst();
  }

  /** Closes the buffers in use. */
  protected abstract void endLent(Failures failures);
}
