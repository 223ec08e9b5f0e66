package io.cuvette.internal.pending;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.StreamUse;
import io.cuvette.internal.stream.UsedMemory;
import org.jspecify.annotations.Nullable;

/**
 * Closed blocks that a stream has used, and that go back in order of another one: first closed,
 * first back. The blocks link the queue. Thread-safe.
 *
 * @param <B> the kind of block
 */
final class FreeQueue<B extends UsedMemory> {
  final DriverStream user;

  /** The stream in whose order they go back. */
  final DriverStream home;

  private final SpinLock lock = new SpinLock();
  private @Nullable B first;
  private @Nullable B last;

  /** What the user's clock showed when the last one was closed; 0 if there is none. */
  private volatile long wanted;

  /** Nothing comes in any more. */
  private boolean over;

  FreeQueue(DriverStream user, DriverStream home) {
    this.user = user;
    this.home = home;
  }

  long wanted() {
    return wanted;
  }

  /** Adds a block after the others; false if the queue is over. */
  boolean add(B block, StreamUse use) {
    lock.lock();
    try {
      if (over) {
        return false;
      }
      B before = last;
      if (before == null) {
        first = block;
      } else {
        before.next = block;
      }
      last = block;
      wanted = Math.max(wanted, use.queued());
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Takes the first block if it can go back as far as the user is concerned; else null. */
  @Nullable B takeKnown() {
    if (wanted == 0) {
      return null;
    }
    lock.lock();
    try {
      B block = first;
      return block == null || !isKnown(block) ? null : take(block);
    } finally {
      lock.unlock();
    }
  }

  private boolean isKnown(B block) {
    StreamUse use = block.useOf(user);
    return use == null || use.isBefore(home);
  }

  /** Takes the first block, whatever it waits for; null if there is none. */
  @Nullable B takeAny() {
    lock.lock();
    try {
      B block = first;
      return block == null ? null : take(block);
    } finally {
      lock.unlock();
    }
  }

  @SuppressWarnings("unchecked") // nothing else comes in
  private B take(B block) {
    first = (B) block.next;
    block.next = null;
    if (first == null) {
      last = null;
      wanted = 0;
    }
    return block;
  }

  /** Ends the queue if it is empty, and one of its streams is closed; whether it has ended. */
  boolean endIfOver() {
    if (!user.isClosed() && !home.isClosed()) {
      return false;
    }
    lock.lock();
    try {
      over |= first == null;
      return over;
    } finally {
      lock.unlock();
    }
  }
}
