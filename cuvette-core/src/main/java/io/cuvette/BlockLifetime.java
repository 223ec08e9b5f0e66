package io.cuvette;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.ReferenceQueue;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The end of a buffer's memory, and which streams used it besides its own. Thread-safe. */
abstract class BlockLifetime extends Lifetime {
  private static final VarHandle USES;
  private static final VarHandle CAPTURES;
  private static final VarHandle LOANS;

  /** So many streams are remembered before the finished ones among them are forgotten. */
  private static final int LOOK_AGAIN = 32;

  static {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      USES = lookup.findVarHandle(BlockLifetime.class, "uses", StreamUse.class);
      CAPTURES = lookup.findVarHandle(BlockLifetime.class, "captures", CaptureUse.class);
      LOANS = lookup.findVarHandle(BlockLifetime.class, "loans", Loans.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** The stream the memory is freed in order of; null if it belongs to no stream. */
  final @Nullable StreamState home;

  private volatile @Nullable StreamUse uses;

  /** The captures that used the memory, or took it. */
  private volatile @Nullable CaptureUse captures;

  /** What pools lend from the memory, made for the first of them. */
  private volatile @Nullable Loans loans;

  /** What users see the memory through, if that was asked for. */
  private volatile HostViews.@Nullable View view;

  /**
   * Streams that used the memory, newest first.
   *
   * @param count how many these are
   */
  record StreamUse(StreamState stream, @Nullable StreamUse next, int count) {
    StreamUse(StreamState stream, @Nullable StreamUse next) {
      this(stream, next, next == null ? 1 : next.count + 1);
    }
  }

  private record CaptureUse(Capture capture, @Nullable CaptureUse next) {}

  BlockLifetime(
      Object buffer,
      @Nullable ReferenceQueue<Object> queue,
      @Nullable Throwable site,
      @Nullable StreamState home) {
    super(buffer, queue, site);
    this.home = home;
  }

  /** The size of the whole block, in bytes. */
  abstract long blockBytes();

  /** Whether the memory is another process's. */
  boolean isMapped() {
    return false;
  }

  /**
   * What another process imports a part of the memory by.
   *
   * @throws IllegalStateException if it cannot be shared, saying what could
   */
  BufferDescriptor descriptor(Memory part) {
    throw Sharing.cannot(part, "this kind of memory belongs to its process");
  }

  /**
   * Whether a device that is not the memory's own has no access to it: memory of a driver's pool is
   * its device's alone until others are let in. Others' plain memory can be copied without.
   */
  boolean keepsOut(Device device) {
    return false;
  }

  /** The driver is about to be told something about the memory that lasts until it is freed. */
  void advised() {}

  /**
   * How many pools the memory came through; {@link BlockReports#FOREIGN} if it is somebody else's.
   */
  int depth() {
    return 0;
  }

  /** The part of the block that its user asked for, in bytes. */
  long requestedBytes() {
    return blockBytes();
  }

  @Override
  long bytes() {
    return blockBytes();
  }

  final @Nullable StreamUse uses() {
    return uses;
  }

  /** Whether no other stream than its own used the memory, and no capture. */
  final boolean isUsedAtHomeAlone() {
    return uses == null && captures == null;
  }

  /** Whether a graph may still use the memory. */
  final boolean isCaptured() {
    return !openCaptures().isEmpty();
  }

  /** The captures whose graphs may still use the memory. */
  final List<Capture> openCaptures() {
    return open(captures);
  }

  private static List<Capture> open(@Nullable CaptureUse all) {
    List<Capture> open = List.of();
    for (CaptureUse use = all; use != null; use = use.next) {
      if (!use.capture.isDone()) {
        open = open.isEmpty() ? new ArrayList<>() : open;
        open.add(use.capture);
      }
    }
    return open;
  }

  /** Keeps the memory until no graph of a capture can run any more. */
  final void use(Capture capture) {
    while (true) {
      CaptureUse before = captures;
      List<Capture> open = open(before);
      if (open.contains(capture)) {
        return;
      }
      CaptureUse with = new CaptureUse(capture, null);
      for (Capture other : open) {
        with = new CaptureUse(other, with);
      }
      if (CAPTURES.compareAndSet(this, before, with)) {
        return;
      }
    }
  }

  /**
   * Notes that work which is about to be queued in a stream, or captured, uses the memory.
   *
   * @throws IllegalStateException if the stream is capturing, and the end of the graph could not be
   *     known
   */
  final void useIn(StreamState stream) {
    Capture capture = stream.capture();
    if (capture == null) {
      use(stream);
    } else {
      use(capture.checked("use of a buffer", stream));
    }
  }

  /** Notes that a stream uses the memory. */
  final void use(StreamState stream) {
    if (stream == home) {
      return;
    }
    while (true) {
      StreamUse head = uses;
      for (StreamUse use = head; use != null; use = use.next) {
        if (use.stream == stream) {
          return;
        }
      }
      StreamUse rest = head != null && head.count % LOOK_AGAIN == 0 ? unfinished(head) : head;
      if (USES.compareAndSet(this, head, new StreamUse(stream, rest))) {
        return;
      }
    }
  }

  /** Without streams that are closed and done: memory that lives long sees many come and go. */
  private static @Nullable StreamUse unfinished(StreamUse all) {
    StreamUse rest = null;
    for (StreamUse use = all; use != null; use = use.next) {
      if (!use.stream.isOver()) {
        rest = new StreamUse(use.stream, rest);
      }
    }
    return rest;
  }

  /**
   * Begins to hold memory that upstream gave to a pool.
   *
   * @throws IllegalStateException if a pool lends from it already, or it is closed
   */
  static Loans.Loan lend(Memory memory, long bytes) {
    BlockLifetime of = memory.lifetime();
    if (of.loans == null) {
      boolean _ = LOANS.compareAndSet(of, null, new Loans());
    }
    return Objects.requireNonNull(of.loans).add(memory, bytes);
  }

  @Override
  final int lenders() {
    Loans all = loans;
    return all == null ? 0 : all.open();
  }

  /** The view of this memory; the caller holds it, and is the only one that makes a view. */
  final void viewedThrough(HostViews.View made) {
    view = made;
  }

  /** Ends the buffer and its views for an owner that takes the memory back itself. */
  final void abandon() {
    takeOver();
    Await.until(this::closeView);
  }

  /**
   * Ends the views, then the memory. A view in use by another thread refuses, and nothing changed.
   */
  @Override
  final void finish() {
    if (!closeViewOrResume()) {
      throw new IllegalStateException(describe() + " cannot be closed: its segment is in use");
    }
    super.finish();
  }

  @Override
  final void release() {
    StreamState own = home;
    if (own != null && own.isExposed()) {
      release(own);
    } else {
      giveBack();
    }
  }

  /**
   * What its own stream captures at this moment may use the memory. Where there is no Java heap to
   * note that, the memory stays out until the end of its owner: a graph may have it.
   */
  private void release(StreamState own) {
    RuntimeException failure = null;
    try {
      Capture capture = own.captureAtEnd();
      if (capture != null) {
        use(capture);
      }
    } catch (RuntimeException e) {
      failure = e;
    }
    try {
      giveBack();
    } catch (RuntimeException e) {
      failure = Failures.joined(failure, e);
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Whether giving it back would wait for a callback, which is nothing for who only passes by. */
  boolean wouldWait() {
    return false;
  }

  /** Gives the memory back once all that used it is done. */
  abstract void giveBack();

  /** A user without the buffer may be at its segment. */
  @Override
  final boolean reclaim() {
    if (wouldWait() || !end()) {
      return false;
    }
    if (!closeViewOrResume()) {
      return false;
    }
    super.finish();
    return true;
  }

  /** False, and nothing has changed, if a view is in use at the moment. */
  private boolean closeViewOrResume() {
    boolean closed = false;
    try {
      closed = closeView();
      return closed;
    } finally {
      if (!closed) {
        resume();
      }
    }
  }

  /** False if a view is in use at the moment. */
  private boolean closeView() {
    HostViews.View open = view;
    return open == null || open.close();
  }
}
