package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/** The Java heap that allocating and closing a cached block needs: the buffer and its block. */
class PairHeapTest {
  private static final int PAIRS = 20_000;

  /** 40 for the buffer and 104 for the block, with compressed class pointers and references. */
  private static final long BUFFER_AND_BLOCK = 144;

  private static final ThreadMXBean HEAP = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  @Test
  void pair_needsTheBufferAndItsBlockAlone() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool pool = new MemoryPool(cuda);
        CudaStream stream = cuda.currentDevice().createStream()) {
      bytesOfPairs(pool, stream); // compiles it
      assertThat(bytesOfPairs(pool, stream) / PAIRS).isLessThanOrEqualTo(BUFFER_AND_BLOCK);
    }
  }

  private static long bytesOfPairs(MemoryPool pool, CudaStream stream) {
    long before = HEAP.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < PAIRS; i++) {
      pool.allocate(512, stream).close();
    }
    return HEAP.getCurrentThreadAllocatedBytes() - before;
  }
}
