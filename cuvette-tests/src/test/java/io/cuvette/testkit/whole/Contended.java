package io.cuvette.testkit.whole;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PoolOptions;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What threads make and close while something ends. */
enum Contended {
  DEVICE_RESOURCE {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS));
    }
  },
  CURRENT_POOL {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new DeviceMemoryResource(cuda.device(0)));
    }
  },
  MANAGED_RESOURCE {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS));
    }
  },
  PINNED_RESOURCE {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS));
    }
  },
  ASYNC_POOL {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)));
    }
  },
  ASYNC_CURRENT {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new AsyncMemoryPool(cuda));
    }
  },
  ASYNC {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(MemoryResource.async());
    }
  },
  PLAIN {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(MemoryResource.direct());
    }
  },
  MANAGED {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(MemoryResource.managed());
    }
  },
  PINNED {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return new Source((bytes, _) -> cuda.directPinned().allocate(bytes), null);
    }
  },
  CACHING_POOL {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new MemoryPool(cuda));
    }
  },
  POOL_OVER_ASYNC {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.async())));
    }
  },
  POOL_OVER_POOL {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return of(new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(cuda.defaultMemoryPool())));
    }
  },
  PINNED_POOL {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
      return new Source((bytes, _) -> pool.allocate(bytes), pool);
    }
  },
  RELEASED_POOL {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      MemoryPool pool = new MemoryPool(cuda);
      return new Source(
          (bytes, stream) -> {
            pool.freeAllBlocks();
            return pool.allocate(bytes, stream);
          },
          pool);
    }
  },
  IMPORTED {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      DeviceMemoryResource shared =
          new DeviceMemoryResource(
              peer.device(0), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
      List<Buffer> theirs = new ArrayList<>();
      for (int i = 0; i < FEW; i++) {
        theirs.add(shared.allocate(1024));
      }
      DeviceMemoryResource mapped =
          DeviceMemoryResource.fromAllocationHandle(cuda.device(0), shared.allocationHandle());
      Maker maker =
          (bytes, stream) ->
              mapped.importBuffer(theirs.get((int) (bytes / 512 % FEW)).descriptor(), stream);
      return new Source(maker, mapped, shared);
    }
  },
  IMPORTED_PLAIN {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      List<Buffer> theirs = new ArrayList<>();
      CudaStream stream = peer.currentStream();
      for (int i = 0; i < FEW; i++) {
        theirs.add(MemoryResource.direct().allocate(1024, stream));
      }
      return new Source(
          (bytes, on) ->
              cuda.device(0).importBuffer(theirs.get((int) (bytes / 512 % FEW)).descriptor(), on),
          null);
    }
  },
  EVENTS {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return new Source((_, _) -> cuda.device(0).createEvent(), null);
    }
  },
  STREAMS {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return new Source((_, _) -> cuda.device(0).createStream(), null);
    }
  },
  RESOURCES {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      return new Source(
          (_, _) -> new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS),
          null);
    }
  },
  BUFFERS_OF_STREAMS {
    @Override
    Source open(Cuda cuda, Cuda peer) {
      AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
      return new Source(
          (bytes, _) -> {
            try (CudaStream own = cuda.device(0).createStream()) {
              return pool.allocate(bytes, own);
            }
          },
          pool);
    }
  };

  private static final int FEW = 3;

  /** Makes things to be closed. */
  interface Maker {
    AutoCloseable make(long bytes, CudaStream stream);
  }

  /**
   * Where things come from.
   *
   * @param owner what can be closed while they are made; null for nothing but the Cuda
   * @param kept what must stay reachable
   */
  record Source(Maker maker, @Nullable AutoCloseable owner, @Nullable Object kept) {
    Source(Maker maker, @Nullable AutoCloseable owner) {
      this(maker, owner, null);
    }
  }

  /**
   * Opens a source.
   *
   * @param peer stands for another process
   */
  abstract Source open(Cuda cuda, Cuda peer);

  private static Source of(MemoryResource resource) {
    return new Source(resource::allocate, resource instanceof AutoCloseable owner ? owner : null);
  }
}
