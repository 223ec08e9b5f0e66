package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.channel.PoolHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;

/** A Cuda over {@link FakeSharing} and {@link FakeDescriptors}; after a test nothing is open. */
@Timeout(60)
abstract class OverFakeSharing {
  static final UUID OTHER_PROCESS = new UUID(7, 7);

  FakeSharing driver;
  final FakeDescriptors descriptors = new FakeDescriptors();
  final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDevice("sim:devices=2")
              .withDecorator(sim -> {
                driver = new FakeSharing(sim);
                return driver;
              }));
  final CudaDevice device = cuda.device(0);
  private final List<CountDownLatch> gates = new ArrayList<>();

  @AfterEach
  void closeAll() {
    gates.forEach(CountDownLatch::countDown);
    cuda.close();
    assertThat(driver.wrong).isEmpty();
    assertThat(driver.mappings()).as("mappings at the end").isZero();
    assertThat(driver.poolsOpen).as("pools at the end").hasValue(0);
    assertThat(descriptors.open()).as("descriptors at the end").isEmpty();
    assertThat(cuda.engine().imports().size()).isZero();
  }

  /**
   * Holds the work of a stream back until it is counted down, by {@link #closeAll} at the latest.
   */
  CountDownLatch gate(CudaStream stream) {
    CountDownLatch gate = new CountDownLatch(1);
    gates.add(gate);
    stream
        .core()
        .on()
        .context()
        .streams()
        .launchHostFunc(stream.device().id(), stream.handle(), () -> Latches.await(gate));
    return gate;
  }

  /** Whether a stream has work that cannot go on; asking a simulated stream drives its work. */
  static boolean isHeld(CudaStream stream) {
    for (int i = 0; i < 100; i++) {
      if (stream.isDone()) {
        return false;
      }
    }
    return true;
  }

  AllocationHandle handle(UUID uuid) {
    return new AllocationHandle(
        new PoolHandle(descriptors, descriptors.memoryFile("pool", 0), uuid));
  }

  DeviceMemoryResource mapped() {
    try (AllocationHandle handle = handle(null)) {
      return DeviceMemoryResource.fromAllocationHandle(device, handle);
    }
  }

  BufferDescriptor descriptor(int first, long offset, long bytes) {
    return descriptor(BufferDescriptor.Kind.DEVICE_POOL, first, offset, bytes);
  }

  BufferDescriptor descriptor(BufferDescriptor.Kind kind, int first, long offset, long bytes) {
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    Arrays.fill(handle, (byte) first);
    return new BufferDescriptor(kind, offset, bytes, OTHER_PROCESS, new UUID(0, 0), handle);
  }
}
