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
import io.cuvette.GrowableBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;
import java.util.function.Function;

/**
 * Memory that another pool of the driver gave out and got back on another stream is not lacking.
 */
class OthersMemoryTest {
  private static final long MOST = 40 * MIB;

  /** Frees most of the device on a stream that nobody waited for, then wants it on another. */
  private static void freedThenWanted(
      Cuda cuda, AsyncPoolChoice choice, Function<CudaStream, Buffer> wanted) {
    try (AsyncMemoryPool first = new AsyncMemoryPool(cuda, choice);
        CudaStream one = cuda.device(0).createStream();
        CudaStream two = cuda.device(0).createStream()) {
      DeviceBuffer buffer = first.allocate(MOST, one);
      buffer.fill((byte) 1, one);
      buffer.close();
      try (Buffer next = wanted.apply(two)) {
        assertThat(next.byteSize()).isEqualTo(MOST);
      }
      cuda.device(0).synchronize();
    }
  }

  @CudaTest(memory = "64MiB")
  void cachingPool_getsWhatThePoolsOfTheDriverKept(Cuda cuda) {
    freedThenWanted(cuda, AsyncPoolChoice.ofNew(0), two -> cuda.allocate(MOST, two));
    cuda.defaultMemoryPool().freeAllBlocks();
    freedThenWanted(cuda, AsyncPoolChoice.ofCurrent(), two -> cuda.allocate(MOST, two));
  }

  @CudaTest(memory = "64MiB")
  void poolOfTheDriver_getsWhatAnotherKept(Cuda cuda, DeviceMemoryResource resource) {
    freedThenWanted(cuda, AsyncPoolChoice.ofNew(0), two -> resource.allocate(MOST, two));
  }

  @CudaTest(memory = "64MiB")
  void bufferThatGrows_getsWhatThePoolsOfTheDriverKept(Cuda cuda) {
    for (AsyncPoolChoice choice : List.of(AsyncPoolChoice.ofNew(0), AsyncPoolChoice.ofCurrent())) {
      freedThenWanted(
          cuda,
          choice,
          two -> {
            GrowableBuffer growable = two.device().growable(MOST);
            growable.grow(MOST);
            return growable;
          });
    }
  }

  @CudaTest(memory = "64MiB")
  void currentPool_getsBackWhatIsIdle_alsoForThoseWhoAskTheDriver(Cuda cuda) {
    MemoryResource async = MemoryResource.async();
    freedThenWanted(cuda, AsyncPoolChoice.ofCurrent(), two -> async.allocate(MOST, two));
    freedThenWanted(cuda, AsyncPoolChoice.ofNew(0), two -> async.allocate(MOST, two));
  }

  /** Nobody else may ask for it again. */
  @CudaTest(simulatedOnly = true)
  void memoryThatWaitedForAnotherStream_isGivenBackByTheNextAllocation(
      Cuda cuda, ScriptedDriver driver, CudaStream other) {
    MemoryResource async = MemoryResource.async();
    CudaStream home = cuda.device(0).createStream();
    Buffer buffer = async.allocate(MIB, home);
    long address = buffer.address();
    for (String free : List.of("memFree", "memFreeAsync")) {
      driver.note(free, call -> call.number("address") == address ? "freed" : null);
    }
    try (Gate _ = Gate.on(other)) {
      buffer.recordUse(other);
      home.close();
      buffer.close();
      async.allocate(MIB, other).close();
      assertThat(driver.notes()).isEmpty();
    }
    cuda.driver().devices().ctxSynchronize(0);
    async.allocate(MIB, other).close();
    assertThat(driver.notes()).containsExactly("freed");
  }

  /** Nobody lists such a pool any more, and its memory is not free before it is destroyed. */
  @CudaTest(memory = "64MiB")
  void closedPool_givesItsMemoryToThoseWhoNeedIt(Cuda cuda, CudaStream one, CudaStream two) {
    AsyncMemoryPool closed = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    DeviceBuffer buffer = closed.allocate(MOST, one);
    buffer.fill((byte) 1, one);
    buffer.close();
    closed.close();
    cuda.allocate(MOST, two).close();
    cuda.device(0).synchronize();
  }

