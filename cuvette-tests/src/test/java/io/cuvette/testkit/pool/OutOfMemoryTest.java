package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.POOL_STEP;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;

/** The exception that explains: every number, on every way to it. */
class OutOfMemoryTest {

  @CudaTest
  void sizeTheLimitForbids_isRefusedWithoutTrying(MemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(4 * UNIT));
    var e =
        catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(4 * UNIT + 1));
    assertThat(e.details().step()).isEqualTo(RecoveryStep.LIMIT);
    assertThat(e.requestedBytes()).isEqualTo(4 * UNIT + 1);
    assertThat(e.details().blockBytes()).isEqualTo(5 * UNIT);
    assertThat(e.details().limitBytes()).isEqualTo(4 * UNIT);
    assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
  }

  @CudaTest
  void everyNumber_isInTheDetailsAndTheMessage(MemoryPool pool, CudaStream other) {
    pool.setLimit(MemoryLimit.ofBytes(20 * UNIT));
    pool.allocate(8 * UNIT, other).close();
    pool.allocate(10 * UNIT).close();
    try (Buffer _ = pool.allocate(4 * UNIT);
        Buffer _ = pool.allocate(UNIT, other)) {
      var e = catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(9 * UNIT));
      var details = e.details();
      assertThat(details.device()).isZero();
      assertThat(details.requestedBytes()).isEqualTo(9 * UNIT);
      assertThat(details.blockBytes()).isEqualTo(9 * UNIT);
      assertThat(details.heldBytes()).isEqualTo(18 * UNIT);
      assertThat(details.usedBytes()).isEqualTo(5 * UNIT);
      assertThat(details.freeBytes()).isEqualTo(13 * UNIT);
      assertThat(details.freeBlocks()).isEqualTo(2);
      assertThat(details.largestFreeBytes()).isEqualTo(7 * UNIT);
      assertThat(details.otherStreamsFreeBytes()).isEqualTo(7 * UNIT);
      assertThat(details.limitBytes()).isEqualTo(20 * UNIT);
      assertThat(details.driverFreeBytes()).isPositive();
      assertThat(details.step()).isEqualTo(RecoveryStep.RECLAIM);
      assertThat(e)
          .hasMessageContainingAll(
              "CUDA_ERROR_OUT_OF_MEMORY (2)",
              "requested=4608",
              "on device 0",
              "held=9216",
              "used=2560",
              "free=6656 in 2 blocks",
              "largest free=3584",
              "free on other streams=3584",
              "limit=10240",
              "free in the driver=" + details.driverFreeBytes(),
              "null stream",
              "reclaiming forgotten buffers");
    }
  }

  @CudaTest(memory = "16MiB")
  void fullDevice_isExplainedWithTheDriversNumbers(MemoryPool pool) {
    try (Buffer _ = pool.allocate(12 * MIB)) {
      var e = catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(8 * MIB));
      assertThat(e.details().heldBytes()).isEqualTo(12 * MIB);
      assertThat(e.details().driverFreeBytes()).isEqualTo(4 * MIB);
      assertThat(e).hasMessageContaining("limit=none");
    }
  }

  @CudaTest
  void hugeRequest_isOutOfMemory_andThePoolGoesOn(MemoryPool pool) {
    for (long bytes : new long[] {1L << 50, 1L << 62, Long.MAX_VALUE - 1023}) {
      assertThatThrownBy(() -> pool.allocate(bytes))
          .as("%d bytes", bytes)
          .isInstanceOf(OutOfDeviceMemoryException.class)
          .hasMessageContaining("requested=" + bytes);
      assertThat(pool.totalBytes()).isZero();
    }
    pool.allocate(UNIT).close();
  }

  @CudaTest
  void withoutAPool_theDriversRefusalSaysWhatWasAskedFor(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    for (MemoryResource resource : new MemoryResource[] {MemoryResource.direct()}) {
      var e =
          catchThrowableOfType(
              OutOfDeviceMemoryException.class, () -> resource.allocate(1L << 50, stream));
      long bytes = 1L << 50;
      long free = e.details().driverFreeBytes();
      assertThat(free).isPositive();
      assertThat(e.requestedBytes()).isEqualTo(bytes);
      assertThat(e.details())
          .isEqualTo(
              new OutOfDeviceMemoryException.Details(
                  0,
                  bytes,
                  bytes,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  Long.MAX_VALUE,
                  free,
                  RecoveryStep.DRIVER));
      assertThat(e).hasCauseInstanceOf(CudaException.class);
    }
  }

  @CudaTest
  void exception_survivesSerialisation(MemoryPool pool) throws Exception {
    pool.setLimit(MemoryLimit.ofBytes(UNIT));
    var e = catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(2 * UNIT));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(e);
    }
    try (ObjectInputStream in =
        new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      var back = (OutOfDeviceMemoryException) in.readObject();
      assertThat(back).hasMessage(e.getMessage());
      assertThat(back.details()).isEqualTo(e.details());
      assertThat(back.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
    }
  }

  @CudaTest(memory = "16MiB")
  void allocationsGoOn_afterAFailure(MemoryPool pool) {
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> pool.allocate(POOL_STEP))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      try (Buffer all = pool.allocate(15 * MIB)) {
        all.fill((byte) 1);
      }
    }
  }
}
