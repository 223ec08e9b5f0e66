package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
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
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.AtOnce;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Memory of the driver's pools between the end of one buffer and the next, and the pools' end. */
class IdleMemoryTest {

  private static DeviceMemoryResource newResource(Cuda cuda) {
    return new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
  }

  /** Nothing is ordered behind its work afterwards. */
  @CudaTest
  void idleMemoryOfAStreamThatIsClosed_isFreedInItsOrder(
      Cuda cuda, ScriptedDriver driver, AsyncMemoryPool pool) {
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    long handle = stream.handle();
    pool.allocate(4096, stream).close();
    driver.note("memFreeAsync", call -> "free in 0x%x".formatted(call.number("stream")));
    driver.note("streamDestroy");
    stream.close();
    assertThat(driver.takeNotes())
        .containsExactly("free in 0x%x".formatted(handle), "streamDestroy");
  }

  /** While somebody is short nothing is, and after that it is again. */
  @CudaTest
  void memoryIsKeptIdle_afterAShortage(
      ScriptedDriver driver, AsyncMemoryPool pool, CudaStream stream) {
    pool.setLimit(MemoryLimit.ofBytes(1024));
    try (Buffer _ = pool.allocate(1024, stream)) {
      assertThatThrownBy(() -> pool.allocate(512, stream))
          .isInstanceOf(OutOfDeviceMemoryException.class);
    }
    pool.allocate(512, stream).close();
    long asked = driver.count("memAllocFromPoolAsync");
    pool.allocate(512, stream).close();
    assertThat(driver.count("memAllocFromPoolAsync")).isEqualTo(asked);
  }

  /** The memory is the same, and the buffer as long as it is asked for. */
  @CudaTest
  void memoryThatIsReused_isOfTheSizeAskedForNow(AsyncMemoryPool pool, CudaStream stream) {
    long address = 0;
    for (long bytes : new long[] {1000, 1024, 513, 1001}) {
      try (DeviceBuffer buffer = pool.allocate(bytes, stream)) {
        assertThat(buffer.byteSize()).isEqualTo(bytes);
        assertThat(address == 0 || address == buffer.address()).isTrue();
        address = buffer.address();
      }
    }
  }

  @CudaTest
  void memoryOfAClosedBuffer_isReusedOnItsStream(DeviceMemoryResource resource, CudaStream stream) {
    DeviceBuffer first = resource.allocate(MIB, stream);
    first.close();
    try (DeviceBuffer second = resource.allocate(MIB, stream)) {
      assertThat(second.address()).isEqualTo(first.address());
      assertThat(first.isClosed()).isTrue();
      assertThat(resource.attributes().usedMemCurrent()).isEqualTo(MIB);
      assertThat(resource.attributes().usedMemHigh()).isEqualTo(MIB);
    }
  }

  /** Its stream took no free then, and whoever waits for a device is to release what it can. */
  @CudaTest(simulatedOnly = true)
  void memoryThatWasClosedInACapture_isFreedBeforeTheDeviceIsAwaited(
      Cuda cuda, ScriptedDriver driver, CudaStream stream) {
    Buffer buffer = MemoryResource.async().allocate(MIB, stream);
    driver.note("memFreeAsync", "memFree"); // the second is a way to wait
    stream.capture(buffer::close).close();
    cuda.device(0).synchronize(); // work before the capture may use it
    cuda.device(0).synchronize();
    assertThat(driver.takeNotes()).containsOnlyOnce("memFreeAsync").endsWith("memFree");
  }

  @CudaTest
  void otherStreamsAndSizes_doNotGetIt(
      DeviceMemoryResource resource, CudaStream stream, CudaStream other) {
    DeviceBuffer first = resource.allocate(MIB, stream);
    first.fill((byte) 1, stream);
    first.close();
    try (DeviceBuffer elsewhere = resource.allocate(MIB, other);
        DeviceBuffer larger = resource.allocate(2 * MIB, stream);
        DeviceBuffer same = resource.allocate(MIB, stream)) {
      assertThat(elsewhere.address()).isNotEqualTo(first.address());
      assertThat(larger.address()).isNotEqualTo(first.address());
      assertThat(same.address()).isEqualTo(first.address());
    }
  }

