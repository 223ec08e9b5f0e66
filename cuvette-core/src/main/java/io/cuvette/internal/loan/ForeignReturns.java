package io.cuvette.internal.loan;

import io.cuvette.internal.base.UserFailures;
import io.cuvette.internal.session.Device;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The thread that ends what code outside of Java has given back. Giving back is one step on a stack
 * and the wake-up of that thread: it neither waits nor allocates, as it happens on threads of
 * others. The thread is there while something is out, and a moment longer. Thread-safe.
 */
final class ForeignReturns {
  private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(1);

  private static final ForeignReturns ALL = new ForeignReturns();

  private final AtomicReference<@Nullable Item> given = new AtomicReference<>();
  private final ReentrantLock lock = new ReentrantLock();

  /** How many are out or not ended yet; changes under the lock. */
  private long out;

  private volatile @Nullable Thread worker;

  private ForeignReturns() {}

  /** Something that is out, and is ended once it was given back. */
  static final class Item {
    private final @Nullable Work work;
    private final Runnable given;
    private final Runnable end;
    private final AtomicBoolean isGiven = new AtomicBoolean();
    private volatile boolean isEnded;
    private @Nullable Item next;

    private Item(@Nullable Work work, Runnable given, Runnable end) {
      this.work = work;
      this.given = given;
      this.end = end;
    }

    /** Gives it back; does nothing the second time. */
    void giveBack() {
      if (isGiven.compareAndSet(false, true)) {
        given.run();
        ALL.push(this);
      }
    }

    boolean isEnded() {
      return isEnded;
    }
  }

  /** What is waited for before the end: the work that a device has by then. */
  record Work(Device device, Runnable await) {}

  /**
   * Lets something out.
   *
   * @param work what its end comes after; null for none
   * @param given called by who gives it back; it neither waits nor throws
   * @param end called once it was given back
   */
  static Item add(@Nullable Work work, Runnable given, Runnable end) {
    Item item = new Item(work, given, end);
    ALL.begin();
    return item;
  }

  private void begin() {
    lock.lock();
    try {
      if (worker == null) {
        Thread made =
            Thread.ofPlatform()
                .daemon()
                .name("cuvette-returns")
                .inheritInheritableThreadLocals(false)
                .unstarted(this::run);
        made.start();
        worker = made;
      }
      out++;
    } finally {
      lock.unlock();
    }
  }

  private void push(Item item) {
    Item top;
    do {
      top = given.get();
      item.next = top;
    } while (!given.compareAndSet(top, item));
    LockSupport.unpark(worker);
  }

  private void run() {
    boolean goesOn = true;
    while (goesOn) {
      Item item = given.getAndSet(null);
      if (item != null) {
        endAll(inOrder(item));
      } else {
        goesOn = pause();
      }
    }
  }

  private static Item inOrder(Item last) {
    Item first = null;
    for (Item item = last; item != null; ) {
      Item before = item.next;
      item.next = first;
      first = item;
      item = before;
    }
    return first == null ? last : first;
  }

  private void endAll(Item first) {
    Set<Device> awaited = new HashSet<>();
    for (Item item = first; item != null; item = item.next) {
      try {
        Work work = item.work;
        if (work != null && awaited.add(work.device())) {
          attempt(work.await());
        }
        attempt(item.end);
      } finally {
        item.isEnded = true;
        ended();
      }
    }
  }

  /** Nobody is there to be told but the handler of uncaught exceptions, and others go on. */
  private static void attempt(Runnable step) {
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      UserFailures.uncaught(e);
    }
  }

  private void ended() {
    lock.lock();
    try {
      out--;
    } finally {
      lock.unlock();
    }
  }

  /**
   * False if nothing is out, so that the thread ends. What was given back is looked for after each
   * use of the lock, as waiting for that can take the wake-up of a return.
   */
  private boolean pause() {
    boolean isIdle = isIdle();
    if (given.get() != null) {
      return true;
    }
    if (!isIdle) {
      LockSupport.park(this);
      return true;
    }
    LockSupport.parkNanos(this, LINGER_NANOS);
    lock.lock();
    try {
      if (out > 0) {
        return true;
      }
      worker = null;
      return false;
    } finally {
      lock.unlock();
    }
  }

  private boolean isIdle() {
    lock.lock();
    try {
      return out == 0;
    } finally {
      lock.unlock();
    }
  }
}
