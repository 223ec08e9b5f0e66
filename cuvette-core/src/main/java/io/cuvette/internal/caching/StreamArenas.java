package io.cuvette.internal.caching;

import io.cuvette.internal.stream.StreamLocal;
import io.cuvette.internal.stream.StreamState;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The arenas that pools keep for one stream. Thread-safe. */
public final class StreamArenas implements StreamLocal {
  private final StreamState stream;
  private final ConcurrentHashMap<MemoryPoolCore, PoolArena> arenas = new ConcurrentHashMap<>();

  /** The one found last, to spare the map. */
  private @Nullable PoolArena last;

  public StreamArenas(StreamState stream) {
    this.stream = stream;
  }

  /** The arena of a pool, made if there is none. */
  public PoolArena of(MemoryPoolCore pool) {
    PoolArena found = last;
    return found != null && found.pool == pool ? found : find(pool);
  }

  private PoolArena find(MemoryPoolCore pool) {
    PoolArena arena = arenas.get(pool);
    if (arena == null) {
      DevicePool devicePool = pool.poolOf(stream);
      arena = arenas.computeIfAbsent(pool, _ -> devicePool.newArena(stream));
      if (stream.isClosed() || pool.isClosed()) {
        arena.retire(); // who closes it may not have seen it
      }
    }
    last = arena;
    return arena;
  }

  /** The arena of a pool, if it has one. */
  public @Nullable PoolArena known(MemoryPoolCore pool) {
    return arenas.get(pool);
  }

  /** The arena is over. */
  public void remove(PoolArena arena) {
    arenas.remove(arena.pool, arena);
    if (last == arena) {
      last = null;
    }
  }

  /** Those of a stream. */
  public static StreamArenas of(StreamState stream) {
    return (StreamArenas) stream.local;
  }

  @Override
  public void retire() {
    arenas.values().forEach(PoolArena::retire);
    arenas.clear();
    last = null;
  }
}
