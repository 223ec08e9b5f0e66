package io.cuvette.internal.lifetime;

import io.cuvette.driver.ForeignCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Set;

/**
 * Keeps the arena of memory of the program from being closed, as long as devices use it. Arenas
 * that no program closes end when the collector finds them: the caller keeps the memory reachable.
 * Stateless.
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

  private ArenaHold() {}

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
    return Found.CALLS
        .orElseThrow(() ->
            new IllegalArgumentException(
                "%s: the arena of %s can be closed while a device uses it".formatted(name, memory)
                    + " (expected: memory of Arena.ofAuto() or Arena.global(), or the module"
                    + " cuvette-ffm, which keeps arenas open)"))
        .holdArena(memory);
  }
}
