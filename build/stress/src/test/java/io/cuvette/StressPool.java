package io.cuvette;

import io.cuvette.internal.devicepool.CachesOfStream;
import io.cuvette.internal.devicepool.MemoryPoolCore;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.PoolCensus;
import io.cuvette.internal.streamcache.StreamCache;

/** One pool for all rounds of a process; each round has a stream of its own, so its own arena. */
final class StressPool {
  static final int BYTES = 512;

  private static final Cuda CUDA = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.OFF));
  private static final MemoryPool OWNER = new MemoryPool(CUDA);
  private static final MemoryPoolCore POOL = MemoryPool.core(OWNER, CUDA, PoolOptions.DEFAULTS);

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

  /** Two blocks in use that are one chunk. */
  static Buffer[] twoBlocks(CudaStream stream) {
    BufferKind.base(POOL.allocate(2 * BYTES, stream.core())).close();
    return new Buffer[] {allocate(stream), allocate(stream)};
  }

  /** What a stream has in the pool; it is closed then, and its memory goes back. */
  static PoolCensus end(CudaStream stream) {
    PoolCensus census = new PoolCensus();
    StreamCache arena = CachesOfStream.of(stream.state).known(POOL);
    if (arena != null) {
      arena.count(census);
    }
    POOL.freeAllBlocks(stream.core());
    stream.close();
    return census;
  }
}
