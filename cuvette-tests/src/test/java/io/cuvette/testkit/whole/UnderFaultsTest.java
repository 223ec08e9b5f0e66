package io.cuvette.testkit.whole;

import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.driver.CudaStatus.NOT_SUPPORTED;
import static io.cuvette.driver.CudaStatus.OUT_OF_MEMORY;
import static io.cuvette.driver.CudaStatus.TOO_MANY_PEERS;
import static io.cuvette.testkit.support.Sizes.PAGE;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.HostRows;
import io.cuvette.LibraryHandle;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.Registration;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.MathLibrary;
import io.cuvette.testkit.FaultSweep;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.FaultSweeps.CudaUse;
import io.cuvette.testkit.SweepReport;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every use of the library with each of its driver calls failing, once and from then on. */
@Tag("simulated")
class UnderFaultsTest {
  /** A little more than two chunks; made once, not for each of some thousand runs. */
  private static final byte[] CHUNKS = Bytes.random(1, 4_300_000);

  /** The uses, each the smallest program that does the thing. */
  enum Use implements CudaUse {
    POOLED_MEMORY {
      @Override
      public void run(Cuda cuda) {
        try (Buffer one = cuda.allocate(UNEVEN);
            Buffer two = cuda.allocate(3000)) {
          one.fill((byte) 1);
          two.copyFrom(one);
        }
        cuda.allocate(500).close();
        cuda.defaultMemoryPool().freeAllBlocks();
      }
    },
    HEAP_TRANSFERS {
      @Override
      public void run(Cuda cuda) {
        byte[] pattern = Bytes.random(1, 10_000);
        try (Buffer buffer = cuda.allocate(pattern.length)) {
          Bytes.put(buffer, pattern);
          assertThat(Bytes.of(buffer)).isEqualTo(pattern);
        }
      }
    },
    TRANSFERS_IN_CHUNKS {
      @Override
      public void run(Cuda cuda) {
        byte[] pattern = CHUNKS;
        try (Buffer buffer = cuda.allocate(pattern.length)) {
          buffer.copyFrom(MemorySegment.ofArray(pattern));
          byte[][] back = new byte[2][2_150_000];
          buffer.scatterTo(HostRows.of(back));
          assertThat(back[0]).isEqualTo(Arrays.copyOf(pattern, 2_150_000));
          assertThat(back[1]).isEqualTo(Arrays.copyOfRange(pattern, 2_150_000, pattern.length));
        }
      }
    },
    BOXES_ROWS_AND_BATCHES {
      @Override
      public void run(Cuda cuda) throws Exception {
        CopyBox apart = CopyBox.of(1000, 3).withTarget(0, 1500);
        MemorySegment pageable = Arena.ofAuto().allocate(3000);
        try (CudaStream stream = cuda.device(0).createStream();
            PinnedBuffer pinned = cuda.allocatePinned(3000);
            Buffer wide = cuda.allocate(4500, stream);
            Buffer packed = cuda.allocate(3000, stream)) {
          pinned.segment().fill((byte) 3);
          List<MemorySegment> rows =
              List.of(pinned.segment().asSlice(0, 999), pinned.segment().asSlice(999));
          finish(wide.copyFromAsync(pinned.segment(), apart, stream));
          finish(packed.copyFromAsync(wide, CopyBox.of(1000, 3).withSource(0, 1500), stream));
          finish(packed.copyToAsync(pageable, CopyBox.of(1500, 2), stream));
          assertThat(pageable.get(ValueLayout.JAVA_BYTE, 2999)).isEqualTo((byte) 3);
          finish(packed.gatherFromAsync(rows, stream));
          finish(packed.scatterToAsync(List.of(pageable), stream));
          List<Buffer> parts = List.of(packed.slice(0, 70), packed.slice(70, 700));
          finish(CopyBatch.of(List.of(wide, wide.slice(2000)), parts).copyAsync(stream));
          packed.copyFrom(MemorySegment.ofArray(CHUNKS), CopyBox.of(500, 2).withTarget(0, 1000));
        }
      }
    },
    PINNED_ON_A_STREAM {
      @Override
      public void run(Cuda cuda) {
        try (CudaStream stream = cuda.device(0).createStream();
            PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
            Buffer target = cuda.allocate(4096, stream)) {
          try (PinnedBuffer source = pool.allocate(4096)) {
            source.segment().fill((byte) 3);
            target.copyFrom(source, stream);
          }
          pool.allocate(4096).close();
          stream.synchronize();
        }
      }
    },
    MANAGED_MEMORY {
      @Override
      public void run(Cuda cuda) {
        try (MemoryPool pool =
                new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed()));
            ManagedBuffer buffer = (ManagedBuffer) pool.allocate(8192)) {
          buffer.segment().fill((byte) 1);
          buffer.advise(MemoryAdvice.SET_READ_MOSTLY, MemoryLocation.host());
          buffer.prefetch(MemoryLocation.device(cuda.device(0)));
          cuda.currentStream().synchronize();
        }
      }
    },
    STREAMS_AND_EVENTS {
      @Override
      public void run(Cuda cuda) {
        try (CudaStream one = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
            CudaStream two = cuda.device(0).createStream();
            Scope _ = one.use();
            Buffer buffer = cuda.allocate(1024);
            CudaEvent start = one.record()) {
          buffer.fill((byte) 1);
          two.waitFor(one);
          buffer.fill((byte) 2, two);
          try (CudaEvent end = one.record()) {
            end.synchronize();
            assertThat(CudaEvent.elapsedMillis(start, end)).isNotNegative();
          }
          two.synchronize();
        }
      }
    },
    CALLBACKS {
      @Override
      public void run(Cuda cuda) throws Exception {
        try (CudaStream stream = cuda.device(0).createStream();
            Buffer buffer = cuda.allocate(64, stream)) {
          buffer.fill((byte) 1, stream);
          try {
            stream.addCallback(() -> Bytes.of(buffer)).get(40, TimeUnit.SECONDS);
          } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException failure ? failure : e;
          }
          stream.synchronize(); // the future is done a moment before the stream goes on
        }
      }
    },
    MEMORY_ACROSS_STREAMS {
      @Override
      public void run(Cuda cuda) {
        try (CudaStream other = cuda.device(0).createStream()) {
          try (CudaStream own = cuda.device(0).createStream()) {
            try (Buffer buffer = cuda.allocate(PAGE, own)) {
              for (int i = 0; i < 8; i++) {
                buffer.fill((byte) i, other);
              }
            }
            cuda.allocate(PAGE, own).close();
          }
          cuda.allocate(PAGE, other).close();
          cuda.defaultMemoryPool().stats();
        }
      }
    },
    STREAM_ORDERED_MEMORY {
      @Override
      public void run(Cuda cuda) {
        try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
            CudaStream one = cuda.device(0).createStream();
            CudaStream two = cuda.device(0).createStream();
            Buffer current = MemoryResource.async().allocate(UNEVEN, one);
            Buffer own = pool.allocate(UNEVEN, one)) {
          two.waitFor(one);
          current.fill((byte) 1, two);
          own.copyFrom(current, two);
          try (Buffer idle = pool.allocate(2000, two)) {
            idle.fill((byte) 2, two);
          }
        }
      }
    },
    TWO_DEVICES {
      @Override
      public void run(Cuda cuda) {
        try (Buffer near = cuda.allocate(UNEVEN, cuda.device(0).nullStream());
            Buffer far = cuda.allocate(UNEVEN, cuda.device(1).nullStream())) {
          near.fill((byte) 1);
          far.copyFrom(near);
          cuda.device(0).enablePeerAccess(cuda.device(1));
          far.copyTo(near);
          cuda.device(0).disablePeerAccess(cuda.device(1));
        }
      }
    },
    SHORT_OF_MEMORY {
      @Override
      public void run(Cuda cuda) {
        MemoryLimit limit = MemoryLimit.ofBytes(8192);
        try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(limit));
            CudaStream other = cuda.device(0).createStream();
            var _ = pool.addPressureListener((device, needed) -> 0)) {
          try (Buffer used = pool.allocate(4096)) {
            used.fill((byte) 1, other);
          }
          pool.allocate(8192).close();
          try (Buffer _ = pool.allocate(4096)) {
            pool.allocate(8192).close();
          } catch (OutOfDeviceMemoryException e) {
            assertThat(e.details().limitBytes()).isEqualTo(8192);
          }
        }
      }
    },
    FOREIGN_MEMORY {
      @Override
      public void run(Cuda cuda) {
        try (Buffer direct = MemoryResource.direct().allocate(4096, cuda.currentStream());
            Buffer wrapped = cuda.wrap(direct.address(), 4096, direct)) {
          wrapped.fill((byte) 1);
        }
        try (PinnedBuffer pinned = cuda.directPinned().allocate(4096);
            Buffer wrapped = cuda.wrap(pinned.address(), 4096, pinned)) {
          wrapped.copyFrom(MemorySegment.ofArray(new byte[4096]));
        }
      }
    },
    DEVICE_QUESTIONS {
      @Override
      public void run(Cuda cuda) {
        var device = cuda.device(0);
        assertThat(device.name()).isNotBlank();
        assertThat(cuda.deviceByPciBusId(device.pciBusId())).isEqualTo(device);
        assertThat(device.uuid()).isNotNull();
        assertThat(device.computeCapability().major()).isPositive();
        assertThat(device.memoryInfo().totalBytes()).isPositive();
        assertThat(cuda.driverVersion()).isPositive();
        assertThat(cuda.runtimeVersion()).isNotNull();
        device.setLimit(1, device.limit(1));
        device.synchronize();
      }
    },
    PROFILING {
      @Override
      public void run(Cuda cuda) {
        try (Registration _ = cuda.device(0).profiler().profile()) {
          cuda.device(0).profiler().start();
        }
        cuda.device(0).profiler().stop();
      }
    },
    LIBRARY_HANDLES {
      @Override
      public void run(Cuda cuda) {
        try (CudaStream stream = cuda.device(0).createStream()) {
          for (int i = 0; i < 2; i++) {
            try (LibraryHandle handle =
                cuda.device(0).useLibrary(MathLibrary.CUBLAS, stream, 4096)) {
              assertThat(handle.handle()).isNotZero();
            }
          }
          assertThat(cuda.device(0).cusolverDnHandle()).isNotZero();
          assertThat(cuda.driver().math().mathLibraryVersion(MathLibrary.CUBLAS)).isNotBlank();
        }
        cuda.defaultMemoryPool().freeAllBlocks();
      }
    },
    EVERYTHING_LEFT_OPEN {
      @Override
      public void run(Cuda cuda) {
        CudaStream stream = cuda.device(0).createStream();
        CudaStream other = cuda.device(0).createStream();
        Buffer buffer = cuda.allocate(4096, stream);
        PinnedBuffer pinned = cuda.allocatePinned(4096);
        buffer.copyFrom(pinned, other);
        cuda.allocate(100, stream).close();
        MemoryResource.direct().allocate(100, stream);
        cuda.allocateManaged(100);
        other.record();
      }
    }
  }

  /** Waits for a copy; fails as it did. */
  private static void finish(CompletableFuture<Void> copy) throws Exception {
    try {
      copy.get(40, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof RuntimeException failure ? failure : e;
    }
  }

  /** A sweep that lets the program succeed where the library recovers. */
  static FaultSweep sweep() {
    return FaultSweeps.onSimulator("devices=2,seed=" + Long.getLong("cuvette.seed", 1))
        .recoveringFrom(OUT_OF_MEMORY, "memAllocAsync", "memAllocFromPoolAsync")
        .recoveringFrom("memPoolGetAttribute")
        .recoveringFrom(NOT_SUPPORTED, "streamWaitValue32")
        .recoveringFrom(TOO_MANY_PEERS, "ctxEnablePeerAccess")
        // Wrapped memory may belong to nobody: asked for its pool, and whether CUDA knows it.
        .recoveringFrom(INVALID_VALUE, "pointerGetAttribute")
        .allowing(INVALID_VALUE, IllegalArgumentException.class)
        .timeLimit(Duration.ofSeconds(60));
  }

  @ParameterizedTest
  @EnumSource
  @Timeout(600)
  void use_leavesNothingBehind_endsInTime_andFailsWithATypedError(Use use) throws Exception {
    sweep()
        .run(
            use == Use.EVERYTHING_LEFT_OPEN ? FaultSweeps.using(use) : FaultSweeps.usingTidily(use))
        .orThrow();
  }

  /** A sweep that finds nothing wrong with a leak would prove nothing. */
  @ParameterizedTest
  @EnumSource(names = "POOLED_MEMORY")
  void sweep_findsAProgramThatLeaks(Use use) throws Exception {
    SweepReport report =
        FaultSweeps.onSimulator("devices=2")
            .run(driver -> {
              FaultSweeps.using(use).run(driver);
              driver.memory().memAlloc(0, 512);
            });
    assertThat(report.isClean()).isFalse();
    assertThat(Stream.of(report.toString())).allMatch(text -> text.contains("LEFT_BEHIND"));
  }

  /** What is lost until the Cuda ends is lost to a program that runs for long. */
  @Test
  void sweep_findsWhatAFailingProgramLoses_withItsPlace() throws InterruptedException {
    SweepReport report =
        FaultSweeps.onSimulator("devices=1")
            .run(
                FaultSweeps.using(cuda -> {
                  long event = cuda.driver().events().eventCreate(0, 2);
                  cuda.device(0).synchronize();
                  cuda.driver().events().eventDestroy(0, event);
                }));
    assertThat(report.toString())
        .contains("left behind", "EVENT", getClass().getName() + ".lambda");
  }
}
