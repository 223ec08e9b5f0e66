package io.cuvette;

import io.cuvette.internal.caching.MemoryPoolCore;
import io.cuvette.internal.caching.PoolArena;
import io.cuvette.internal.caching.PoolCensus;
import io.cuvette.internal.caching.PooledBlock;
import io.cuvette.internal.caching.StreamArenas;

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

  static PooledBlock block(CudaStream stream) {
    return (PooledBlock) ((BufferBase) allocate(stream)).lifetime();
  }

  /** Two blocks in use that are one chunk. */
  static Buffer[] twoBlocks(CudaStream stream) {
    BufferKind.base(POOL.allocate(2 * BYTES, stream.core())).close();
    return new Buffer[] {allocate(stream), allocate(stream)};
  }

  /** What a stream has in the pool; it is closed then, and its memory goes back. */
  static PoolCensus end(CudaStream stream) {
    PoolCensus census = new PoolCensus();
    PoolArena arena = StreamArenas.of(stream.state).known(POOL);
    if (arena != null) {
      arena.count(census);
    }
    POOL.freeAllBlocks(stream.core());
    stream.close();
    return census;
  }
}
