package io.cuvette.internal.stream;

import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.fence.Captured;
import io.cuvette.internal.lifetime.Ending;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.ReferenceQueue;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The end of memory that streams and captured graphs use: which of them did, besides its own
 * stream. Thread-safe.
 */
public abstract class UsedMemory extends Ending {
  private static final VarHandle USES;
  private static final VarHandle CAPTURED;

  /** So many streams are remembered before the finished ones among them are forgotten. */
  private static final int LOOK_AGAIN = 32;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      USES = lookup.findVarHandle(UsedMemory.class, "uses", StreamUse.class);
      CAPTURED = lookup.findVarHandle(UsedMemory.class, "captured", Captured.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** The stream the memory is freed in order of; null if it belongs to no stream. */
  public final @Nullable DriverStream home;

  private volatile @Nullable StreamUse uses;

  /** What captures did with the memory; null for most, so that it takes no room of a block. */
  private volatile @Nullable Captured captured;

  public UsedMemory(
      Object buffer,
      @Nullable ReferenceQueue<Object> queue,
      @Nullable Throwable site,
      @Nullable DriverStream home) {
    super(buffer, queue, site);
    this.home = home;
  }

  /** The size of the whole block, in bytes. */
  public abstract long blockBytes();

  /** The requested size of the block, in bytes. */
  public long requestedBytes() {
    return blockBytes();
  }

  public final @Nullable StreamUse uses() {
    return uses;
  }

  /** Whether no other stream than its own used the memory, and no capture. */
  public final boolean isUsedAtHomeAlone() {
    return uses == null && captured == null;
  }

  /** Whether a graph may still use the memory. */
  public final boolean isCaptured() {
    return !openCaptures().isEmpty();
  }

  /**
   * The capture in which the memory can be used again at once by what its own stream captures next:
   * that took it, goes on in that stream, and no other stream or capture used it. Else null.
   */
  public final @Nullable Capture captureAtHomeAlone() {
    Captured all = captured;
    if (home == null || uses != null || all == null || all.elsewhere()) {
      return null;
    }
    List<Capture> open = openCaptures();
    return open.size() == 1 && open.getFirst().equals(all.last()) ? all.last() : null;
  }

  /** The captures whose graphs may still use the memory. */
  public final List<Capture> openCaptures() {
    Captured all = captured;
    return all == null ? List.of() : all.open();
  }

  /** Keeps the memory until no graph of a capture can run any more. */
  public final void use(Capture capture) {
    use(capture, false, false);
  }

  private void use(Capture capture, boolean isElsewhere, boolean isLast) {
    while (true) {
      Captured before = captured;
      Captured known = before == null ? Captured.NEVER : before;
      if (known.has(capture, isElsewhere, isLast)
          || CAPTURED.compareAndSet(this, before, known.with(capture, isElsewhere, isLast))) {
        return;
      }
    }
  }

  /**
   * Notes that work which is about to be queued in a stream, or captured, uses the memory.
   *
   * @param capture the capture that the stream takes part in, asked once for all that is used
   * @throws IllegalStateException if the stream is capturing, and the end of the graph could not be
   *     known
   */
  public final void useIn(DriverStream stream, @Nullable Capture capture) {
    useIn(stream, capture, StreamClock.NOT_NOTED);
  }

  /** The same for who holds the stream until the work is queued. */
  public final void useHeld(DriverStream stream, @Nullable Capture capture) {
    useIn(stream, capture, stream.clock.isRunning() ? stream.clock.now() : StreamClock.NOT_NOTED);
  }

  private void useIn(DriverStream stream, @Nullable Capture capture, long noted) {
    if (capture == null) {
      use(stream, noted);
    } else {
      use(capture.checked("use of a buffer", stream), stream != home, false);
    }
  }

  /** The same for the capture that goes on in its own stream when the memory is closed. */
  public final void useLast(Capture capture) {
    use(capture, false, true);
  }

  /** Notes that a stream uses the memory. */
  public final void use(DriverStream stream) {
    use(stream, StreamClock.NOT_NOTED);
  }

  private void use(DriverStream stream, long noted) {
    if (stream != home) {
      stream.calm.disturb(); // work comes that need not be ours
      note(stream, noted);
    }
  }

  /**
   * Numbers all work that used the memory, which is closed, for who brings it back in order of
   * another stream: its own one then counts as well.
   *
   * @return false, and nothing is changed, if some of the streams have no clock
   */
  public final boolean numberUses(DriverStream of) {
    DriverStream usedAt = home == of ? null : home;
    if (usedAt != null && !usedAt.clock.isRunning()) {
      return false;
    }
    for (StreamUse use = uses; use != null; use = use.next()) {
      if (!use.stream().clock.isRunning()) {
        return false;
      }
    }
    if (usedAt != null) {
      note(usedAt, StreamClock.NOT_NOTED);
    }
    for (StreamUse use = uses; use != null; use = use.next()) {
      use.close();
    }
    return true;
  }

  /** What is known of the use by a stream. */
  public final @Nullable StreamUse useOf(DriverStream stream) {
    StreamUse use = uses;
    while (use != null && use.stream() != stream) {
      use = use.next();
    }
    return use;
  }

  private void note(DriverStream stream, long noted) {
    while (true) {
      StreamUse head = uses;
      for (StreamUse use = head; use != null; use = use.next()) {
        if (use.stream() == stream) {
          use.note(noted);
          return;
        }
      }
      StreamUse rest = head != null && head.count() % LOOK_AGAIN == 0 ? unfinished(head) : head;
      if (USES.compareAndSet(this, head, new StreamUse(stream, rest, noted))) {
        return;
      }
    }
  }

  /** Without streams that are closed and done: memory that lives long sees many come and go. */
  private static @Nullable StreamUse unfinished(StreamUse all) {
    StreamUse rest = null;
    for (StreamUse use = all; use != null; use = use.next()) {
      if (!use.stream().isOver()) {
        rest = new StreamUse(use.stream(), rest, StreamClock.NOT_NOTED); // others note there yet
      }
    }
    return rest;
  }

  /** Whether giving it back would wait for a callback, which is nothing for who only passes by. */
  public boolean wouldWait() {
    return false;
  }
}
