package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingOrdered;
import io.cuvette.instrument.QuietListener;
import java.util.ArrayList;
import java.util.List;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Memory of the driver that whoever watches memory refuses, and that cannot be freed then. */
class RefusedBlockTest {
  private static final int BYTES = 1000;

  private boolean refuses;

  /** The calls that fail; they are made all the same. */
  private final List<String> failing = new ArrayList<>();

  private int frees;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Refusing::new));
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final MemoryResource own =
      new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);

  @AfterEach
  void close() {
    cuda.close();
  }

  private final class Refusing extends ForwardingDriver {
    private final OrderedCalls orderedCalls =
        new ForwardingOrdered(delegate().ordered()) {
          @Override
          public void memFreeAsync(int device, long address, long stream) {
            super.memFreeAsync(device, address, stream);
            freed("memFreeAsync");
          }
        };

    private final MemoryCalls memoryCalls =
        new ForwardingMemory(delegate().memory()) {
          @Override
          public void memFree(int device, long address) {
            super.memFree(device, address);
            freed("memFree");
          }
        };

    Refusing(CudaDriver delegate) {
      super(delegate);
    }

    private void freed(String call) {
      frees++;
      if (failing.contains(call)) {
        throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, call, "of earlier work");
      }
    }

    @Override
    public OrderedCalls ordered() {
      return orderedCalls;
    }

    @Override
    public MemoryCalls memory() {
      return memoryCalls;
    }

    @Override
    public BlockListener blockListener() {
      return new QuietListener() {
        @Override
        public void blockAllocated(Block block, int device, long of) {
          if (refuses) {
            throw new IllegalStateException("refused on purpose");
          }
        }
      };
    }
  }

  /** The refusal comes first; what the free failed with is told with it. */
  private void refused(MemoryResource resource, String call) {
    refuses = true;
    failing.add(call);
    frees = 0;
    assertThatThrownBy(() -> resource.allocate(BYTES, stream))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("refused on purpose")
        .satisfies(e ->
            assertThat(e.getSuppressed())
                .singleElement(InstanceOfAssertFactories.THROWABLE)
                .isInstanceOf(CudaException.class)
                .hasMessageContaining(call));
    assertThat(frees).isOne();
    failing.clear();
    refuses = false;
    resource.allocate(BYTES, stream).close();
  }

  @Test
  void freeThatFails_isToldWithTheRefusal() {
    for (MemoryResource resource : List.of(own, MemoryResource.async())) {
      refused(resource, "memFreeAsync");
      stream.synchronize();
    }
  }

  @Test
  void freeThatFailsBesideACapture_isToldWithTheRefusal() {
    CudaGraph graph =
        stream.capture(() -> {
          for (MemoryResource resource : List.of(own, MemoryResource.async())) {
            refused(resource, "memFree");
          }
        });
    graph.close();
  }

  /** It was idle, and is not kept so. */
  @Test
  void freeOfMemoryThatWasIdle_isToldWithTheRefusal() {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      pool.allocate(BYTES, stream).close();
      refused(pool, "memFreeAsync");
      stream.synchronize();
    }
  }
}
