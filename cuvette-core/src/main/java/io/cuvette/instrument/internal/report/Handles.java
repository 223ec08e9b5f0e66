package io.cuvette.instrument.internal.report;

import io.cuvette.instrument.Misuse;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The handles of one kind: which are live, and which were destroyed not long ago. Not thread-safe.
 *
 * @param <T> what a handle stands for
 */
public final class Handles<T> {
  private static final int REMEMBERED = 4096;

  private final String kind;
  private final Map<Long, Entry<T>> live = new LinkedHashMap<>();
  private final Map<Long, Dead> dead = new LinkedHashMap<>();

  /** How often more than once a live one has to be destroyed. */
  private final Map<Long, Integer> again = new HashMap<>();

  /** No handles; {@code kind} is their name in messages, such as {@code stream}. */
  public Handles(String kind) {
    this.kind = kind;
  }

  /** A live handle; {@code created} is null if this driver did not make it. */
  public record Entry<T>(long handle, T value, @Nullable CallTrace created) {}

  private record Dead(@Nullable CallTrace created, CallTrace destroyed) {}

  public void add(long handle, T value, @Nullable CallTrace created) {
    dead.remove(handle);
    live.put(handle, new Entry<>(handle, value, created));
  }

  /** Adds a handle that may be live already, and has to be destroyed once more then. */
  public void addOnceMore(long handle, T value, @Nullable CallTrace created) {
    if (isLive(handle)) {
      again.merge(handle, 1, Integer::sum);
    } else {
      add(handle, value, created);
    }
  }

  /** What a handle stands for; null, and a finding, if it is destroyed or unknown. */
  public @Nullable T use(long handle, CallTrace here, Findings findings) {
    Entry<T> entry = live.get(handle);
    if (entry == null) {
      explain(handle, Misuse.DESTROYED_HANDLE, here, findings);
    }
    return entry == null ? null : entry.value;
  }

  /** Whether a handle can be destroyed; a finding if not. */
  public void checkDestroy(long handle, CallTrace here, Findings findings) {
    if (!live.containsKey(handle)) {
      explain(handle, Misuse.DOUBLE_FREE, here, findings);
    }
  }

  /** What is known of a live one; null if nothing is. */
  public @Nullable T find(long handle) {
    Entry<T> entry = live.get(handle);
    return entry == null ? null : entry.value();
  }

  public boolean isLive(long handle) {
    return live.containsKey(handle);
  }

  public boolean isDead(long handle) {
    return dead.containsKey(handle);
  }

  /**
   * Takes a handle away, before the driver may give it to another object; null if it is not live.
   */
  public @Nullable Entry<T> destroy(long handle, CallTrace here) {
    if (again.containsKey(handle)) {
      again.computeIfPresent(handle, (_, times) -> times == 1 ? null : times - 1);
      return live.get(handle);
    }
    Entry<T> entry = live.remove(handle);
    if (entry != null) {
      dead.put(handle, new Dead(entry.created, here));
      if (dead.size() > REMEMBERED) {
        dead.remove(dead.keySet().iterator().next());
      }
    }
    return entry;
  }

  /** Puts back what the driver refused to destroy. */
  public void restore(Entry<T> entry) {
    if (isLive(entry.handle)) {
      again.merge(entry.handle, 1, Integer::sum);
    }
    dead.remove(entry.handle);
    live.put(entry.handle, entry);
  }

  public void leaks(Findings findings) {
    for (Entry<T> entry : live.values()) {
      if (entry.created != null) {
        findings.leak(name(entry.handle), entry.created);
      }
    }
  }

  private void explain(long handle, Misuse ifDestroyed, CallTrace here, Findings findings) {
    Dead former = dead.get(handle);
    if (former == null) {
      findings.add(Misuse.UNKNOWN_HANDLE, here, "no " + name(handle) + " was made here");
    } else if (former.created == null) {
      findings.add(ifDestroyed, here, name(handle) + " was destroyed", former.destroyed);
    } else {
      findings.add(
          ifDestroyed, here, name(handle) + " was destroyed", former.destroyed, former.created);
    }
  }

  private String name(long handle) {
    return "%s 0x%x".formatted(kind, handle);
  }
}
