package io.cuvette;

import io.cuvette.driver.CudaException;
import java.util.AbstractSet;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Spliterator;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A set whose elements the driver knows: every query goes there, and every change is made there
 * after all elements were checked. Elements are given in a fixed order. Thread-safe if its parts
 * are.
 *
 * @param <E> the elements
 */
abstract class LiveSet<E> extends AbstractSet<E> {

  /** What is in the set now, in order. */
  abstract List<E> now();

  /** Whether an element can be in the set; one that cannot, and is not refused, is passed over. */
  abstract boolean canHave(E element);

  /**
   * Returns what clearing removes, in order: all that is in the set, and devices with read-only
   * access.
   */
  List<E> traces() {
    return now();
  }

  /**
   * Takes elements out and puts others in. No element is there twice, and each is a change; one of
   * the two has at least one.
   */
  abstract void change(List<E> out, List<E> in);

  private boolean changeIfAny(List<E> out, List<E> in) {
    boolean any = !out.isEmpty() || !in.isEmpty();
    if (any) {
      change(out, in);
    }
    return any;
  }

  private boolean take(Predicate<? super E> filter) {
    return changeIfAny(now().stream().filter(filter).toList(), List.of());
  }

  private List<E> missing(List<E> wanted) {
    List<E> there = wanted.isEmpty() ? List.of() : now();
    return wanted.stream().filter(each -> !there.contains(each)).toList();
  }

  /** Makes the set have exactly some elements; all of them are checked before anything changes. */
  final void assign(Collection<? extends E> elements) {
    List<E> wanted = possible(elements);
    List<E> out = traces().stream().filter(each -> !wanted.contains(each)).toList();
    changeIfAny(out, missing(wanted));
  }

  private List<E> possible(Collection<? extends E> elements) {
    return List.<E>copyOf(elements).stream().filter(this::canHave).distinct().toList();
  }

  @Override
  public boolean add(E element) {
    return addAll(List.of(element));
  }

  @Override
  public boolean addAll(Collection<? extends E> elements) {
    return changeIfAny(List.of(), missing(possible(elements)));
  }

  @Override
  public boolean contains(@Nullable Object element) {
    return element != null && now().contains(element);
  }

  @Override
  public boolean remove(@Nullable Object element) {
    return take(each -> each.equals(element));
  }

  @Override
  public boolean removeAll(Collection<?> elements) {
    return take(elements::contains);
  }

  @Override
  public boolean retainAll(Collection<?> elements) {
    return take(element -> !elements.contains(element));
  }

  @Override
  public boolean removeIf(Predicate<? super E> filter) {
    return take(filter);
  }

  @Override
  public void clear() {
    changeIfAny(traces(), List.of());
  }

  @Override
  public int size() {
    return now().size();
  }

  @Override
  public Spliterator<E> spliterator() {
    return now().spliterator();
  }

  @Override
  public Iterator<E> iterator() {
    Iterator<E> elements = now().iterator();
    return new Iterator<>() {
      private @Nullable E last;

      @Override
      public boolean hasNext() {
        return elements.hasNext();
      }

      @Override
      public E next() {
        E next = elements.next();
        last = next;
        return next;
      }

      @Override
      public void remove() {
        if (last == null) {
          throw new IllegalStateException("remove before next");
        }
        LiveSet.this.remove(last);
        last = null;
      }
    };
  }

  /** Never throws: texts are for logs and debuggers, and name what cannot be queried. */
  @Override
  public String toString() {
    try {
      return now().toString();
    } catch (IllegalStateException | CudaException e) {
      return "[unknown: %s]".formatted(e.getMessage());
    }
  }
}
