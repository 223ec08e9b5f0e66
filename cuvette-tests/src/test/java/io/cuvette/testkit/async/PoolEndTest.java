package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PoolAttributes;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

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
    freeAtOnce(driver);
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

  /** As a quick device. */
  private static void freeAtOnce(ScriptedDriver driver) {
    driver.answer(
        "memFreeAsync",
        call -> {
          Object result = call.proceed();
          call.below().devices().ctxSynchronize(0);
          return result;
        });
  }

  @CudaTest(simulatedOnly = true)
  void lastNumbersOfAClosedPool_countNothingIdle(Cuda cuda, ScriptedDriver driver) {
    freeAtOnce(driver);
    DeviceMemoryResource resource = newResource(cuda);
    PoolAttributes attributes = resource.attributes();
    resource.allocate(7000).close();
    resource.close();
    assertThat(attributes.usedMemCurrent()).isZero();
  }

  /** The stream of a thread cannot be asked by others, but the null stream takes turns with it. */
  @CudaTest(simulatedOnly = true)
  void poolThatAThreadUsedOnAStreamOfItsOwn_ends_whenTheThreadIsOver(
      Cuda cuda, ScriptedDriver driver) throws InterruptedException {
    DeviceMemoryResource resource = newResource(cuda);
    AtomicBoolean freed = new AtomicBoolean();
    Thread user =
        Thread.ofPlatform()
            .start(() -> {
              CudaStream own = cuda.device(0).perThreadStream();
              try (Buffer buffer = resource.allocate(7000, own)) {
                buffer.fill((byte) 1, own);
              }
              freed.set(true);
            });
    assertThat(user.join(Duration.ofSeconds(60)) && freed.get()).isTrue();
    driver.note("memPoolDestroy");
    resource.close();
    cuda.device(0).synchronize();
    assertThat(driver.notes()).containsExactly("memPoolDestroy");
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

  /** The next pool that is made looks for it, whether anybody has waited or not. */
  @CudaTest(simulatedOnly = true)
  void closedPoolWhoseMemoryWasUsedElsewhere_isGoneOnceAnotherIsMade(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream other) {
    DeviceMemoryResource resource = newResource(cuda);
    try (Gate _ = Gate.on(other)) {
      closeAfterItsStream(cuda, resource, other);
      resource.close();
    }
    cuda.driver().devices().ctxSynchronize(0); // the library does not see it
    assertThat(driver.count("memPoolDestroy")).isZero();
    freeAtOnce(driver);
    newResource(cuda).close();
    assertThat(driver.count("memPoolDestroy")).isEqualTo(2);
  }

  /** It may have done so before it failed, and its handle may be another pool's. */
  @CudaTest(devices = 2, simulatedOnly = true, tidy = false)
  void poolThatTheDriverMayHaveDestroyed_isNotAskedAbout(Cuda cuda, ScriptedDriver driver) {
    driver.answer(
        "memPoolDestroy",
        call -> {
          call.proceed();
          throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, call.name(), "of earlier work");
        });
    DeviceMemoryResource resource = newResource(cuda);
    assertThatThrownBy(resource::close).isInstanceOf(CudaException.class);
    driver.note("memPoolGetAccess", "memPoolSetAccess", "memPoolDestroy");
    cuda.close();
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void errorAtTheEnd_leavesNoPool(Subject subject, Cuda cuda, ScriptedDriver driver) {
    Buffer _ = newResource(cuda).allocate(4096);
    AtomicInteger calls = new AtomicInteger();
    driver.answer(
        "memPoolDestroy",
        call -> {
          if (calls.incrementAndGet() == 1) {
            throw new OutOfMemoryError("the test's");
          }
          return call.proceed();
        });
    assertThatThrownBy(cuda::close).isInstanceOf(OutOfMemoryError.class);
    checkNoPool(subject);
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void memoryThatCannotBeFreedAtTheEnd_isReported(Cuda cuda, ScriptedDriver driver) {
    Buffer buffer = newResource(cuda).allocate(4096);
    long address = buffer.address();
    driver.fail("memFreeAsync", CudaStatus.NOT_PERMITTED, 1);
    driver.note("memFree", call -> call.number("address") == address ? "freed" : null);
    assertThatThrownBy(cuda::close).hasMessageContaining("scripted by the test");
    assertThat(driver.notes()).as("in no order, at last").containsExactly("freed");
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

  @CudaTest
  void poolsThatCannotBeDestroyed_areAskedAboutOnceEachTime(Cuda cuda, ScriptedDriver driver) {
    driver.fail("memPoolDestroy", CudaStatus.UNKNOWN, 2).note("memPoolDestroy");
    assertThatThrownBy(() -> newResource(cuda).close()).isInstanceOf(CudaException.class);
    DeviceMemoryResource next = newResource(cuda);
    assertThat(driver.notes()).as("asked once about the one before").hasSize(2);
    next.close();
    newResource(cuda).close();
    assertThat(driver.notes()).as("all three").hasSize(5);
  }

  @CudaTest
  void closedPool_livesAsLongAsItsMemory_andPoolsAfterItWork(Cuda cuda) {
    for (int round = 0; round < 20; round++) {
      DeviceMemoryResource resource = newResource(cuda);
      try (CudaStream stream = cuda.device(0).createStream()) {
        DeviceBuffer inUse = resource.allocate(MIB, stream);
        resource.close();
        assertThat(resource.isHandleOwned()).isFalse();
        inUse.fill((byte) 7, stream);
        inUse.close();
      }
      try (AsyncMemoryPool byDefault = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault())) {
        byDefault.allocate(UNIT).close();
      }
      cuda.device(0).synchronize();
    }
  }

  /** Takes no access from device 1, and notes what is asked for at the end of pools. */
  private static void keepAccess(ScriptedDriver driver, CudaStatus refusal) {
    driver.note("memPoolDestroy").note("memPoolSetAccess", PoolEndTest::taken);
    driver.answer(
        "memPoolSetAccess",
        call -> {
          String taken = taken(call);
          if (taken != null && taken.startsWith("take from [1")) {
            throw new CudaException(refusal, call.name(), "device 1 keeps it");
          }
          return call.proceed();
        });
  }

  private static @Nullable String taken(DriverCall call) {
    return call.argument("access", int[].class)[0] == 0
        ? "take from " + Arrays.toString(call.argument("locationIds", int[].class))
        : null;
  }

  private static DeviceMemoryResource withPeers(Cuda cuda) {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    resource.peerAccessibleBy().addAll(List.of(cuda.device(1), cuda.device(2)));
    return resource;
  }

  @CudaTest(devices = 3, simulatedOnly = true)
  void ownerThatCannotLoseItsAccess_isPassedOver(Cuda cuda, ScriptedDriver driver) {
    keepAccess(driver, CudaStatus.INVALID_VALUE);
    withPeers(cuda).close();
    assertThat(driver.notes())
        .containsExactly("take from [1, 2]", "take from [1]", "take from [2]", "memPoolDestroy");
  }

  @CudaTest(devices = 3, simulatedOnly = true, tidy = false)
  void otherFailures_keepThePoolUntilItsCudaEnds(Cuda cuda, ScriptedDriver driver) {
    keepAccess(driver, CudaStatus.NOT_PERMITTED);
    DeviceMemoryResource resource = withPeers(cuda);
    assertThatThrownBy(resource::close).hasMessageContaining("keeps it");
    assertThat(driver.notes()).doesNotContain("memPoolDestroy");
    assertThatThrownBy(cuda::close).hasMessageContaining("keeps it");
    assertThat(driver.notes()).containsOnlyOnce("memPoolDestroy");
  }
}
