package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolAttributes;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.PoolCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;

/** What is asked of a pool that was borrowed, and what is known of it, when it is closed here. */
class BorrowedEndTest {
  private static final AsyncPoolOptions ALONE =
      AsyncPoolOptions.DEFAULTS.withThresholdRaised(false);

  private static AsyncMemoryPool over(Cuda cuda, long handle, AsyncPoolOptions options) {
    return new AsyncMemoryPool(
        cuda, Choices.first(cuda, AsyncPoolChoice.ofHandle(handle)), options);
  }

  @CudaTest
  void poolThatWasMadeHere_isKnownByItsLastNumbers(Cuda cuda, DeviceMemoryResource made) {
    made.attributes().setReleaseThreshold(5 * MIB);
    AsyncMemoryPool pool = over(cuda, made.handle(), ALONE);
    PoolAttributes attributes = pool.attributes();
    pool.close();
    assertThat(attributes.releaseThreshold()).isEqualTo(5 * MIB);
  }

  /** Its owner may have destroyed it, and its handle must not reach the driver. */
  @CudaTest(simulatedOnly = true)
  void poolOfSomebodyElse_isNotAskedAtItsEnd(Cuda cuda, ScriptedDriver driver) {
    long handle =
        cuda.driver()
            .pools()
            .memPoolCreate(
                new PoolProperties(
                    MemAllocationType.PINNED, MemHandleType.NONE, MemLocationType.DEVICE, 0, 0));
    AsyncMemoryPool pool = over(cuda, handle, ALONE);
    AsyncMemoryPool again = over(cuda, handle, ALONE);
    PoolAttributes attributes = pool.attributes();
    cuda.driver().pools().memPoolDestroy(handle);
    driver.note("memPoolGetAttribute", "memPoolSetAttribute", "memPoolTrimTo");
    pool.close();
    again.close();
    assertThat(driver.notes()).isEmpty();
    assertThatThrownBy(attributes::releaseThreshold)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }

