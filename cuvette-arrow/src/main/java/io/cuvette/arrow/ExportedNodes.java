package io.cuvette.arrow;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The arrays that others have, by number. A number is not used twice, so that a second release
 * finds nothing; the structures of what was released stay until {@value #RESTING} others were, for
 * who looks at them too late. Thread-safe; taking one out neither waits nor allocates.
 */
final class ExportedNodes {
  private static final int RESTING = 256;
  private static final int USE_SHIFT = 32;

  private final ReentrantLock lock = new ReentrantLock();
  private final Deque<Slot> free = new ArrayDeque<>();
  private final AtomicReference<@Nullable Slot> returned = new AtomicReference<>();
  private volatile Slot[] slots = {};
  private int count;

  private static final class Slot {
    final int index;

    /** What is out, or was last, and stays with its structures. */
    volatile @Nullable ExportedNode node;

    int uses;
    @Nullable Slot next;

    Slot(int index) {
      this.index = index;
    }
  }

  /** Gives an array its number. */
  void add(ExportedNode node) {
    lock.lock();
    try {
      rest(returned.getAndSet(null));
      Slot slot = free.size() > RESTING ? free.remove() : made();
      slot.uses++;
      node.number = (long) slot.uses << USE_SHIFT | slot.index;
      slot.node = node;
    } finally {
      lock.unlock();
    }
  }

  private Slot made() {
    Slot slot = new Slot(count);
    if (count == slots.length) {
      slots = Arrays.copyOf(slots, Math.max(RESTING, 2 * count));
    }
    Slot[] known = slots;
    known[count++] = slot;
    slots = known; // so that who reads the field sees the slot
    return slot;
  }

  private void rest(@Nullable Slot last) {
    for (Slot slot = last; slot != null; ) {
      Slot before = slot.next;
      slot.next = null;
      free.add(slot);
      slot = before;
    }
  }

  /** Takes an array out that is released, once; null if its number is of none. */
  @Nullable ExportedNode take(long number) {
    Slot[] known = slots;
    int index = (int) number;
    Slot slot = index < 0 || index >= known.length ? null : known[index];
    if (slot == null) {
      return null;
    }
    ExportedNode node = slot.node;
    if (node == null || node.number != number || !node.isOut.compareAndSet(true, false)) {
      return null;
    }
    Slot top;
    do {
      top = returned.get();
      slot.next = top;
    } while (!returned.compareAndSet(top, slot));
    return node;
  }
}
