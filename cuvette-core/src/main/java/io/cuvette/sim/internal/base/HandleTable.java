package io.cuvette.sim.internal.base;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Objects of one kind by handle. The kind is in the top bits of a handle. Guarded by the driver's
 * lock.
 *
 * @param <T> the objects
 */
public final class HandleTable<T> {
  private static final int GENERATION_MASK = 0xFF_FFFF;

  private final HandleKind kind;
  private final boolean reuses;
  private final List<@Nullable T> items = new ArrayList<>();
  private final List<Integer> generations = new ArrayList<>();
  private final List<Integer> free = new ArrayList<>();

  /**
   * A table.
   *
   * @param reuses whether a removed object's handle value is given to a later one, at once, as the
   *     real driver does with streams; else the value is different, and its use is always found
   */
  public HandleTable(HandleKind kind, boolean reuses) {
    this.kind = kind;
    this.reuses = reuses;
  }

  public long add(T item) {
    int index;
    if (free.isEmpty()) {
      index = items.size();
      items.add(item);
      generations.add(0);
    } else {
      index = free.removeLast();
      items.set(index, item);
    }
    return kind.handle(generations.get(index), index);
  }

  public @Nullable T find(long handle) {
    int index = HandleKind.index(handle);
    return HandleKind.of(handle) == kind
            && index >= 0
            && index < items.size()
            && handle == kind.handle(generations.get(index), index)
        ? items.get(index)
        : null;
  }

  /** The object of a handle, or INVALID_HANDLE with what the value is instead. */
  public T get(long handle) {
    T item = find(handle);
    if (item == null) {
      throw kind.refused(handle);
    }
    return item;
  }

  public T remove(long handle) {
    T item = get(handle);
    int index = HandleKind.index(handle);
    items.set(index, null);
    if (!reuses) {
      generations.set(index, (generations.get(index) + 1) & GENERATION_MASK);
    }
    free.add(index);
    return item;
  }

  public int size() {
    return items.size() - free.size();
  }

  public void forEach(Consumer<T> action) {
    for (T item : items) {
      if (item != null) {
        action.accept(item);
      }
    }
  }
}