  @CudaTest(simulatedOnly = true)
  void poolThatIsCurrent_isAskedAtItsEnd_andNoLongerOnceAnotherIs(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource other) {
    long born = cuda.driver().pools().deviceGetMemPool(0);
    cuda.driver().pools().deviceSetMemPool(0, other.handle());
    AsyncMemoryPool first = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofCurrent(), ALONE);
    PoolAttributes attributes = first.attributes();
    first.close();
    assertThat(attributes.releaseThreshold()).isEqualTo(Long.MAX_VALUE); // of a new resource
    long handle =
        cuda.driver()
            .pools()
            .memPoolCreate(
                new PoolProperties(
                    MemAllocationType.PINNED, MemHandleType.NONE, MemLocationType.DEVICE, 0, 0));
    cuda.driver().pools().deviceSetMemPool(0, handle);
    AsyncMemoryPool second = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofCurrent(), ALONE);
    cuda.driver().pools().deviceSetMemPool(0, born);
    driver.note("memPoolGetAttribute", call -> call.number("pool") == handle ? "asked" : null);
    second.close();
    assertThat(driver.notes()).isEmpty();
    cuda.driver().pools().memPoolDestroy(handle);
  }

  /** What it keeps otherwise is its owner's. */
  @CudaTest(simulatedOnly = true)
  void poolOfSomebodyElse_isTrimmedForOthers_onlyWhileItsThresholdIsRaised(
      Cuda cuda, ScriptedDriver driver) {
    PoolCalls pools = cuda.driver().pools();
    long handle =
        pools.memPoolCreate(
            new PoolProperties(
                MemAllocationType.PINNED, MemHandleType.NONE, MemLocationType.DEVICE, 0, 0));
    pools.memPoolSetAttribute(handle, MemPoolAttribute.RELEASE_THRESHOLD, 5 * MIB);
    driver.note("memPoolTrimTo", call -> Long.toString(call.number("bytesToKeep")));
    try (AsyncMemoryPool _ = over(cuda, handle, ALONE)) {
      assertThat(trims(cuda, driver)).isEmpty();
    }
    try (AsyncMemoryPool _ = over(cuda, handle, AsyncPoolOptions.DEFAULTS)) {
      assertThat(trims(cuda, driver)).isNotEmpty().containsOnly(Long.toString(5 * MIB));
    }
    pools.memPoolDestroy(handle);
  }

  /** What its owner set is as it was, and nothing has to go. */
  @CudaTest(simulatedOnly = true)
  void poolThatKeepsEverythingAnyway_isNotSetNorTrimmedAtTheEnd(Cuda cuda, ScriptedDriver driver) {
    PoolCalls pools = cuda.driver().pools();
    long handle =
        pools.memPoolCreate(
            new PoolProperties(
                MemAllocationType.PINNED, MemHandleType.NONE, MemLocationType.DEVICE, 0, 0));
    pools.memPoolSetAttribute(
        handle, MemPoolAttribute.RELEASE_THRESHOLD, MemPoolAttribute.KEEP_ALL);
    driver.note("memPoolSetAttribute", "memPoolTrimTo");
    over(cuda, handle, AsyncPoolOptions.DEFAULTS).close();
    assertThat(driver.notes()).isEmpty();
    pools.memPoolDestroy(handle);
  }

  private static List<String> trims(Cuda cuda, ScriptedDriver driver) {
    assertThatThrownBy(() -> cuda.allocate(1L << 50))
        .isInstanceOf(OutOfDeviceMemoryException.class);
    return driver.takeNotes();
  }

  /** Nobody knows whether it is still there, and whether who made it has set it since. */
  @CudaTest(simulatedOnly = true)
  void thresholdOfAPoolThatIsNoLongerCurrent_isForgotten(Cuda cuda, ScriptedDriver driver) {
    PoolCalls pools = cuda.driver().pools();
    long born = pools.deviceGetMemPool(0);
    long handle =
        pools.memPoolCreate(
            new PoolProperties(
                MemAllocationType.PINNED, MemHandleType.NONE, MemLocationType.DEVICE, 0, 0));
    pools.deviceSetMemPool(0, handle);
    AsyncMemoryPool first = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofCurrent());
    pools.deviceSetMemPool(0, born);
    driver.note("memPoolGetAttribute", "memPoolSetAttribute", "memPoolTrimTo");
    first.close();
    assertThat(driver.takeNotes()).isEmpty();
    pools.memPoolSetAttribute(handle, MemPoolAttribute.RELEASE_THRESHOLD, 7 * MIB);
    pools.deviceSetMemPool(0, handle);
    new AsyncMemoryPool(cuda, AsyncPoolChoice.ofCurrent()).close();
    assertThat(pools.memPoolGetAttribute(handle, MemPoolAttribute.RELEASE_THRESHOLD))
        .isEqualTo(7 * MIB);
    pools.deviceSetMemPool(0, born);
    pools.memPoolDestroy(handle);
  }

  /** What waits for the frees of a pool is of the same handle. */
  @CudaTest(simulatedOnly = true)
  void poolThatWasMadeHere_isDestroyed_whateverStreamsOthersFreedOn(
      Cuda cuda,
      ScriptedDriver driver,
      DeviceMemoryResource borrowed,
      @NonBlocking CudaStream stream) {
    var made = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    AsyncMemoryPool pool = over(cuda, borrowed.handle(), ALONE);
    try (Gate _ = Gate.on(stream)) {
      pool.allocate(MIB, stream).close();
      pool.close();
      made.close();
      assertThat(driver.count("memPoolDestroy")).isOne();
    }
    stream.synchronize();
  }

  /** A driver (580) that destroys a pool whose free is queued crashes later. */
  @CudaTest(simulatedOnly = true)
  void poolThatWasMadeHere_isNotDestroyed_beforeTheFreesOfItsBorrowerAreDone(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    var made = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    AsyncMemoryPool pool = over(cuda, made.handle(), ALONE);
    driver.note("memPoolDestroy");
    try (Gate _ = Gate.on(stream)) {
      pool.allocate(MIB, stream).close();
      pool.close();
      made.close();
      assertThat(driver.notes()).isEmpty();
    }
    stream.synchronize();
    cuda.device(0).synchronize();
    assertThat(driver.notes()).containsExactly("memPoolDestroy");
  }

  /** Nobody restores it any more: the next user finds what its owner has set since. */
  @CudaTest(simulatedOnly = true)
  void thresholdThatCannotBeRestored_isForgotten(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource foreign) {
    foreign.attributes().setReleaseThreshold(5 * MIB);
    AsyncMemoryPool pool = over(cuda, foreign.handle(), AsyncPoolOptions.DEFAULTS);
    driver.fail("memPoolSetAttribute", CudaStatus.NOT_PERMITTED, 2);
    assertThatThrownBy(pool::close).isInstanceOf(CudaException.class);
    foreign.attributes().setReleaseThreshold(7 * MIB);
    over(cuda, foreign.handle(), AsyncPoolOptions.DEFAULTS).close();
    assertThat(foreign.attributes().releaseThreshold()).isEqualTo(7 * MIB);
  }

  /** A failure that passes does not leave it raised. */
  @CudaTest(simulatedOnly = true)
  void thresholdThatCannotBeRestoredAtFirst_isRestoredByTheSecondTry(
      Cuda cuda, ScriptedDriver driver, DeviceMemoryResource foreign) {
    foreign.attributes().setReleaseThreshold(5 * MIB);
    AsyncMemoryPool pool = over(cuda, foreign.handle(), AsyncPoolOptions.DEFAULTS);
    driver.fail("memPoolSetAttribute", CudaStatus.NOT_PERMITTED, 1);
    assertThatThrownBy(pool::close).isInstanceOf(CudaException.class);
    assertThat(foreign.attributes().releaseThreshold()).isEqualTo(5 * MIB);
  }
}
