package io.cuvette.internal.devicepool;

import io.cuvette.internal.fence.CachingPool;
import io.cuvette.internal.fence.StreamLocal;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.streamcache.BlockCache;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/** The arenas that pools keep for one stream. Thread-safe. */
public final class CachesOfStream implements StreamLocal {
  private final DriverStream stream;
  private final ConcurrentHashMap<CachingPool, BlockCache> arenas = new ConcurrentHashMap<>();

  /** The one found last, to spare the map. */
  private @Nullable BlockCache last;

  public CachesOfStream(DriverStream stream) {
    this.stream = stream;
  }

  /** The arena of a pool, made if there is none. */
  public BlockCache of(MemoryPoolCore pool) {
    BlockCache found = last;
    return found != null && found.pool == pool ? found : find(pool);
  }

  private BlockCache find(MemoryPoolCore pool) {
    BlockCache arena = arenas.get(pool);
    if (arena == null) {
      DevicePool devicePool = pool.poolOf(stream);
      arena = arenas.computeIfAbsent(pool, _ -> devicePool.newCache(stream));
      if (stream.isClosed() || pool.isClosed()) {
        arena.retire(); // who closes it may not have seen it
      }
    }
    last = arena;
    return arena;
  }

  /** The arena of a pool, if it has one. */
  public @Nullable BlockCache known(MemoryPoolCore pool) {
    return arenas.get(pool);
  }

  /** The arena is over. */
  public void remove(BlockCache arena) {
    arenas.remove(arena.pool, arena);
    if (last == arena) {
      last = null;
    }
  }

  /** Those of a stream. */
  public static CachesOfStream of(DriverStream stream) {
    return (CachesOfStream) stream.local;
  }

  @Override
  public void retire() {
    arenas.values().forEach(BlockCache::retire);
    if (stream.isOfCapture()) { // others end inside a step, where upstream must not be called
      arenas.values().forEach(BlockCache::releaseIfClosed);
    }
    arenas.clear();
    last = null;
  }
}
