package io.cuvette.testkit.memory;

import io.cuvette.Cuda;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.testkit.MemoryResourceContract;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Nested;

/** The contract of memory resources, held against each there is. */
class MemoryResourceTest {

  @Nested
  class Pool extends MemoryResourceContract {
    @Override
    protected MemoryResource create(Cuda cuda) {
      return new MemoryPool(cuda);
    }
  }

  @Nested
  class Elastic extends MemoryResourceContract {
    @Override
    protected MemoryResource create(Cuda cuda) {
      return new ElasticMemoryPool(cuda);
    }
  }

  @Nested
  class Direct extends MemoryResourceContract {
    @Override
    protected MemoryResource create(Cuda cuda) {
      return MemoryResource.direct();
    }
  }

  @Nested
  class PoolOverAPool extends MemoryResourceContract {
    private final List<MemoryPool> upstreams = new ArrayList<>();

    @Override
    protected MemoryResource create(Cuda cuda) {
      MemoryPool upstream = new MemoryPool(cuda);
      upstreams.add(upstream);
      return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
    }

    @AfterEach
    void closeUpstreams() {
      upstreams.forEach(MemoryPool::close);
    }
  }

  @Nested
  class PoolOfALambda extends MemoryResourceContract {
    @Override
    protected MemoryResource create(Cuda cuda) {
      MemoryResource direct = MemoryResource.direct();
      return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(direct::allocate));
    }
  }
}
