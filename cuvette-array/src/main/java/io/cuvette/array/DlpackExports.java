package io.cuvette.array;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.cuvette.ForeignLoan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The tensors that others have of this process, in slots of memory that is never freed: a deleter
 * that is called once too often finds its slot still, and does nothing. A slot is used again only
 * after {@value #RESTING} others. Thread-safe.
 *
 * <p>The deleter runs on threads of others. It takes the loan from the slot, gives it back and puts
 * the slot on a stack, and neither waits nor allocates.
 */
final class DlpackExports {
  /** How many slots that were given back are not used again yet. */
  private static final int RESTING = 256;

  private static final int SLOTS_AT_ONCE = 64;
  private static final long NUMBER = DlpackStructure.BYTES;
  private static final long AXES = NUMBER + Long.BYTES;
  private static final long SLOT_BYTES = AXES + 2L * Layout.MAX_RANK * Long.BYTES;

  private static final DlpackExports ALL = new DlpackExports();

  private final MemorySegment everything = DlpackStructure.calls().memory(0, Long.MAX_VALUE);
  private final long deleter = DlpackStructure.calls().callback(this::deleted);
  private final ReentrantLock lock = new ReentrantLock();
  private final Deque<Slot> free = new ArrayDeque<>();
  private final AtomicReference<@Nullable Slot> returned = new AtomicReference<>();
  private volatile Slot[] slots = {};

  private DlpackExports() {}

  private static final class Slot {
    final MemorySegment memory;
    final AtomicReference<@Nullable ForeignLoan> loan = new AtomicReference<>();
    @Nullable Slot next;

    Slot(MemorySegment memory) {
      this.memory = memory;
    }
  }

  /** Writes a tensor whose deleter gives a loan back. */
  static DlpackTensor export(
      DlpackStructure.Content content, boolean isVersioned, ForeignLoan loan) {
    Slot slot = ALL.take();
    new DlpackStructure(slot.memory.asSlice(0, DlpackStructure.BYTES), isVersioned)
        .write(content, slot.memory.asSlice(AXES), ALL.deleter);
    slot.loan.set(loan);
    return new DlpackTensor(slot.memory.address(), isVersioned);
  }

  /**
   * Has a tensor taken over. One of this process gives its loan to who takes it: it cannot be taken
   * again, and its deleter does nothing from then on. No other tensor has its place as long as the
   * memory is not returned: who still has the old one would delete that.
   *
   * @param take makes the array, given what returns the memory; the tensor stays as it was if that
   *     fails
   * @throws IllegalStateException if it is of this process, and was taken or deleted
   */
  static NdArray takeOver(DlpackStructure structure, Function<Runnable, NdArray> take) {
    Slot slot = structure.deleter() == ALL.deleter ? ALL.find(structure.address()) : null;
    if (slot == null) {
      return take.apply(structure::delete);
    }
    ForeignLoan loan = slot.loan.getAndSet(null);
    if (loan == null) {
      throw new IllegalStateException(
          "tensor at 0x%x was taken or deleted (expected: one that is neither)"
              .formatted(structure.address()));
    }
    boolean isTaken = false;
    try {
      NdArray array =
          take.apply(() -> {
            loan.giveBack();
            ALL.putBack(slot);
          });
      isTaken = true;
      return array;
    } finally {
      if (!isTaken) {
        slot.loan.set(loan);
      }
    }
  }

  private Slot take() {
    lock.lock();
    try {
      rest(returned.getAndSet(null));
      if (free.size() <= RESTING) {
        return made();
      }
      return free.remove();
    } finally {
      lock.unlock();
    }
  }

  /** Puts slots behind all others. */
  private void rest(@Nullable Slot last) {
    for (Slot slot = last; slot != null; ) {
      Slot before = slot.next;
      slot.next = null;
      free.add(slot);
      slot = before;
    }
  }

  private Slot made() {
    Slot[] known = slots;
    int count = known.length;
    MemorySegment memory = Arena.global().allocate(SLOT_BYTES * SLOTS_AT_ONCE, Long.BYTES);
    Slot[] more = Arrays.copyOf(known, count + SLOTS_AT_ONCE);
    for (int i = 0; i < SLOTS_AT_ONCE; i++) {
      MemorySegment own = memory.asSlice(i * SLOT_BYTES, SLOT_BYTES);
      own.set(JAVA_LONG, NUMBER, count + i);
      more[count + i] = new Slot(own);
    }
    slots = more;
    free.addAll(Arrays.asList(more).subList(count + 1, more.length));
    return more[count];
  }

  /** The deleter. */
  private void deleted(long address) {
    Slot slot = find(address);
    ForeignLoan loan = slot == null ? null : slot.loan.getAndSet(null);
    if (slot != null && loan != null) {
      loan.giveBack();
      putBack(slot);
    }
  }

  private void putBack(Slot slot) {
    Slot top;
    do {
      top = returned.get();
      slot.next = top;
    } while (!returned.compareAndSet(top, slot));
  }

  /** The slot at an address; null if it is none. */
  private @Nullable Slot find(long address) {
    if (address == 0) {
      return null;
    }
    long number = everything.get(JAVA_LONG_UNALIGNED, address + NUMBER);
    Slot[] known = slots;
    if (number < 0 || number >= known.length) {
      return null;
    }
    Slot slot = known[(int) number];
    return slot.memory.address() == address ? slot : null;
  }
}
