package io.cuvette.internal.hostcopy;

import io.cuvette.internal.base.Await;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Hands out the pieces of one transfer, in their order, to the threads that copy them: the thread
 * that made this, and those that help. Pieces are in groups, which that thread opens one after the
 * other, and of which a bounded number is open at once. Thread-safe.
 */
public final class Pieces {
  /** How often a thread that helps looks for more before it sleeps: some microseconds. */
  private static final int SPINS = 200;

  /** How long it sleeps before it leaves. */
  private static final long LINGER_NANOS = 500_000;

  private final IntConsumer copier;
  private final int total;
  private final int inGroup;
  private final int helpersWanted;
  private final Predicate<Runnable> start;
  private final Thread owner = Thread.currentThread();

  /** The first piece that nobody took. */
  private final AtomicInteger next = new AtomicInteger();

  /** The first piece that is not to be copied yet. */
  private volatile int open;

  /** How many pieces of each open group are left; a later group takes the place of a done one. */
  private final AtomicIntegerArray left;

  /** How many threads are at a piece. */
  private final AtomicInteger busy = new AtomicInteger();

  private final AtomicInteger helpers = new AtomicInteger();
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private volatile boolean stopped;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition opened = lock.newCondition();

  /**
   * Pieces 0 to {@code total} − 1.
   *
   * @param copier copies a piece, on any thread
   * @param inGroup the pieces of each group but the last
   * @param mostOpen how many groups are open at once at most
   * @param helpers how many threads may help
   */
  public Pieces(IntConsumer copier, int total, int inGroup, int mostOpen, int helpers) {
    this(copier, total, inGroup, mostOpen, Math.min(helpers, CopyThreads.MOST), CopyThreads::start);
  }

  /**
   * The same with threads of one's own.
   *
   * @param start has a thread do something; false if none is free
   */
  Pieces(
      IntConsumer copier,
      int total,
      int inGroup,
      int mostOpen,
      int helpers,
      Predicate<Runnable> start) {
    this.copier = copier;
    this.total = total;
    this.inGroup = inGroup;
    this.left = new AtomicIntegerArray(mostOpen);
    this.helpersWanted = helpers;
    this.start = start;
  }

  /**
   * Has pieces copied, on this thread and those that may help, and waits.
   *
   * @param endsEarly whether no other piece is begun once this thread is interrupted
   * @return how many are copied, from the first on; all, unless it ended early
   */
  public static int run(IntConsumer copier, int total, int helpers, boolean endsEarly) {
    Pieces pieces = new Pieces(copier, total, total, 1, helpers);
    if (endsEarly && pieces.owner.isInterrupted()) {
      return 0; // threads that help are faster than one that looks later
    }
    try {
      pieces.open(0);
      while (!(endsEarly && pieces.owner.isInterrupted()) && pieces.copyOne()) {
        pieces.check();
      }
      if (endsEarly && pieces.owner.isInterrupted()) {
        pieces.stop();
      } else {
        pieces.await(0);
      }
      pieces.check();
    } finally {
      pieces.stop();
    }
    return pieces.next.get();
  }

  /** Has the pieces of the next group copied, and threads help with them. */
  public void open(int group) {
    int end = Math.min(total, (group + 1) * inGroup);
    left.set(group % left.length(), end - group * inGroup);
    open = end;
    wake();
    while (helpers.get() < wanted(end)) {
      helpers.incrementAndGet();
      if (!start.test(this::help)) {
        helpers.decrementAndGet();
        return;
      }
    }
  }

  /** What is left may be done while this thread starts others, so that these end at once. */
  private int wanted(int end) {
    return Math.min(helpersWanted, end - next.get() - 1);
  }

  private void wake() {
    if (helpers.get() > 0) {
      lock.lock();
      try {
        opened.signalAll();
      } finally {
        lock.unlock();
      }
    }
  }

  /** Whether all pieces of an open group are copied. */
  public boolean isDone(int group) {
    return left.get(group % left.length()) == 0;
  }

  /** Copies a piece on this thread; false if there is none to copy now. */
  public boolean copyOne() {
    busy.incrementAndGet();
    try {
      int piece = take();
      if (piece < 0) {
        return false;
      }
      copier.accept(piece);
      int group = piece / inGroup;
      if (left.decrementAndGet(group % left.length()) == 0) {
        LockSupport.unpark(owner);
      }
      return true;
    } catch (RuntimeException | Error e) {
      failure.compareAndSet(null, e);
      stopped = true;
      LockSupport.unpark(owner);
      return false;
    } finally {
      busy.decrementAndGet();
    }
  }

  /** The next piece; −1 if there is none now. */
  private int take() {
    while (true) {
      int piece = next.get();
      if (stopped || piece >= open) {
        return -1;
      }
      if (next.compareAndSet(piece, piece + 1)) {
        return piece;
      }
    }
  }

  private void help() {
    try {
      boolean more = true;
      while (more) {
        more = copyOne() || awaitMore();
      }
    } finally {
      helpers.decrementAndGet();
    }
  }

  private boolean awaitMore() {
    for (int i = 0; i < SPINS && !isOver(); i++) {
      if (next.get() < open) {
        return true;
      }
      Thread.onSpinWait();
    }
    lock.lock();
    try {
      long nanos = LINGER_NANOS;
      while (!isOver() && next.get() >= open && nanos > 0) {
        nanos = opened.awaitNanos(nanos);
      }
      return !isOver() && next.get() < open;
    } catch (InterruptedException e) {
      return false; // nobody has the thread to interrupt it
    } finally {
      lock.unlock();
    }
  }

  private boolean isOver() {
    return stopped || next.get() >= total;
  }

  /** Waits until others have copied a group, or one has failed; keeps an interrupt. */
  public void await(int group) {
    boolean interrupted = false;
    while (!isDone(group) && failure.get() == null) {
      LockSupport.park(this);
      interrupted |= Thread.interrupted();
    }
    if (interrupted) {
      owner.interrupt();
    }
  }

  /** Throws what copying a piece threw. */
  public void check() {
    switch (failure.get()) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw new AssertionError(failure.get());
    }
  }

  /** Has no more pieces copied; no thread is at one when this returns. */
  public void stop() {
    stopped = true;
    wake();
    Await.until(() -> busy.get() == 0);
  }
}