  @CudaTest(memory = "64MiB", simulatedOnly = true)
  void poolThatOthersMade_isTrimmedByTheDriverAlone_whenMemoryIsShort(
      Cuda cuda, ScriptedDriver driver) {
    driver.note("memPoolTrimTo", call -> Long.toHexString(call.number("pool")));
    PoolCalls pools = cuda.driver().pools();
    long handle = pools.memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    pools.memPoolSetAttribute(handle, 4, -1);
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofHandle(handle))) {
      pool.allocate(MOST).close();
      cuda.device(0).synchronize();
      cuda.allocate(MOST).close();
      assertThat(pools.memPoolGetAttribute(handle, 5)).isZero();
      assertThat(driver.notes()).doesNotContain(Long.toHexString(handle));
    }
    pools.memPoolDestroy(handle);
  }

  @CudaTest(memory = "64MiB")
  void memoryThatIsReallyOut_isSaidWithTheNumbersOfThePool(Cuda cuda, CudaStream stream) {
    try (Buffer _ = MemoryResource.async().allocate(MOST + 1, stream)) { // the pool has more
      assertThatThrownBy(() -> MemoryResource.async().allocate(MOST, stream))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              e -> {
                long used = e.details().usedBytes();
                assertThat(used).isGreaterThan(MOST).isLessThan(e.details().heldBytes());
                assertThat(e.details().step()).isEqualTo(RecoveryStep.RECLAIM);
              })
          .hasMessageContaining("cuMemAllocAsync(bytes=" + MOST)
          .hasMessageContaining("largest free=unknown")
          .hasCauseInstanceOf(CudaException.class);
    }
    cuda.device(0).synchronize();
  }

  @CudaTest(memory = "64MiB")
  void memoryOfAResourceThatIsReallyOut_isSaidWithTheNumbersOfItsPool(
      Cuda cuda, DeviceMemoryResource resource, CudaStream stream) {
    try (Buffer _ = resource.allocate(MOST, stream)) {
      assertThatThrownBy(() -> resource.allocate(MOST, stream))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class,
              e -> {
                assertThat(e.details().heldBytes()).isGreaterThanOrEqualTo(MOST);
                assertThat(e.details().usedBytes()).isEqualTo(MOST);
              });
    }
    cuda.device(0).synchronize();
  }

  @CudaTest(simulatedOnly = true)
  void cachingPoolAtItsLimit_waitsForNoPoolOfTheDriver(
      Cuda cuda, ScriptedDriver driver, AsyncMemoryPool other, CudaStream busy, CudaStream stream) {
    driver.note("streamSynchronize", call -> Long.toHexString(call.number("stream")));
    PoolOptions limited = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(MIB));
    try (MemoryPool small = new MemoryPool(cuda, limited);
        Buffer _ = small.allocate(MIB, stream)) {
      DeviceBuffer buffer = other.allocate(MIB, busy);
      stream.waitFor(busy);
      buffer.fill((byte) 1, stream);
      buffer.close(); // not kept idle, because another stream used it
      assertThatThrownBy(() -> small.allocate(MIB, stream))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(driver.notes()).doesNotContain(Long.toHexString(busy.handle()));
      cuda.device(0).synchronize();
    }
  }

  /** Who has the buffer cannot trim the pool, and nobody else has it. */
  @CudaTest(memory = "64MiB", simulatedOnly = true)
  void memoryThatAClosedPoolKeepsBesideABufferInUse_isThereForOthers(Cuda cuda) {
    for (boolean isRecent : new boolean[] {true, false}) {
      AsyncMemoryPool closed = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
      DeviceBuffer inUse = closed.allocate(MIB);
      closed.allocate(MOST).close();
      if (isRecent) {
        closed.close();
      }
      cuda.device(0).synchronize();
      closed.close();
      cuda.allocate(MOST).close();
      cuda.defaultMemoryPool().freeAllBlocks();
      inUse.close();
      cuda.device(0).synchronize();
    }
  }

  /** Its handle must not reach the driver any more. */
  @CudaTest(simulatedOnly = true)
  void poolThatEndsWhileOthersAreTrimmed_isNotTrimmed(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource resource) {
    var ending = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    long gone = ending.handle();
    driver.note("memPoolTrimTo", call -> Long.toHexString(call.number("pool")));
    driver.answer(
        "memPoolTrimTo",
        call -> {
          ending.close();
          return call.proceed();
        });
    assertThatThrownBy(() -> cuda.allocate(1L << 50))
        .isInstanceOf(OutOfDeviceMemoryException.class);
    assertThat(driver.notes())
        .contains(Long.toHexString(resource.handle()))
        .doesNotContain(Long.toHexString(gone));
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
}
