package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Pools that are closed while streams still use their blocks: nobody asks these pools again, and
 * their memory comes back all the same.
 */
@Timeout(60)
class ClosedPoolTest {
  private static final int POOLS = 32;

  private final SimulatedDriver driver =
      SimulatedDriver.open(SimulatedOptions.parse("memory=%dMiB".formatted(2 * POOLS)));
  private final ScriptedDriver script = new ScriptedDriver();
  private final Cuda cuda =
      Cuda.open(CudaOptions.DEFAULTS.withDriver(driver).withDecorator(script::over));
  private final CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final long before = free();

  @AfterEach
  void close() {
    cuda.close();
  }

  private long free() {
    return cuda.device(0).memoryInfo().freeBytes();
  }

  /** Half of the device's memory, in pools that are closed before the work on it is done. */
  private void leavePools() {
    for (int i = 0; i < POOLS; i++) {
      try (MemoryPool pool = new MemoryPool(cuda);
          Buffer block = pool.allocate(MIB, stream)) {
        block.fill((byte) 1, other);
      }
    }
    assertThat(before - free()).isEqualTo(POOLS * MIB);
  }

  @Test
  void synchronizingTheStream_bringsItBack() {
    try (Gate _ = Gate.on(other)) {
      leavePools();
    }
    other.synchronize();
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void synchronizingTheDevice_bringsItBack() {
    try (Gate _ = Gate.on(other)) {
      leavePools();
    }
    cuda.device(0).synchronize();
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void poolAfterPool_neverHoldsMoreThanWhatIsInUse() {
    for (int i = 0; i < 100 * POOLS; i++) {
      try (MemoryPool pool = new MemoryPool(cuda);
          Buffer block = pool.allocate(MIB, stream)) {
        block.fill((byte) 1, other);
      }
      while (!other.isDone()) {
        Thread.onSpinWait();
      }
      assertThat(before - free()).isLessThanOrEqualTo(2 * MIB);
    }
  }

  private void bringsBack(MemoryResource resource, long bytes) {
    try (Gate _ = Gate.on(other)) {
      leavePools();
    }
    while (!other.isDone()) {
      Thread.onSpinWait();
    }
    resource.allocate(bytes, stream).close();
  }

  /** The work is done no earlier than somebody waits for it. */
  private void openWhenWaitedFor(Gate gate) {
    for (String wait : List.of("eventSynchronize", "streamSynchronize")) {
      script.answer(
          wait,
          call -> {
            gate.open();
            return call.proceed();
          });
    }
  }

  /** The work is not done when the memory is needed. */
  private void waitsFor(MemoryResource resource, long bytes) {
    try (Gate gate = Gate.on(other)) {
      leavePools();
      openWhenWaitedFor(gate);
      resource.allocate(bytes, stream).close();
    }
  }

  @Test
  void poolThatNeedsMemory_bringsItBack() {
    bringsBack(cuda.defaultMemoryPool(), (POOLS + 10) * MIB);
    cuda.defaultMemoryPool().freeAllBlocks();
    waitsFor(cuda.defaultMemoryPool(), (POOLS + 10) * MIB);
  }

  @Test
  void poolThatNeedsMemory_waitsForOtherStreamsOfElasticOnes() {
    waitsForElasticPools(stream);
  }

  @Test
  void poolThatNeedsMemory_waitsForTheirOwnStreamsOfElasticOnes() {
    waitsForElasticPools(other);
  }

  private void waitsForElasticPools(CudaStream own) {
    try (Gate gate = Gate.on(other)) {
      for (int i = 0; i < POOLS / 2; i++) {
        try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
            Buffer block = pool.allocate(2 * MIB, own)) {
          block.fill((byte) 1, other);
        }
      }
      assertThat(before - free()).isEqualTo(POOLS * MIB);
      openWhenWaitedFor(gate);
      cuda.allocate(before - MIB, stream).close(); // each of them has to end
    }
    cuda.defaultMemoryPool().freeAllBlocks();
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void poolOfTheDriverThatNeedsMemory_bringsItBack() {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      bringsBack(pool, (POOLS + 10) * MIB);
    }
    try (DeviceMemoryResource pool =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
      stream.synchronize(); // what the driver gives back, it gives back in a wait
      waitsFor(pool, (POOLS + 10) * MIB);
    }
  }

  @Test
  void resourceOfTheDriverThatNeedsMemory_bringsItBack() {
    bringsBack(MemoryResource.direct(), (POOLS + 10) * MIB);
    bringsBack(MemoryResource.async(), (POOLS + 10) * MIB);
  }

  @Test
  void releasingAllOfTheDevice_bringsItBack() {
    try (Gate _ = Gate.on(other)) {
      leavePools();
    }
    while (!other.isDone()) {
      Thread.onSpinWait();
    }
    cuda.defaultMemoryPool().freeAllBlocks(cuda.device(0));
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void pinnedPools_areNoOther() {
    int live = driver.liveAllocations();
    try (Gate _ = Gate.on(other)) {
      for (int i = 0; i < POOLS; i++) {
        try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
            Buffer block = pool.allocate(MIB)) {
          block.fill((byte) 1, other);
        }
      }
      assertThat(driver.liveAllocations()).isEqualTo(live + POOLS);
    }
    other.synchronize();
    assertThat(driver.liveAllocations()).isEqualTo(live);
  }

  @Test
  void releasingAllOfAPinnedPool_bringsBackWhatIsOfClosedOnes() {
    int live = driver.liveAllocations();
    try (PinnedMemoryPool open = new PinnedMemoryPool(cuda)) {
      try (Gate _ = Gate.on(other);
          PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
          PinnedBuffer block = pool.allocate(MIB)) {
        block.fill((byte) 1, other);
      }
      while (!other.isDone()) {
        Thread.onSpinWait();
      }
      assertThat(driver.liveAllocations()).isEqualTo(live + 1);
      assertThat(open.freeAllBlocks()).as("of its own").isZero();
      assertThat(driver.liveAllocations()).isEqualTo(live);
    }
  }

  /** It would not help. */
  @Test
  void deviceThatIsShort_doesNotWaitForMemoryOfTheHost() {
    try (Gate _ = Gate.on(other);
        MemoryPool scarce = new MemoryPool(cuda)) {
      try (PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
          PinnedBuffer block = pinned.allocate(MIB)) {
        block.recordUse(other);
      }
      assertThatThrownBy(() -> scarce.allocate((2 * POOLS + 1) * MIB, stream))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(other.isDone()).isFalse();
    }
  }
}
