package io.cuvette.testkit.whole;

import static io.cuvette.driver.CudaStatus.LAUNCH_FAILED;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.FaultSweeps.CudaUse;
import io.cuvette.testkit.SweptDriver;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Captures, futures, events of other streams and several pools with each driver call failing. */
@Tag("simulated")
class CapturesAndPoolsUnderFaultsTest {

  /** The driver of the run in progress. */
  private static final ThreadLocal<SweptDriver> SWEPT = new ThreadLocal<>();

  /** The uses, each of which closes what it opens. */
  enum Use implements CudaUse {
    CAPTURED_MEMORY {
      @Override
      public void run(Cuda cuda) throws Exception {
        try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
            Buffer before = cuda.allocate(1000, stream);
            Captured _ = new Captured(cuda.driver(), stream)) {
          before.fill((byte) 1, stream);
          try (Buffer pooled = cuda.allocate(1000, stream);
              Buffer direct = MemoryResource.direct().allocate(1000, stream);
              Buffer ordered = MemoryResource.async().allocate(1000, stream)) {
            pooled.copyFrom(before, stream);
            direct.copyFrom(pooled, stream);
            ordered.copyFrom(direct, stream);
          }
        }
      }
    },
    CLOSED_WHILE_CAPTURING {
      @Override
      public void run(Cuda cuda) throws Exception {
        try (CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
            Buffer direct = MemoryResource.direct().allocate(1000, stream);
            Buffer ordered = MemoryResource.async().allocate(1000, stream);
            Captured _ = new Captured(cuda.driver(), stream)) {
          direct.fill((byte) 1, stream);
          List.of(direct, ordered).forEach(Buffer::close);
        }
      }
    },
    FUTURES {
      @Override
      public void run(Cuda cuda) throws Exception {
        try (CudaStream stream = cuda.device(0).createStream();
            Buffer buffer = cuda.allocate(64, stream)) {
          buffer.fill((byte) 1, stream);
          get(stream.onComplete());
          stream.synchronize();
        }
      }
    },
    EVENTS_OF_OTHERS {
      @Override
      public void run(Cuda cuda) {
        try (CudaStream one = cuda.device(0).createStream();
            CudaStream two = cuda.device(1).createStream();
            CudaEvent event = cuda.device(0).createEvent();
            Buffer buffer = cuda.allocate(64, one)) {
          buffer.fill((byte) 1, one);
          one.record(event);
          two.waitFor(event);
          two.record().close();
          event.synchronize();
          buffer.recordUse(two);
        }
      }
    },
    SEVERAL_POOLS {
      @Override
      public void run(Cuda cuda) {
        var choices = List.of(AsyncPoolChoice.ofNew(0), AsyncPoolChoice.ofCurrent());
        try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, choices);
            CudaStream near = cuda.device(0).createStream();
            CudaStream far = cuda.device(1).createStream();
            Buffer here = pool.allocate(1000, near);
            Buffer there = pool.allocate(1000, far)) {
          there.fill((byte) 1, far);
          near.waitFor(far);
          here.copyFrom(there, near);
          near.synchronize();
        }
      }
    },
    RESOURCES {
      @Override
      public void run(Cuda cuda) {
        CudaStream stream = cuda.currentStream();
        try (DeviceMemoryResource device =
                new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
            ManagedMemoryResource managed = new ManagedMemoryResource(cuda);
            PinnedMemoryResource pinned = new PinnedMemoryResource(cuda);
            Buffer one = device.allocate(1000, stream);
            Buffer two = managed.allocate(1000, stream);
            Buffer three = pinned.allocate(1000, stream)) {
          one.fill((byte) 1, stream);
          two.copyFrom(one, stream);
          three.copyFrom(two, stream);
        }
      }
    },
    POOL_OVER_A_POOL {
      @Override
      public void run(Cuda cuda) {
        try (MemoryPool below = new MemoryPool(cuda);
            MemoryPool above =
                new MemoryPool(
                    cuda,
                    PoolOptions.DEFAULTS
                        .withUpstream(below)
                        .withLimit(MemoryLimit.ofBytes(4 << 20)));
            CudaStream stream = cuda.device(0).createStream()) {
          try (Buffer first = above.allocate(3 << 20, stream)) {
            first.fill((byte) 1, stream);
          }
          assertBooks(above, 3 << 20);
        }
      }
    };

    /** All that the limit allows is still there. */
    private static void assertBooks(MemoryPool pool, long bytes) {
      try (Buffer all = pool.allocate(bytes)) {
        all.fill((byte) 2);
      } catch (OutOfDeviceMemoryException e) {
        assertThat(e.details().limitBytes()).isPositive();
      }
      pool.assertConsistent();
    }
  }

  /** A capture, whose graph runs once and is gone at the end, whatever else fails. */
  private record Captured(CudaDriver driver, CudaStream stream) implements AutoCloseable {
    Captured {
      driver.captures().streamBeginCapture(0, stream.handle(), 2);
    }

    @Override
    public void close() {
      SWEPT.get().withoutFaults(this::runOnce);
    }

    private void runOnce() {
      long graph = driver.captures().streamEndCapture(0, stream.handle());
      try {
        long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
        driver.graphs().graphLaunch(0, executable, stream.handle());
        driver.graphs().graphExecDestroy(executable);
        stream.synchronize();
      } finally {
        driver.graphs().graphDestroy(graph);
      }
    }
  }

  private static void get(CompletableFuture<?> future) throws Exception {
    try {
      future.get(40, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof RuntimeException failure ? failure : e;
    }
  }

  @ParameterizedTest
  @EnumSource
  @Timeout(150)
  void use_leavesNothingBehind_endsInTime_andFailsWithATypedError(Use use) throws Exception {
    UnderFaultsTest.sweep()
        // The library's own question; whoever waits for that work gets the error.
        .recoveringFrom(LAUNCH_FAILED, "eventQuery")
        .recoveringFrom("memFree") // after the capture, and again if it fails
        // For want of memory it is tried again, as the allocation is for which it is needed.
        .recoveringWithin("OutsideCapture.allocate", "streamCreateWithPriority")
        // A closed pool is looked at again, at the latest by Cuda.close(), which says what failed.
        .recoveringWithin(
            "DriverPools.pollNow", "eventDestroy", "memPoolGetAccess", "memPoolDestroy")
        // A capture that cannot tell when its graph is gone gets no memory.
        .allowing(IllegalStateException.class)
        .run(driver -> {
          SWEPT.set((SweptDriver) driver);
          FaultSweeps.usingTidily(use).run(driver);
        })
        .orThrow();
  }
}
