package io.cuvette.testkit.memory;

import static io.cuvette.testkit.support.Sizes.PAGE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.util.Map;

class ManagedMemoryTest {
  private static final int READ_MOSTLY = 1;
  private static final int PREFERRED_LOCATION = 2;
  private static final int LAST_PREFETCH_LOCATION = 4;
  private static final int CPU = -1;
  private static final int PREFERRED_ID = 6;
  private static final int NOWHERE = -2;

  @CudaTest
  void prefetchToTheDeviceAndBack_keepsTheBytes(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(100_000)) {
      Bytes.put(buffer, Bytes.random(1, 100_000));
      buffer.prefetch(MemoryLocation.device(cuda.device(0)));
      buffer.prefetch(MemoryLocation.host(), cuda.currentStream());
      cuda.currentStream().synchronize();
      assertThat(Bytes.of(buffer)).isEqualTo(Bytes.random(1, 100_000));
    }
  }

  @CudaTest
  void prefetch_isInOrderOfTheCurrentStream_unlessOneIsNamed(
      Cuda cuda, ScriptedDriver script, CudaStream current, CudaStream named) {
    script.note("memPrefetchAsync", call -> Long.toHexString(call.number("stream")));
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE);
        Scope _ = current.use()) {
      buffer.prefetch(MemoryLocation.host());
      buffer.prefetch(MemoryLocation.host(), named);
      current.synchronize();
      named.synchronize();
    }
    assertThat(script.notes())
        .containsExactly(Long.toHexString(current.handle()), Long.toHexString(named.handle()));
  }

  @CudaTest
  void prefetch_isForExactlyTheBuffersRange(Cuda cuda) {
    try (ManagedBuffer whole = cuda.allocateManaged(3 * PAGE)) {
      CudaDevice device = cuda.device(0);
      whole.fill((byte) 1);
      whole.slice(PAGE, PAGE).prefetch(MemoryLocation.device(device));
      device.synchronize();
      assertThat(attribute(whole.slice(0, PAGE), LAST_PREFETCH_LOCATION)).isEqualTo(NOWHERE);
      assertThat(attribute(whole.slice(PAGE, PAGE), LAST_PREFETCH_LOCATION)).isZero();
      assertThat(attribute(whole.slice(2 * PAGE), LAST_PREFETCH_LOCATION)).isEqualTo(NOWHERE);
    }
  }

  /** CuPy moves the whole allocation that a block of a pool was cut from. */
  @CudaTest
  void prefetchOfAPooledBlock_leavesItsNeighboursAlone(Cuda cuda) {
    try (MemoryPool pool =
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed()))) {
      CudaStream stream = cuda.currentStream();
      pool.allocate(2 * PAGE, stream).close();
      try (Buffer first = pool.allocate(PAGE, stream);
          Buffer second = pool.allocate(PAGE, stream)) {
        assertThat(second.address()).isEqualTo(first.address() + PAGE);
        ((ManagedBuffer) second).prefetch(MemoryLocation.device(cuda.device(0)), stream);
        stream.synchronize();
        assertThat(attribute((ManagedBuffer) first, LAST_PREFETCH_LOCATION)).isEqualTo(NOWHERE);
        assertThat(attribute((ManagedBuffer) second, LAST_PREFETCH_LOCATION)).isZero();
      }
    }
  }

  @CudaTest
  void everyAdvice_isTaken_andTakenBack(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      MemoryLocation device = MemoryLocation.device(cuda.device(0));
      buffer.advise(MemoryAdvice.SET_READ_MOSTLY, device);
      assertThat(attribute(buffer, READ_MOSTLY)).isEqualTo(1);
      buffer.advise(MemoryAdvice.UNSET_READ_MOSTLY, device);
      assertThat(attribute(buffer, READ_MOSTLY)).isZero();
      buffer.advise(MemoryAdvice.SET_PREFERRED_LOCATION, device);
      assertThat(attribute(buffer, PREFERRED_LOCATION)).isZero();
      buffer.advise(MemoryAdvice.SET_PREFERRED_LOCATION, MemoryLocation.host());
      assertThat(attribute(buffer, PREFERRED_LOCATION)).isEqualTo(CPU);
      buffer.advise(MemoryAdvice.UNSET_PREFERRED_LOCATION, device);
      assertThat(attribute(buffer, PREFERRED_LOCATION)).isEqualTo(NOWHERE);
      buffer.advise(MemoryAdvice.SET_ACCESSED_BY, device);
      buffer.advise(MemoryAdvice.UNSET_ACCESSED_BY, device);
      buffer.advise(MemoryAdvice.SET_ACCESSED_BY, MemoryLocation.host());
      buffer.advise(MemoryAdvice.UNSET_ACCESSED_BY, MemoryLocation.host());
    }
  }

  @CudaTest
  void advice_isForExactlyTheBuffersRange(Cuda cuda) {
    try (ManagedBuffer whole = cuda.allocateManaged(2 * PAGE)) {
      MemoryLocation device = MemoryLocation.device(cuda.device(0));
      whole.slice(PAGE, PAGE).advise(MemoryAdvice.SET_READ_MOSTLY, device);
      assertThat(attribute(whole.slice(0, PAGE), READ_MOSTLY)).isZero();
      assertThat(attribute(whole.slice(PAGE, PAGE), READ_MOSTLY)).isEqualTo(1);
    }
  }

  @CudaTest
  void locationsThatCannotBe_areRefused() {
    assertThatThrownBy(() -> new MemoryLocation.Device(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("device: -1");
    assertThatThrownBy(() -> MemoryLocation.hostNuma(-3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("-3");
  }

  @CudaTest
  void noBytes_areNeitherMovedNorAdvised(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(0)) {
      buffer.prefetch(MemoryLocation.host());
      buffer.advise(MemoryAdvice.SET_READ_MOSTLY, MemoryLocation.host());
    }
  }

  @CudaTest(simulatedOnly = true)
  void memoryOfAPool_prefersThePlaceOfThePool_ifItHasOne(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    Map<Integer, Integer> places =
        Map.of(MemLocationType.NONE, NOWHERE, MemLocationType.DEVICE, 0, MemLocationType.HOST, CPU);
    places.forEach((type, preferred) -> {
      int id = type == MemLocationType.NONE ? 5 : 0; // which says nothing
      PoolProperties properties = new PoolProperties(MemAllocationType.MANAGED, 0, type, id, 0);
      long pool = driver.pools().memPoolCreate(properties);
      long address = driver.ordered().memAllocFromPoolAsync(0, PAGE, pool, 0);
      assertThat(driver.memory().memRangeGetAttribute(0, PREFERRED_LOCATION, address, PAGE))
          .as("type " + type)
          .isEqualTo(preferred);
      assertThat(driver.memory().memRangeGetAttribute(0, PREFERRED_ID, address, PAGE)).isZero();
      driver.memory().memFree(0, address);
      driver.pools().memPoolDestroy(pool);
    });
  }

  private static int attribute(ManagedBuffer buffer, int attribute) {
    return buffer
        .device()
        .cuda()
        .driver()
        .memory()
        .memRangeGetAttribute(buffer.device().id(), attribute, buffer.address(), buffer.byteSize());
  }
}
