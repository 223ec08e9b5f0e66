package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Wrong input as a new user gives it: each has one clear error, and nothing is broken after it. */
class AdversarialTest {

  @CudaTest
  void negativeSizes_areRefusedEverywhere_withValueAndRule(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    for (long bytes : new long[] {-1, -512, Long.MIN_VALUE}) {
      List<Runnable> calls =
          List.of(
              () -> cuda.allocate(bytes),
              () -> cuda.allocate(bytes, stream),
              () -> cuda.allocatePinned(bytes),
              () -> cuda.allocateManaged(bytes),
              () -> cuda.defaultMemoryPool().allocate(bytes),
              () -> cuda.defaultPinnedMemoryPool().allocate(bytes),
              () -> cuda.directPinned().allocate(bytes),
              () -> MemoryResource.direct().allocate(bytes, stream),
              () -> MemoryResource.managed().allocate(bytes, stream),
              () -> cuda.wrap(0x1000, bytes, null),
              () -> PoolOptions.DEFAULTS.withCrossStreamBytes(bytes));
      for (Runnable call : calls) {
        assertThatThrownBy(call::run)
            .as("call %d", calls.indexOf(call))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(Long.toString(bytes))
            .hasMessageContaining("expected:");
      }
    }
    check(cuda);
  }

  @CudaTest
  void hugeSizes_areOutOfMemory_orOutOfRange_andLeaveNothing(Cuda cuda) {
    CudaStream stream = cuda.currentStream();
    for (long bytes : new long[] {1L << 48, 1L << 62, Long.MAX_VALUE}) {
      List<Runnable> calls =
          List.of(
              () -> cuda.allocate(bytes),
              () -> cuda.allocatePinned(bytes),
              () -> cuda.directPinned().allocate(bytes),
              () -> MemoryResource.direct().allocate(bytes, stream),
              () -> cuda.defaultMemoryPool().allocate(bytes),
              () -> cuda.defaultPinnedMemoryPool().allocate(bytes));
      for (Runnable call : calls) {
        assertThatThrownBy(call::run)
            .as("call %d of %d bytes", calls.indexOf(call), bytes)
            .isInstanceOfAny(CudaException.class, IllegalArgumentException.class)
            .satisfies(e -> {
              if (e instanceof CudaException failure) {
                assertThat(failure.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
              }
            })
            .hasMessageContaining(Long.toString(bytes));
      }
    }
    assertThat(cuda.defaultMemoryPool().totalBytes()).isZero();
    assertThat(cuda.defaultPinnedMemoryPool().totalBytes()).isZero();
    check(cuda);
  }

  @CudaTest(devices = 2)
  void streamsOfAnotherDevice_areRefused(Cuda cuda) {
    CudaStream far = cuda.device(1).nullStream();
    try (Buffer one = cuda.allocate(64, cuda.device(0).nullStream());
        Buffer two = cuda.allocate(64, cuda.device(0).nullStream())) {
      for (Runnable call :
          new Runnable[] {
            () -> one.copyFrom(two, far),
            () -> one.copyTo(two, far),
            () -> one.fillInts(1, far),
            () -> one.fillShorts((short) 1, far)
          }) {
        assertThatThrownBy(call::run)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("device 1")
            .hasMessageContaining("expected: a stream of device 0");
      }
    }
    check(cuda);
  }

  @CudaTest
  void buffersOfAnotherCuda_areRefused(Subject subject) {
    Cuda cuda = subject.cuda();
    Cuda other = subject.open(options -> options);
    try (Buffer mine = cuda.allocate(64);
        Buffer theirs = other.allocate(64)) {
      for (Runnable call :
          new Runnable[] {
            () -> mine.copyFrom(theirs),
            () -> mine.copyTo(theirs),
            () -> mine.copyFrom(theirs, cuda.currentStream()),
            () -> mine.copyFrom(theirs, other.currentStream())
          }) {
        assertThatThrownBy(call::run)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("another Cuda");
      }
    }
    check(cuda);
  }

  @CudaTest
  @SuppressWarnings("NullAway")
  void nulls_areRefusedAtOnce(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(64)) {
      List<Runnable> calls =
          List.of(
              () -> cuda.allocate(1, null),
              () -> buffer.copyFrom((Buffer) null),
              () -> buffer.copyTo((Buffer) null),
              () -> buffer.fill((byte) 1, null),
              () -> buffer.recordUse(null),
              () -> cuda.currentStream().waitFor((CudaStream) null),
              () -> cuda.deviceByPciBusId(null),
              () -> PoolOptions.DEFAULTS.withUpstream(null),
              () -> CudaOptions.DEFAULTS.withDevice(null));
      for (Runnable call : calls) {
        assertThatThrownBy(call::run)
            .as("call %d", calls.indexOf(call))
            .isInstanceOf(NullPointerException.class);
      }
    }
    check(cuda);
  }

  @CudaTest
  @SuppressWarnings("NullAway")
  void nullsThatWouldWorkUntilLater_areRefusedAtOnce(Cuda cuda) {
    List<Runnable> calls =
        List.of(
            () -> cuda.setAllocator(null),
            () -> cuda.useAllocator(null),
            () -> cuda.setPinnedAllocator(null),
            () -> cuda.defaultMemoryPool().addHook(null),
            () -> cuda.defaultMemoryPool().addPressureListener(null),
            () -> cuda.defaultMemoryPool().setLimit(null),
            () -> cuda.currentStream().addCallback((Runnable) null));
    for (Runnable call : calls) {
      assertThatThrownBy(call::run)
          .as("call %d", calls.indexOf(call))
          .isInstanceOf(NullPointerException.class);
    }
    check(cuda);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "cpu",
        "sim:devices",
        "sim:devices=0",
        "sim:devices=-1",
        "sim:devices=1000",
        "sim:devices=two",
        "sim:memory=0",
        "sim:memory=-5GiB",
        "sim:memory=lots",
        "sim:speed=9",
        "sim:devices=1,devices=2",
        "sim:seed=x",
        "sim:,",
        "gpu:x",
        "gpu:-1",
        "gpu:0,1",
        "simulator"
      })
  void wrongDeviceSpecifications_areRefusedWithTheRule(String specification) {
    assertThatThrownBy(() -> Cuda.open(CudaOptions.DEFAULTS.withDevice(specification)).close())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("expected:");
  }

  @Test
  void specificationOfTheSimulator_isFollowed() {
    try (Cuda cuda =
        Cuda.open(CudaOptions.DEFAULTS.withDevice("sim:devices=3,memory=5GiB,peers=none"))) {
      assertThat(cuda.deviceCount()).isEqualTo(3);
      assertThat(cuda.isSimulated()).isTrue();
      assertThat(cuda.device(2).totalBytes()).isEqualTo(5L << 30);
      assertThat(cuda.device(0).canAccess(cuda.device(1))).isFalse();
    }
  }

  /** The Cuda still works. */
  private static void check(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(64)) {
      buffer.fill((byte) 1);
    }
  }
}
