package io.cuvette.internal.fence;

import io.cuvette.internal.base.Failures;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * What a graph, or what was instantiated from it, keeps until its end: the memory of captures and
 * of nodes that were built, and events. Thread-safe, but for the end, which comes last.
 */
public final class Retained {
  @SuppressWarnings("rawtypes")
  private static final AtomicReferenceFieldUpdater<Retained, @Nullable Set> CHANGING =
      AtomicReferenceFieldUpdater.newUpdater(Retained.class, Set.class, "changing");

  private final Set<Retainable> all = ConcurrentHashMap.newKeySet();

  /** What each node uses that changed, until it changes again; others may be among all, too. */
  private volatile @Nullable Set<Retainable> changing;

  /** What stands for the nodes that were built. */
  private final AtomicReference<@Nullable Capture> built = new AtomicReference<>();

  /** A segment of each arena of users that is used. */
  private final AtomicReference<List<MemorySegment>> hosts = new AtomicReference<>(List.of());

  /** Takes over what the caller retains. */
  public void take(Retainable retained) {
    if (all.add(retained)) {
      retained.forEachHost(this::add);
    } else {
      retained.letGo();
    }
  }

  private void add(MemorySegment host) {
    hosts.updateAndGet(before -> {
      if (before.stream().anyMatch(known -> known.scope().equals(host.scope()))) {
        return before;
      }
      List<MemorySegment> more = new ArrayList<>(before);
      more.add(host);
      return more;
    });
  }

  /**
   * Refuses a launch that would use memory of an arena which is closed. Needs no Java heap.
   *
   * @throws IllegalStateException naming the memory
   */
  public void checkHosts() {
    List<MemorySegment> now = hosts.get();
    for (int i = 0; i < now.size(); i++) {
      if (!now.get(i).scope().isAlive()) {
        throw new IllegalStateException(
            ("launch: the graph copies from or to %s, whose arena is closed (expected: an arena"
                    + " that is open until the graph's launches are done, or a PinnedBuffer)")
                .formatted(now.get(i)));
      }
    }
  }

  private void keep(Retainable more) {
    more.retain();
    take(more);
  }

  /** What new nodes use memory by, which is kept here. */
  public Capture built() {
    Capture known = built.get();
    if (known == null) {
      Capture made = Capture.built();
      known = built.compareAndExchange(null, made);
      if (known == null) {
        known = made;
        take(made);
      } else {
        made.letGo();
      }
    }
    return known;
  }

  /** Takes over what the caller retains, until it is dropped. */
  public void takeForNow(Retainable retained) {
    Set<Retainable> known = changing;
    if (known == null) { // few graphs have any
      CHANGING.compareAndSet(this, null, ConcurrentHashMap.<Retainable>newKeySet());
      known = Objects.requireNonNull(changing);
    }
    known.add(retained);
  }

  private Set<Retainable> changing() {
    Set<Retainable> known = changing;
    return known == null ? Set.of() : known;
  }

  /** Hands to the caller what was taken over for now; false if this has it no more. */
  public boolean drop(Retainable retained) {
    Set<Retainable> known = changing;
    return known != null && known.remove(retained);
  }

  /** The same once more, for somebody whose end is another. For who keeps this from its end. */
  public Retained copy() {
    Retained copy = new Retained();
    copy.addAll(this);
    return copy;
  }

  /** Keeps what another does, too; which the caller keeps from its end. */
  public void addAll(Retained other) {
    other.all.forEach(this::keep);
    other.changing().forEach(this::keep);
  }

  /**
   * Has a capture keep what this does, which the caller keeps from its end. For a copy: no node of
   * it has changed.
   */
  public void keepIn(Capture capture) {
    assert changing().isEmpty() : this;
    for (Retainable one : all) {
      one.retain();
      capture.hold(one);
    }
  }

  /** The end, also of the others if one fails. */
  public void release() {
    hosts.set(List.of());
    Failures failures = new Failures();
    letGo(all, failures);
    Set<Retainable> known = changing;
    if (known != null) {
      letGo(known, failures);
    }
    failures.throwFirst();
  }

  private static void letGo(Set<Retainable> retained, Failures failures) {
    retained.removeIf(one -> {
      failures.run(one::letGo);
      return true;
    });
  }
}
