package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.Registration;
import io.cuvette.testkit.CudaTest;
import java.util.ArrayDeque;
import java.util.Deque;
import org.junit.jupiter.api.Test;

/** The programs of docs/guide/limits.md. */
class LimitsGuideTest {
  private static final long GIB = 1L << 30;

  @CudaTest
  void limit_isHardAndPerDevice(Cuda cuda) {
    MemoryPool pool = cuda.defaultMemoryPool();
    pool.setLimit(MemoryLimit.ofBytes(1L << 30)); // 1 GiB, on the current device
    pool.setLimit(cuda.device(0), MemoryLimit.ofFraction(0.5)); // half of device 0
    assertThat(pool.limitBytes()).isEqualTo(cuda.device(0).totalBytes() / 2);
    pool.setLimit(MemoryLimit.none());
    assertThat(pool.limitBytes()).isEqualTo(Long.MAX_VALUE);
  }

  @CudaTest(devices = 2)
  void everyDevice_hasItsOwnLimit(Cuda cuda) {
    MemoryPool pool = cuda.defaultMemoryPool();
    for (CudaDevice device : cuda.devices()) {
      pool.setLimit(device, MemoryLimit.ofBytes((device.id() + 1) * GIB));
    }
    assertThat(pool.limit(cuda.device(1))).isEqualTo(MemoryLimit.ofBytes(2 * GIB));
  }

  @Test
  void firstLimit_canBeGivenWhenOpening() {
    CudaOptions options =
        CudaOptions.simulated().withMemoryLimit(MemoryLimit.parse("limit", "8GiB"));
    try (Cuda cuda = Cuda.open(options)) {
      assertThat(cuda.defaultMemoryPool().limitBytes()).isEqualTo(8L << 30);
    }
  }

  @CudaTest
  void pressureListener_givesMemoryBackInTime(Cuda cuda) {
    PoolOptions small = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(1 << 20));
    Deque<Buffer> cache = new ArrayDeque<>(); // things the program can do without
    try (MemoryPool pool = new MemoryPool(cuda, small);
        Registration _ =
            pool.addPressureListener((device, neededBytes) -> {
              long before = pool.stats(device).usedBytes();
              cache.forEach(Buffer::close);
              cache.clear();
              return before - pool.stats(device).usedBytes();
            })) {
      cache.add(pool.allocate(1 << 20)); // the whole limit
      try (Buffer needed = pool.allocate(1 << 19)) { // the listener makes room
        assertThat(needed.isClosed()).isFalse();
      }
      assertThat(cache).isEmpty();
    }
  }

  @CudaTest
  void outOfMemory_tellsWhy(Cuda cuda) {
    PoolOptions small = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(8 << 20));
    try (MemoryPool pool = new MemoryPool(cuda, small);
        Buffer _ = pool.allocate(6 << 20)) {
      try (Buffer _ = pool.allocate(3 << 20)) {
        throw new AssertionError("9 MiB within a limit of 8 MiB");
      } catch (OutOfDeviceMemoryException e) {
        assertThat(e.details().usedBytes()).isEqualTo(6 << 20);
        assertThat(e.details().limitBytes()).isEqualTo(8 << 20);
      }
    }
  }
}
