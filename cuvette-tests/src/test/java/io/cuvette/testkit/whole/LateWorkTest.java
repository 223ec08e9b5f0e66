package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Work that another thread is just queueing while a Cuda closes: its memory is not freed before the
 * work is done.
 */
class LateWorkTest {
  /** Each pace and each order of the simulated device. */
  private static final int SEEDS = 12;

  enum Memory {
    POOL_OVER_ASYNC {
      @Override
      MemoryResource in(Cuda cuda) {
        return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.async()));
      }
    },
    POOL_OVER_PLAIN {
      @Override
      MemoryResource in(Cuda cuda) {
        return new MemoryPool(cuda);
      }
    },
    ASYNC_POOL {
      @Override
      MemoryResource in(Cuda cuda) {
        return new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
      }
    },
    ASYNC {
      @Override
      MemoryResource in(Cuda cuda) {
        return MemoryResource.async();
      }
    };

    abstract MemoryResource in(Cuda cuda);
  }

  /** In which stream the work is. */
  enum User {
    OWN {
      @Override
      CudaStream in(Cuda cuda) {
        return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      }
    },
    NULL {
      @Override
      CudaStream in(Cuda cuda) {
        return cuda.device(0).nullStream();
      }
    },
    LEGACY {
      @Override
      CudaStream in(Cuda cuda) {
        return cuda.device(0).legacyStream();
      }
    },
    OF_OTHERS {
      @Override
      CudaStream in(Cuda cuda) {
        long made = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
        return cuda.device(0).wrapStream(made, null);
      }
    };

    abstract CudaStream in(Cuda cuda);
  }

  @ParameterizedTest
  @EnumSource
  void isDoneBeforeItsMemoryIsFreed(Memory memory) throws InterruptedException {
    for (int seed = 0; seed < SEEDS; seed++) {
      check(memory, User.OWN, SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed)));
    }
  }

  @ParameterizedTest
  @EnumSource
  void isDoneBeforeItsMemoryIsFreed_inAnyStream(User user) throws InterruptedException {
    for (int seed = 0; seed < SEEDS; seed++) {
      SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed));
      check(Memory.ASYNC_POOL, user, simulator);
    }
  }

  private static void check(Memory memory, User used, SimulatedDriver simulator)
      throws InterruptedException {
    try (ScriptedDriver script = new ScriptedDriver()) {
      Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(script::over));
      CudaStream home = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      CudaStream user = used.in(cuda);
      Buffer buffer = memory.in(cuda).allocate(1 << 20, home);
      user.waitFor(home);
      Hold fill = script.hold("memsetD8Async");
      Thread other = Thread.ofPlatform().start(() -> buffer.fill((byte) 1, user));
      fill.awaitBegun();
      script.answer(
          "memFree",
          call -> {
            Object freed = call.proceed(); // the first wait for the device has ended
            fill.release();
            return freed;
          });
      cuda.close();
      other.join();
    }
    if (used != User.OF_OTHERS) { // nobody destroys that one
      assertThat(simulator.report()).isEmpty();
    }
  }
}
