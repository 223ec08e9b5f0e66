package io.cuvette;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.devicepool.CachesOfStream;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.pool.Slabs;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.FrontCache;
import io.cuvette.internal.streamcache.PoolCensus;
import io.cuvette.internal.streamcache.StreamCache;

/** One pool for all rounds of a process; each round has a stream of its own, so its own arena. */
final class StressPool {
  static final int BYTES = 512;

  private static final Cuda CUDA = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.OFF));
  private static final MemoryPool OWNER = new MemoryPool(CUDA);
  private static final MemoryPoolCore POOL =
      MemoryPool.core(OWNER, CUDA, PoolOptions.DEFAULTS, System::nanoTime);

  private StressPool() {}

  static CudaStream stream() {
    return CUDA.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  static Buffer allocate(CudaStream stream) {
    return BufferKind.base(POOL.allocate(BYTES, stream.core())).asBuffer();
  }

  static CachedBlock block(CudaStream stream) {
    return (CachedBlock) ((BufferBase) allocate(stream)).block();
  }

  /** A front that has one block ready, and is the only one of its arena. */
  static FrontCache front(CudaStream stream) {
    Memory chunk = ((BufferBase) allocate(stream)).memory();
    BlockArena arena = new BlockArena();
    int block = arena.add(chunk.address(), BYTES, 0);
    Slabs.Source source = source(arena);
    FrontCache front = new FrontCache(((CachedBlock) chunk.block()).arena, source, source);
    BufferKind.base(
            front
                .mine()
                .takeFrom(block, BYTES, chunk, chunk.address(), BYTES, BYTES, stream.core()))
        .close();
    return front;
  }

  private static Slabs.Source source(BlockArena arena) {
    return new Slabs.Source() {
      @Override
      public void take(int block, long bytes) {
        arena.take(block, bytes);
      }

      @Override
      public int cut(int block, long bytes) {
        return arena.cut(block, bytes);
      }

      @Override
      public void give(int block, long bytes, long time) {
        int _ = arena.give(block);
      }
    };
  }

  /** Two blocks in use that are one chunk. */
  static Buffer[] twoBlocks(CudaStream stream) {
    BufferKind.base(POOL.allocate(2 * BYTES, stream.core())).close();
    return new Buffer[] {allocate(stream), allocate(stream)};
  }

  /** What a stream has in the pool; it is closed then, and its memory goes back. */
  static PoolCensus end(CudaStream stream) {
    PoolCensus census = new PoolCensus();
    StreamCache arena = (StreamCache) CachesOfStream.of(stream.state).known(POOL);
    if (arena != null) {
      arena.count(census);
    }
    POOL.freeAllBlocks(stream.core());
    stream.close();
    return census;
  }
}