  @CudaTest
  void afterSynchronising_theDriverHasItBack(
      Cuda cuda, DeviceMemoryResource resource, CudaStream stream) {
    CudaDriver driver = cuda.driver();
    for (int i = 0; i < 50; i++) {
      resource.allocate(MIB + i, stream).close();
    }
    stream.synchronize();
    assertThat(driver.pools().memPoolGetAttribute(resource.handle(), 7)).isZero();
    resource.allocate(MIB, stream).close();
    cuda.device(0).synchronize();
    assertThat(driver.pools().memPoolGetAttribute(resource.handle(), 7)).isZero();
    resource.allocate(MIB, stream).close();
    resource.trimTo(0);
    stream.synchronize();
    assertThat(driver.pools().memPoolGetAttribute(resource.handle(), 7)).isZero();
  }

  @CudaTest
  void afterAQuestion_theDriverHasItBack(
      Cuda cuda, DeviceMemoryResource resource, CudaStream stream) {
    CudaDriver driver = cuda.driver();
    resource.allocate(MIB, stream).close();
    assertThat(resource.attributes().reservedMemCurrent()).isPositive();
    driver.streams().streamSynchronize(0, stream.handle()); // the library does not see it
    assertThat(driver.pools().memPoolGetAttribute(resource.handle(), 7)).isZero();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void waitsAndShortagesOfAnotherDevice_leaveIt(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource resource, CudaStream stream) {
    resource.allocate(MIB, stream).close();
    cuda.device(1).synchronize();
    assertThat(driver.count("memFreeAsync")).isZero();
    driver.fail("memAlloc", CudaStatus.OUT_OF_MEMORY);
    assertThatThrownBy(() -> cuda.defaultMemoryPool().allocate(64, cuda.device(1).nullStream()))
        .isInstanceOf(OutOfDeviceMemoryException.class);
    assertThat(driver.count("memFreeAsync")).isZero();
    cuda.device(0).synchronize();
    assertThat(driver.count("memFreeAsync")).isOne();
  }

  @CudaTest
  void streamThatCloses_leavesNothingIdle(Cuda cuda, DeviceMemoryResource resource) {
    CudaDriver driver = cuda.driver();
    for (int i = 0; i < 100; i++) {
      try (CudaStream stream = cuda.device(0).createStream()) {
        DeviceBuffer buffer = resource.allocate(MIB, stream);
        buffer.fill((byte) 1, stream);
        buffer.close();
      }
    }
    cuda.device(0).synchronize();
    assertThat(driver.pools().memPoolGetAttribute(resource.handle(), 7)).isZero();
  }

  @CudaTest(simulatedOnly = true)
  void bufferClosedAfterItsStream_isNotKept(Cuda cuda, DeviceMemoryResource resource) {
    CudaDriver driver = cuda.driver();
    CudaStream stream = cuda.device(0).createStream();
    DeviceBuffer buffer = resource.allocate(MIB, stream);
    stream.close();
    driver.devices().ctxSynchronize(0);
    buffer.close();
    driver.devices().ctxSynchronize(0); // the library does not see it
    assertThat(driver.pools().memPoolGetAttribute(resource.handle(), 7)).isZero();
  }

  /** That ends with its thread, which asks nobody. */
  @CudaTest(simulatedOnly = true, tidy = false)
  void memoryOfAThreadsOwnStream_isNotKept(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource resource) {
    Buffer buffer = resource.allocate(4096, cuda.device(0).perThreadStream());
    driver.note("memFreeAsync");
    buffer.close();
    assertThat(driver.notes()).containsExactly("memFreeAsync");
  }

  @CudaTest
  void idleMemory_isNotInTheWayOfALimit(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    PoolProperties most = new PoolProperties(1, 0, 1, 0, 64 * MIB);
    long handle = driver.pools().memPoolCreate(most);
    try (AsyncMemoryPool pool =
            new AsyncMemoryPool(cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(handle)));
        CudaStream stream = cuda.device(0).createStream();
        CudaStream other = cuda.device(0).createStream()) {
      pool.allocate(20 * MIB, stream).close();
      pool.allocate(20 * MIB, other).close();
      try (Buffer large = pool.allocate(60 * MIB, stream)) {
        assertThat(large.byteSize()).isEqualTo(60 * MIB);
      }
    } finally {
      cuda.device(0).synchronize();
      driver.pools().memPoolDestroy(handle);
    }
  }

