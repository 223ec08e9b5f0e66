package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.Fragmentation;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The programs of docs/guide/allocator.md. */
class AllocatorGuideTest {
  private static final long MIB = 1 << 20;

  @CudaTest
  void sameWork_inBothPools(Cuda cuda, CudaStream stream) {
    try (MemoryPool caching = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      List<Buffer> live = new ArrayList<>();
      for (int i = 0; i < 16; i++) {
        live.add(caching.allocate(4 * MIB, stream));
        live.add(elastic.allocate(4 * MIB, stream));
      }
      live.forEach(Buffer::close); // 64 MiB are cached in each
      stream.synchronize();
      try (Buffer large = caching.allocate(64 * MIB, stream);
          Buffer same = elastic.allocate(64 * MIB, stream)) {
        same.copyFrom(large, stream);
        assertThat(caching.totalBytes()).isEqualTo(128 * MIB); // no chunk is large enough
        assertThat(elastic.totalBytes()).isEqualTo(64 * MIB); // neighbours have merged
      }
    }
  }

  @CudaTest
  void elasticPool_isLimitedAndTrimmed(Cuda cuda) {
    ElasticPoolOptions options =
        ElasticPoolOptions.DEFAULTS
            .withLimit(MemoryLimit.ofBytes(256 * MIB))
            .withReleaseThresholdBytes(128 * MIB); // what may stay cached
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options);
        Scope _ = cuda.useAllocator(pool)) {
      cuda.allocate(100 * MIB).close();
      cuda.currentDevice().synchronize();
      assertThat(pool.trim(Duration.ofHours(1))).isZero(); // nothing is idle so long
      pool.trim(10 * MIB);
      assertThat(pool.totalBytes()).isLessThanOrEqualTo(10 * MIB);

      try (Buffer _ = cuda.allocate(3 * MIB)) {
        Fragmentation why = pool.fragmentation();
        assertThat(why.heldBytes()).isEqualTo(pool.totalBytes());
        assertThat(why.orderedBytes()).isZero(); // no stream has freed any since it was idle
      }
    }
  }
}
