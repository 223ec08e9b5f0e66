package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryResource;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import java.util.List;
import java.util.function.Function;

/** The end of pools of the driver: nothing is freed twice, nothing is left. */
class PoolEndTest {
  private static final List<Function<Cuda, MemoryResource>> KINDS =
      List.of(
          AsyncMemoryPool::new,
          cuda -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)),
          cuda -> new DeviceMemoryResource(cuda.device(0)),
          PoolEndTest::newResource);

  private static DeviceMemoryResource newResource(Cuda cuda) {
    return new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
  }

  @CudaTest(simulatedOnly = true)
  void lastBufferOfAClosedPool_endsIt(Cuda cuda, ScriptedDriver driver) {
    driver.answer(
        "memFreeAsync",
        call -> {
          Object result = call.proceed();
          call.below().ctxSynchronize(0); // a quick device
          return result;
        });
    DeviceMemoryResource resource = newResource(cuda);
    Buffer last = resource.allocate(7000);
    cuda.currentStream().synchronize();
    resource.close();
    driver.note("memFreeAsync", "streamSynchronize", "memPoolDestroy");
    last.close();
    assertThat(driver.notes())
        .as("waits for the free: a driver that was only asked does not notice it")
        .containsExactly("memFreeAsync", "streamSynchronize", "memPoolDestroy");
  }

  @CudaTest(tidy = false)
  void cudaThatCloses_freesIdleMemoryOnce(Subject subject) {
    for (Function<Cuda, MemoryResource> kind : KINDS) {
      Cuda cuda = subject.open(options -> options);
      MemoryResource resource = kind.apply(cuda);
      for (CudaStream stream : List.of(cuda.currentStream(), cuda.device(0).createStream())) {
        Buffer inUse = resource.allocate(5000, stream);
        resource.allocate(7000, stream).close();
        resource.allocate(9000, stream).close();
        inUse.fill((byte) 1, stream);
      }
      cuda.close();
      checkNothingIsLeft(subject, cuda);
    }
  }

  @CudaTest(tidy = false, seeds = 10)
  void cudaThatCloses_freesMemoryThatWaitsOnce(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaStream other = cuda.device(0).createStream();
    DeviceMemoryResource resource = newResource(cuda);
    for (int i = 0; i < 5; i++) {
      closeAfterItsStream(cuda, resource, other);
    }
    resource.close();
    cuda.close();
    checkNothingIsLeft(subject, cuda);
  }

  @CudaTest(tidy = false)
  void poolClosedDuringAnAllocation_leavesNothing(Subject subject) {
    for (Function<Cuda, DeviceMemoryResource> kind :
        List.<Function<Cuda, DeviceMemoryResource>>of(
            cuda -> new DeviceMemoryResource(cuda.device(0)), PoolEndTest::newResource)) {
      ScriptedDriver driver = new ScriptedDriver();
      Cuda cuda = subject.open(options -> options.withDecorator(driver::over));
      DeviceMemoryResource resource = kind.apply(cuda);
      driver.answer(
          "memAllocFromPoolAsync",
          call -> {
            resource.close();
            return call.proceed();
          });
      Buffer buffer = resource.allocate(4096);
      buffer.fill((byte) 1);
      assertThat(resource.isClosed()).isTrue();
      cuda.close();
      assertThat(buffer.isClosed()).isTrue();
      checkNothingIsLeft(subject, cuda);
    }
  }

  @CudaTest(tidy = false)
  void closedPool_isGoneOnceItsQueuedFreeIsDone(Subject subject, Cuda cuda, CudaStream stream) {
    try (DeviceMemoryResource resource = newResource(cuda);
        Buffer buffer = resource.allocate(4096, stream)) {
      buffer.fill((byte) 1, stream);
    }
    stream.synchronize();
    checkNoPool(subject);
  }

  @CudaTest(tidy = false)
  void closedPool_isGoneOnceItsMemoryIsNotUsedElsewhere(
      Subject subject, Cuda cuda, CudaStream other) {
    try (DeviceMemoryResource resource = newResource(cuda)) {
      closeAfterItsStream(cuda, resource, other);
    }
    cuda.device(0).synchronize(); // the other's work is done
    cuda.device(0).synchronize(); // the free that waited for it is done
    checkNoPool(subject);
  }

  @CudaTest(tidy = false)
  void closedMemoryThatWaited_isNotUsedAnyMore(
      Cuda cuda, CudaStream other, DeviceMemoryResource resource) {
    closeAfterItsStream(cuda, resource, other);
    cuda.device(0).synchronize();
    cuda.device(0).synchronize();
    assertThat(resource.attributes().usedMemCurrent()).isZero();
  }

  @CudaTest(memory = "64MiB", simulatedOnly = true)
  void memoryThatAPoolKeepsUnused_isThereForOthers(Cuda cuda, DeviceMemoryResource keeping) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      keeping.allocate(20 * MIB).close();
      cuda.device(0).synchronize();
      assertThat(keeping.attributes().reservedMemCurrent()).isEqualTo(20 * MIB);
      try (Buffer large = pool.allocate(60 * MIB)) {
        assertThat(large.byteSize()).isEqualTo(60 * MIB);
      }
      pool.freeAllBlocks();
      keeping.allocate(20 * MIB).close();
      cuda.device(0).synchronize();
      try (Buffer large = cuda.allocate(60 * MIB)) {
        assertThat(large.byteSize()).isEqualTo(60 * MIB);
      }
    }
  }

  private static void closeAfterItsStream(
      Cuda cuda, DeviceMemoryResource resource, CudaStream other) {
    CudaStream home = cuda.device(0).createStream();
    Buffer buffer = resource.allocate(4096, home);
    other.waitFor(home);
    buffer.fill((byte) 1, other);
    home.close();
    buffer.close();
  }

  private static void checkNoPool(Subject subject) {
    if (subject.isSimulated()) {
      assertThat(subject.simulator().livePools()).isZero();
    }
  }

  private static void checkNothingIsLeft(Subject subject, Cuda cuda) {
    if (subject.isSimulated()) {
      assertThat(subject.simulator(cuda).report()).isEmpty();
    }
  }
}
