package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** Which pools an {@link AsyncMemoryPool} uses, and what it does not change. */
class AsyncPoolChoiceTest {

  private static DeviceMemoryResource ownPool(Cuda cuda, int device) {
    return new DeviceMemoryResource(cuda.device(device), DeviceMemoryResourceOptions.DEFAULTS);
  }

  @CudaTest
  void withoutAChoice_itIsTheCurrentPool_asItWasThen(Cuda cuda, DeviceMemoryResource other) {
    CudaDriver driver = cuda.driver();
    long before = driver.pools().deviceGetMemPool(0);
    driver.pools().deviceSetMemPool(0, other.handle());
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      driver.pools().deviceSetMemPool(0, before);
      assertThat(pool.handle(cuda.device(0))).isEqualTo(other.handle());
      try (Buffer buffer = pool.allocate(MIB)) {
        assertThat(other.attributes().usedMemCurrent()).isEqualTo(MIB);
        buffer.fill((byte) 1);
        assertThat(Bytes.of(buffer)).containsOnly(1);
      }
      cuda.currentStream().synchronize();
    } finally {
      driver.pools().deviceSetMemPool(0, before);
    }
    assertThat(other.isHandleOwned()).as("closing it leaves the pool of another").isTrue();
    other.allocate(1).close();
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void defaultPool_isTheOneOfTheDevice_whicheverIsCurrent(Cuda cuda, DeviceMemoryResource current) {
    CudaDriver driver = cuda.driver();
    long before = driver.pools().deviceGetMemPool(0);
    driver.pools().deviceSetMemPool(0, current.handle());
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofDefault())) {
      assertThat(pool.handle(cuda.device(0)))
          .isEqualTo(driver.pools().deviceGetDefaultMemPool(0))
          .isNotEqualTo(current.handle());
    } finally {
      driver.pools().deviceSetMemPool(0, before);
    }
  }

  @CudaTest
  void foreignHandle_isUsed_andItsThresholdAndTheCurrentPoolAreAsBefore(
      Cuda cuda, DeviceMemoryResource foreign) {
    CudaDriver driver = cuda.driver();
    long current = driver.pools().deviceGetMemPool(0);
    foreign.attributes().setReleaseThreshold(5 * MIB);
    try (AsyncMemoryPool pool =
            new AsyncMemoryPool(
                cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(foreign.handle())));
        Buffer _ = pool.allocate(MIB)) {
      assertThat(pool.usedBytes()).isEqualTo(foreign.attributes().usedMemCurrent());
      assertThat(driver.pools().deviceGetMemPool(0)).isEqualTo(current);
    }
    assertThat(foreign.attributes().releaseThreshold()).isEqualTo(5 * MIB);
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void twoPoolsOfDifferentHandles_allocateEachFromItsOwn(
      Cuda cuda, DeviceMemoryResource one, DeviceMemoryResource two) {
    try (AsyncMemoryPool first =
            new AsyncMemoryPool(cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(one.handle())));
        AsyncMemoryPool second =
            new AsyncMemoryPool(
                cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(two.handle())))) {
      first.allocate(MIB).close();
      try (Buffer _ = first.allocate(MIB);
          Buffer _ = second.allocate(2 * MIB)) {
        assertThat(one.attributes().usedMemCurrent()).isEqualTo(MIB);
        assertThat(two.attributes().usedMemCurrent()).isEqualTo(2 * MIB);
      }
      cuda.currentStream().synchronize();
    }
  }

  @CudaTest(devices = 2)
  void listOfChoices_isOneForEachDevice(
      Cuda cuda, @OnDevice(1) DeviceMemoryResource foreign, @OnDevice(1) CudaStream other) {
    List<AsyncPoolChoice> choices =
        new ArrayList<>(Collections.nCopies(cuda.deviceCount(), AsyncPoolChoice.ofNew(0)));
    choices.set(1, AsyncPoolChoice.ofHandle(foreign.handle()));
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, choices);
        Buffer _ = pool.allocate(MIB, other)) {
      assertThat(pool.handle(cuda.device(1))).isEqualTo(foreign.handle());
      assertThat(foreign.attributes().usedMemCurrent()).isEqualTo(MIB);
      assertThat(pool.handle(cuda.device(0))).isNotEqualTo(foreign.handle());
    }
    cuda.device(1).synchronize();
  }

  @CudaTest
  void listOfAnotherLength_isRefused_withBothNumbers(Cuda cuda) {
    int devices = cuda.deviceCount();
    for (int length : new int[] {0, devices - 1, devices + 1}) {
      assertThatThrownBy(() ->
              new AsyncMemoryPool(cuda, Collections.nCopies(length, AsyncPoolChoice.ofDefault())))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("choices: %d (expected: %d, one for each device)".formatted(length, devices));
    }
    AsyncPoolChoice[] missing = new AsyncPoolChoice[devices];
    assertThatThrownBy(() -> new AsyncMemoryPool(cuda, Arrays.asList(missing)))
        .isInstanceOf(NullPointerException.class);
  }

  @CudaTest(devices = 2)
  void oneHandleForSeveralDevices_isRefused(Cuda cuda, DeviceMemoryResource foreign) {
    assertThatThrownBy(() -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofHandle(foreign.handle())))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("one pool handle for " + cuda.deviceCount());
  }

  @CudaTest(devices = 2)
  void handleOfAnotherDevicesPool_isRefused(Cuda cuda, DeviceMemoryResource foreign) {
    List<AsyncPoolChoice> choices =
        new ArrayList<>(Collections.nCopies(cuda.deviceCount(), AsyncPoolChoice.ofNew(0)));
    choices.set(1, AsyncPoolChoice.ofHandle(foreign.handle()));
    assertThatThrownBy(() -> new AsyncMemoryPool(cuda, choices))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(Long.toHexString(foreign.handle()))
        .hasMessageContaining("device 1");
  }

  @CudaTest(simulatedOnly = true)
  void newPool_hasTheMostBytesThatWereSaid(Cuda cuda) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(32 * MIB));
        Buffer _ = pool.allocate(32 * MIB)) {
      assertThatThrownBy(() -> pool.allocate(1)).isInstanceOf(OutOfDeviceMemoryException.class);
      cuda.currentStream().synchronize();
    }
  }

  @CudaTest
  void handlesThatCannotBe_areRefused(Cuda cuda) {
    for (long handle : new long[] {0, -1, Long.MIN_VALUE}) {
      assertThatThrownBy(() -> AsyncPoolChoice.ofHandle(handle))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("handle: " + handle);
    }
    assertThatThrownBy(() -> AsyncPoolChoice.ofNew(-1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("maxBytes: -1");
    assertThat(cuda.deviceCount()).isPositive();
  }

  /** Of the driver's failures only two are about the handle. */
  @CudaTest(simulatedOnly = true)
  void handleThatTheDriverRefuses_isNamed_andOtherFailuresAreTheDrivers(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource foreign) {
    List<AsyncPoolChoice> choice = Choices.first(cuda, AsyncPoolChoice.ofHandle(foreign.handle()));
    for (CudaStatus status : List.of(CudaStatus.INVALID_VALUE, CudaStatus.INVALID_HANDLE)) {
      driver.fail("memPoolGetAccess", status, 1);
      assertThatThrownBy(() -> new AsyncMemoryPool(cuda, choice))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("is no memory pool");
    }
    driver.fail("memPoolGetAccess", CudaStatus.NOT_PERMITTED, 1);
    assertThatThrownBy(() -> new AsyncMemoryPool(cuda, choice))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_PERMITTED));
  }

  /** A driver of the real kind may crash on such an address. */
  @CudaTest(simulatedOnly = true)
  void unknownHandle_isRefusedAtOnce(Cuda cuda) {
    assertThatThrownBy(
            () -> new AsyncMemoryPool(cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(0x1234))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("0x1234");
  }

  @CudaTest
  void driverWithoutStreamOrderedMemory_saysWhatIsNeeded(Subject subject) {
    for (CudaStatus status :
        List.of(CudaStatus.NOT_SUPPORTED, CudaStatus.CALL_REQUIRES_NEWER_DRIVER)) {
      ScriptedDriver without = new ScriptedDriver().fail("deviceGetMemPool", status);
      Cuda cuda = subject.open(options -> options.withDecorator(without::over));
      assertThatThrownBy(() -> new AsyncMemoryPool(cuda))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
          .hasMessageContaining("device 0")
          .hasMessageContaining("11.2")
          .hasMessageContaining("MemoryPool");
    }
  }

  @CudaTest
  void streamOfAnotherCuda_isRefused(Subject subject) {
    Cuda mine = subject.cuda();
    Cuda theirs = subject.open(options -> options);
    try (AsyncMemoryPool pool = new AsyncMemoryPool(mine, AsyncPoolChoice.ofNew(0))) {
      CudaStream stream = theirs.device(0).nullStream();
      assertThatThrownBy(() -> pool.allocate(1, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("another Cuda");
      assertThatThrownBy(() -> pool.freeAllBlocks(stream))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> pool.attributes(theirs.device(0)))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
