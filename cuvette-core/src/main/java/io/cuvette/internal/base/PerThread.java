package io.cuvette.internal.base;

import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A value for each thread, which may refer to the owner of all of them. That of a plain {@link
 * ThreadLocal} would keep such an owner for as long as the thread lives; here closing lets go of
 * all. Thread-safe.
 *
 * @param <T> the value
 */
public final class PerThread<T> {
  private final Supplier<T> first;
  private final ThreadLocal<Slot<T>> slots = ThreadLocal.withInitial(this::open);
  private final Set<Reference<Slot<T>>> all = ConcurrentHashMap.newKeySet();
  private final ReferenceQueue<Slot<T>> ended = new ReferenceQueue<>();
  private volatile boolean closed;

  private static final class Slot<T> {
    @Nullable T value;

    /** The value, once the owner is closed: whoever has it already goes on with it. */
    @Nullable Reference<T> last;

    T weakly(T kept) {
      last = new WeakReference<>(kept);
      value = null;
      return kept;
    }
  }

  /**
   * Creates no value yet.
   *
   * @param first makes the value of a thread at its first call
   */
  public PerThread(Supplier<T> first) {
    this.first = first;
  }

  private Slot<T> open() {
    for (var gone = ended.poll(); gone != null; gone = ended.poll()) {
      all.remove(gone);
    }
    Slot<T> slot = new Slot<>();
    all.add(new WeakReference<>(slot, ended));
    slot.value = first.get();
    VarHandle
        .fullFence(); // whoever closes meanwhile sees the value, or its thread that it is closed
    return slot;
  }

  /** Returns the value of this thread. */
  public T get() {
    Slot<T> slot = slots.get();
    T value = slot.value;
    return value != null && !closed ? value : closed(slot);
  }

  private T closed(Slot<T> slot) {
    T value = slot.value;
    Reference<T> last = slot.last;
    if (value == null && last != null) {
      value = last.get();
    }
    return slot.weakly(value == null ? first.get() : value);
  }

  /** Sets the value of this thread. */
  public void set(T value) {
    Slot<T> slot = slots.get();
    slot.value = value;
    VarHandle.fullFence(); // as above
    if (closed) {
      slot.weakly(value);
    }
  }

  /** Has this thread begin anew. */
  public void remove() {
    slots.remove();
  }

  /** Keeps no value any more; those that somebody has stay the values of their threads. */
  public void close() {
    closed = true;
    VarHandle.fullFence();
    for (Reference<Slot<T>> each : all) {
      Slot<T> slot = each.get();
      T value = slot == null ? null : slot.value;
      if (slot != null && value != null) {
        slot.weakly(value);
      }
    }
    all.clear();
  }
}
