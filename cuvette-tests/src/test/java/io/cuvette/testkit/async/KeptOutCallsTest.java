package io.cuvette.testkit.async;

import static io.cuvette.driver.CudaStatus.OUT_OF_MEMORY;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/**
 * What the driver is asked for when a device has no access to the pool it is to copy from or to.
 */
class KeptOutCallsTest {
  private static final int BYTES = 1000;

  /** What a copy may be made of; the number that follows each is the device. */
  private static final Map<String, String> CALLS =
      Map.of(
          "memcpyAsync", "copy on",
          "streamCreateWithPriority", "stream of",
          "streamDestroy", "no stream of",
          "eventRecord", "record on",
          "streamWaitEvent", "wait on");

  private static void noteCopies(ScriptedDriver driver) {
    CALLS.forEach((name, text) -> driver.note(name, call -> text + " " + call.number("device")));
    driver.note("memPoolGetAccess", call -> "access of " + call.number("locationId"));
    driver.note("pointerGetAttribute", call -> "attribute " + call.number("attribute"));
  }

  @CudaTest(devices = 2)
  void deviceWithoutAccess_getsTheCopyFromTheOwner(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    noteCopies(driver);
    try (DeviceMemoryResource pool = KeptOutCopyTest.poolOf(cuda.device(0));
        DeviceBuffer memory = pool.allocate(BYTES);
        ManagedBuffer host = managed(cuda.device(1))) {
      cuda.device(0).synchronize();
      driver.takeNotes();
      memory.copyFrom(host, stream);
      assertThat(driver.takeNotes())
          .containsExactly(
              "access of 1",
              "stream of 0",
              "record on 1",
              "wait on 0",
              "copy on 0",
              "record on 0",
              "wait on 1",
              "no stream of 0");
      stream.synchronize();
    }
    cuda.device(0).synchronize();
  }

  private static ManagedBuffer managed(CudaDevice device) {
    try (var _ = device.use()) {
      return device.cuda().allocateManaged(BYTES);
    }
  }

  @CudaTest(devices = 2)
  void deviceWithAccess_copiesItself(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    noteCopies(driver);
    CudaDevice other = cuda.device(1);
    assumeTrue(other.canAccess(cuda.device(0)), "the devices are no peers");
    try (DeviceMemoryResource pool = KeptOutCopyTest.poolOf(cuda.device(0));
        DeviceBuffer memory = pool.allocate(BYTES);
        ManagedBuffer host = managed(other)) {
      cuda.device(0).synchronize();
      pool.peerAccessibleBy().add(other);
      driver.takeNotes();
      memory.copyFrom(host, stream);
      memory.copyTo(host, stream);
      assertThat(driver.takeNotes())
          .containsExactly("access of 1", "copy on 1", "access of 1", "copy on 1");
      stream.synchronize();
    }
    cuda.device(0).synchronize();
  }

  /** Nothing is asked where no device can be kept out. */
  @CudaTest(devices = 2)
  void otherCopies_areOneCall(
      Cuda cuda, ScriptedDriver driver, CudaStream home, @OnDevice(1) CudaStream stream) {
    noteCopies(driver);
    try (DeviceMemoryResource pool = KeptOutCopyTest.poolOf(cuda.device(0));
        DeviceBuffer memory = pool.allocate(BYTES, home);
        Buffer plain = MemoryResource.direct().allocate(BYTES, home);
        Buffer cached = cuda.allocate(BYTES, home);
        ManagedBuffer near = managed(cuda.device(0));
        ManagedBuffer far = managed(cuda.device(1))) {
      home.synchronize();
      driver.takeNotes();
      memory.copyFrom(near, home);
      memory.copyFrom(far, home);
      assertThat(driver.takeNotes())
          .as("on the owner's stream")
          .containsExactly("copy on 0", "copy on 0");
      home.synchronize();
      plain.copyFrom(far, stream);
      cached.copyFrom(far, stream);
      near.copyFrom(far, stream);
      assertThat(driver.takeNotes())
          .as("plain and managed memory")
          .containsExactly("copy on 1", "copy on 1", "copy on 1");
      cuda.devices().forEach(CudaDevice::synchronize);
    }
    cuda.devices().forEach(CudaDevice::synchronize);
  }

  /** Nobody would wait for it: the buffers know the given stream alone. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void copyThatItsStreamCannotWaitFor_isDoneWhenThatIsSaid(
      Cuda cuda, ScriptedDriver driver, CudaStream home, @OnDevice(1) CudaStream stream) {
    noteCopies(driver);
    try (DeviceMemoryResource pool = KeptOutCopyTest.poolOf(cuda.device(0));
        DeviceBuffer memory = pool.allocate(BYTES, home);
        PinnedBuffer far = pinned(cuda.device(1))) {
      memory.fill((byte) 5, home);
      home.synchronize();
      AtomicInteger waits = new AtomicInteger();
      driver.answer(
          "streamWaitEvent",
          call -> {
            if (waits.getAndIncrement() == 1) {
              throw new CudaException(CudaStatus.UNKNOWN, call.name(), "a test");
            }
            return call.proceed();
          });
      assertThatThrownBy(() -> memory.copyTo(far, stream)).hasMessageContaining("a test");
      assertThat(far.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 5);
    }
    cuda.device(0).synchronize();
  }

  private static PinnedBuffer pinned(CudaDevice device) {
    try (var _ = device.use()) {
      return device.cuda().allocatePinned(BYTES);
    }
  }

  @Test
  void eachCallMayFail_andNothingIsLeft() throws InterruptedException {
    FaultSweeps.onSimulator("devices=2")
        .recoveringFrom(OUT_OF_MEMORY, "memAllocFromPoolAsync", "memAllocAsync")
        .recoveringFrom("memPoolGetAttribute")
        .recoveringFrom("pointerGetAttribute") // then the device counts as kept out
        .recoveringFrom("streamQuery") // then a stream counts as working
        .run(
            FaultSweeps.using(cuda -> {
              try (DeviceMemoryResource pool = KeptOutCopyTest.poolOf(cuda.device(0));
                  CudaStream stream = cuda.device(1).createStream();
                  DeviceBuffer memory = pool.allocate(BYTES, cuda.device(0).nullStream());
                  Buffer current =
                      MemoryResource.async().allocate(BYTES, cuda.device(0).nullStream());
                  ManagedBuffer host = managed(cuda.device(1))) {
                cuda.device(0).synchronize();
                memory.copyFrom(host, stream);
                current.copyFrom(host, stream);
                memory.copyTo(host, stream);
              }
            }))
        .orThrow();
  }
}
