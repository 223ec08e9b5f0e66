package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.GrowableOptions;
import io.cuvette.LaunchConfig;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.TestKernels;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;

/** What belongs to one Cuda is refused by another, whose driver would take it for its own. */
class TwoCudasTest {
  private final Cuda another = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"));

  @AfterEach
  void close() {
    another.close();
  }

  @CudaTest(simulatedOnly = true)
  void timeBetweenEventsOfTwo_isRefused(Cuda cuda, CudaStream stream) {
    try (CudaEvent start = stream.record();
        CudaEvent end = another.device(0).nullStream().record()) {
      stream.synchronize();
      another.device(0).synchronize();
      assertThatIllegalArgumentException()
          .isThrownBy(() -> CudaEvent.elapsedMillis(start, end))
          .withMessageStartingWith("end: ")
          .withMessageEndingWith(" belongs to another Cuda than start");
      assertThat(CudaEvent.elapsedMillis(start, start)).isZero();
    }
  }

  @CudaTest(simulatedOnly = true)
  void questionsAboutAKernel_areForDevicesOfItsCuda(Cuda cuda) {
    CudaDevice far = another.device(0);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> kernel.maxActiveBlocks(far, 32, 0))
          .withMessage("device 0 belongs to another Cuda");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> kernel.maxResidentBlocks(far, LaunchConfig.of(1, 32)))
          .withMessage("device 0 belongs to another Cuda");
    }
  }

  @CudaTest(simulatedOnly = true)
  void streamOfAnother_isRefusedByPools(Cuda cuda) {
    CudaStream far = another.device(0).nullStream();
    try (MemoryPool pool = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        AsyncMemoryPool async = new AsyncMemoryPool(cuda)) {
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> pool.allocate(64, far),
              () -> elastic.allocate(64, far),
              () -> async.allocate(64, far),
              () -> async.freeAllBlocks(far))) {
        assertThatIllegalArgumentException().isThrownBy(call).withMessageContaining("another Cuda");
      }
    }
  }

  /** Whosever the stream is. */
  @CudaTest(simulatedOnly = true)
  void closedCuda_isWhatIsRefused(CudaStream far) {
    Buffer buffer = another.allocate(64);
    Buffer target = another.allocate(64);
    ManagedBuffer managed = another.allocateManaged(64);
    MemoryPool pool = new MemoryPool(another);
    AsyncMemoryPool async = new AsyncMemoryPool(another);
    CudaKernel kernel = TestKernels.launches(another).kernel("doNothing");
    LaunchConfig config = LaunchConfig.of(1, 32);
    another.close();
    List<ThrowingCallable> calls =
        List.of(
            () -> another.allocate(64, far),
            () -> pool.allocate(64, far),
            () -> async.allocate(64, far),
            () -> async.freeAllBlocks(far),
            () -> buffer.recordUse(far),
            () -> buffer.fill((byte) 1, far),
            () -> buffer.copyFrom(target, far),
            () -> managed.prefetch(MemoryLocation.host(), far));
    for (ThrowingCallable call : calls) {
      assertThatIllegalStateException().isThrownBy(call).withMessageContaining("closed");
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> far.launch(kernel, config))
        .withMessageContaining("another Cuda");
  }

  @CudaTest(simulatedOnly = true)
  void peersOfPages_areOfTheSameCuda(Cuda cuda) {
    CudaDevice far = another.device(0);
    GrowableOptions growable = GrowableOptions.ofMaxBytes(1 << 20).withPeers(List.of(far));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> cuda.device(0).growable(growable))
        .withMessage("peers: device 0 of another Cuda");
    ElasticPoolOptions elastic = ElasticPoolOptions.DEFAULTS.withPeers(far);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new ElasticMemoryPool(cuda, elastic))
        .withMessage("peers: device 0 of another Cuda");
  }

  @CudaTest(simulatedOnly = true)
  void eventsOfOthers_haveAHandle(CudaStream stream) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> stream.waitFor(0))
        .withMessage("event: 0 (expected: the handle of an event)");
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void peerOfAnotherCuda_isRefused(Cuda cuda) {
    try (Cuda far = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim:devices=2"))) {
      CudaDevice one = cuda.device(0);
      CudaDevice two = far.device(1);
      List<ThrowingCallable> calls =
          List.of(
              () -> one.canAccess(two),
              () -> one.enablePeerAccess(two),
              () -> one.disablePeerAccess(two));
      for (ThrowingCallable call : calls) {
        assertThatIllegalArgumentException()
            .isThrownBy(call)
            .withMessage("peer: device 1 belongs to another Cuda");
      }
    }
  }
}
