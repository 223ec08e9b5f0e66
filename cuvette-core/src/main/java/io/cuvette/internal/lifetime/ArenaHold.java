package io.cuvette.internal.lifetime;

import io.cuvette.driver.ForeignCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the arena of memory of the program from being closed, as long as devices use it. Arenas
 * that no program closes end when the collector finds them: the caller keeps the memory reachable.
 * Thread-safe.
 */
public final class ArenaHold {
  /** How the scopes of automatic arenas, of the global one and of byte buffers are made. */
  private static final Set<Class<?>> NEVER_CLOSED =
      Set.of(
          Arena.ofAuto().scope().getClass(),
          Arena.global().scope().getClass(),
          MemorySegment.ofArray(new byte[0]).scope().getClass());

  /** Who stands for the threads of the library: whether they may access memory. */
  private static final Thread OTHER = Thread.ofPlatform().unstarted(() -> {});

  /** Those that others can share: what keeps an arena open takes a thread. */
  private static final ConcurrentHashMap<MemorySegment.Scope, ArenaHold> HELD =
      new ConcurrentHashMap<>();

  private final MemorySegment.Scope scope;
  private final Runnable letGo;

  /** How many share it; it is over at 0. */
  private final AtomicInteger users = new AtomicInteger(1);

  private ArenaHold(MemorySegment.Scope scope, Runnable letGo) {
    this.scope = scope;
    this.letGo = letGo;
  }

  /** What keeps arenas open; found when first wanted. */
  private static final class Found {
    static final Optional<ForeignCalls> CALLS = ForeignCalls.find();

    private Found() {}
  }

  /**
   * Holds the arena of memory.
   *
   * @return lets go of it; does nothing the second time
   * @throws IllegalArgumentException if it is one that cannot be held
   * @throws IllegalStateException if it is closed
   */
  public static Runnable of(String name, MemorySegment memory) {
    if (!memory.scope().isAlive()) {
      throw new IllegalStateException("%s: the arena of %s is closed".formatted(name, memory));
    }
    if (!memory.isAccessibleBy(OTHER)) {
      throw new IllegalArgumentException(
          "%s: %s is confined to a thread, which can close its arena while a device uses it"
                  .formatted(name, memory)
              + " (expected: memory of Arena.ofShared(), Arena.ofAuto() or Arena.global())");
    }
    if (NEVER_CLOSED.contains(memory.scope().getClass())) {
      return () -> {};
    }
    ForeignCalls calls =
        Found.CALLS.orElseThrow(() ->
            new IllegalArgumentException(
                "%s: the arena of %s can be closed while a device uses it".formatted(name, memory)
                    + " (expected: memory of Arena.ofAuto() or Arena.global(), or the module"
                    + " cuvette-ffm, which keeps arenas open)"));
    AtomicReference<@Nullable ArenaHold> held = new AtomicReference<>();
    Runnable letGo =
        () -> {
          ArenaHold hold = held.getAndSet(null);
          if (hold != null) {
            hold.leave();
          }
        };
    held.set(shared(calls, memory));
    return letGo;
  }

  /** Two threads that come first can make one each. */
  private static ArenaHold shared(ForeignCalls calls, MemorySegment memory) {
    MemorySegment.Scope scope = memory.scope();
    ArenaHold known = HELD.get(scope);
    if (known != null && known.users.getAndUpdate(now -> now == 0 ? 0 : now + 1) > 0) {
      return known;
    }
    Runnable letGo = calls.holdArena(memory);
    try {
      ArenaHold made = new ArenaHold(scope, letGo);
      HELD.put(scope, made);
      return made;
    } catch (OutOfMemoryError e) { // of the Java heap
      letGo.run();
      throw e;
    }
  }

  private void leave() {
    if (users.decrementAndGet() == 0) {
      boolean _ = HELD.remove(scope, this);
      letGo.run();
    }
  }
}
