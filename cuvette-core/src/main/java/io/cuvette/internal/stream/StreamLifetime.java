package io.cuvette.internal.stream;

import io.cuvette.internal.lifetime.HandleLifetime;
import io.cuvette.internal.lifetime.LeakTracker;
import java.lang.ref.ReferenceQueue;
import org.jspecify.annotations.Nullable;

/** The end of a stream: of its handle if this library made it, else of what it knows about it. */
public final class StreamLifetime extends HandleLifetime {
  private final String text;

  /** What is to be ended; null for a per-thread stream, whose thread it would keep reachable. */
  private final @Nullable StreamState state;

  /** The same object each time, to be found again among the children. */
  private final Runnable end = this::endByOwner;

  private StreamLifetime(
      Object of,
      @Nullable StreamState state,
      String text,
      @Nullable ReferenceQueue<Object> queue,
      @Nullable Throwable site) {
    super(of, queue, site);
    this.state = state;
    this.text = text;
  }

  /** The end of a stream that was made here and is lost with its object. */
  public static StreamLifetime owned(OpenStream open, StreamState state) {
    LeakTracker leaks = state.session.leaks();
    StreamLifetime lifetime =
        new StreamLifetime(open, state, state.toString(), leaks.queue, leaks.site());
    try {
      state.session.children().add(lifetime.end);
      lifetime.opened();
      return lifetime;
    } catch (OutOfMemoryError e) {
      lifetime.discard();
      throw e;
    }
  }

  /** Its stream was not made, for want of Java heap, and is destroyed by the caller. */
  public void discard() {
    clear();
    forget();
  }

  /** The end of a stream that somebody else has. */
  public static StreamLifetime foreign(StreamState state) {
    return new StreamLifetime(state, state, state.toString(), null, null);
  }

  /** The end of the default stream of a thread, which comes to a queue once both are forgotten. */
  public static StreamLifetime perThread(StreamState state, ReferenceQueue<Object> forgotten) {
    return new StreamLifetime(state, null, state.toString(), forgotten, null);
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public void release() {
    StreamState ending = state;
    if (ending != null) {
      ending.session.entrance().run(ending::end);
    }
  }

  @Override
  public void failed() {
    StreamState ending = state;
    if (ending != null) {
      ending.session.leaks().failed(this);
    }
  }

  private void endByOwner() {
    takeOver();
    StreamState ending = state;
    if (ending != null) {
      ending.endNow();
    }
  }

  /** The handle is destroyed: nothing is left to take back. */
  public void forget() {
    StreamState ended = state;
    if (ended != null) {
      ended.session.children().remove(end);
    }
  }
}