  @CudaTest
  void threadsThatCloseAndAllocate_neverShareABlock(AsyncMemoryPool pool, CudaStream stream)
      throws InterruptedException {
    Set<Long> live = ConcurrentHashMap.newKeySet();
    new AtOnce()
        .run(
            8,
            _ -> {
              for (int i = 0; i < 300; i++) {
                DeviceBuffer buffer = pool.allocate(4096, stream);
                assertThat(live.add(buffer.address())).isTrue();
                live.remove(buffer.address());
                buffer.close();
                if (i % 50 == 0) {
                  stream.synchronize();
                }
              }
            });
    assertThat(pool.liveBytes()).isZero();
    stream.synchronize();
    assertThat(pool.usedBytes()).isZero();
  }

  /** It would be missing although nobody uses it. */
  @CudaTest(simulatedOnly = true)
  void memoryClosedWhileAnAllocationIsShort_isNotKept(
      Cuda cuda, DeviceMemoryResource resource, ScriptedDriver driver) {
    Buffer closing = resource.allocate(MIB);
    AtomicInteger calls = new AtomicInteger();
    AtomicLong frees = new AtomicLong();
    driver.answer(
        "memAllocFromPoolAsync",
        call ->
            switch (calls.incrementAndGet()) {
              case 1 -> throw new CudaException(CudaStatus.OUT_OF_MEMORY, call.name(), "scripted");
              case 2 -> {
                closing.close();
                frees.set(driver.count("memFreeAsync"));
                yield call.proceed();
              }
              default -> call.proceed();
            });
    try (DeviceMemoryResource other = newResource(cuda)) {
      other.allocate(MIB).close();
    }
    assertThat(frees).hasValue(1);
  }

  @CudaTest(memory = "64MiB", simulatedOnly = true)
  void allocationThatIsShort_waitsForWhatAnotherThreadGivesBack(
      Cuda cuda, DeviceMemoryResource resource, CudaStream stream, ScriptedDriver driver)
      throws Exception {
    resource.allocate(40 * MIB, stream).close();
    FutureTask<Long> allocated =
        new FutureTask<>(() -> {
          try (DeviceMemoryResource other = newResource(cuda);
              Buffer buffer = other.allocate(40 * MIB, stream)) {
            return buffer.byteSize();
          }
        });
    try (Hold hold = driver.hold("memFreeAsync")) {
      Thread givingBack = Thread.ofPlatform().start(() -> resource.trimTo(0));
      hold.awaitBegun();
      Thread allocating = Thread.ofPlatform().start(allocated);
      while (allocating.isAlive() && allocating.getState() != Thread.State.TIMED_WAITING) {
        Thread.onSpinWait();
      }
      hold.release();
      givingBack.join();
    }
    assertThat(allocated.get()).isEqualTo(40 * MIB);
  }

  /** What is larger than all that is kept goes to the driver at once. */
  @CudaTest
  void memoryOfAtMost64MiB_isKept(
      DeviceMemoryResource resource, CudaStream stream, ScriptedDriver driver) {
    for (int i = 0; i < 3; i++) {
      resource.allocate(64 * MIB, stream).close();
    }
    assertThat(driver.count("memAllocFromPoolAsync")).isOne();
    for (int i = 0; i < 3; i++) {
      resource.allocate(64 * MIB + 1, stream).close();
    }
    assertThat(driver.count("memAllocFromPoolAsync")).isEqualTo(4);
  }
}
