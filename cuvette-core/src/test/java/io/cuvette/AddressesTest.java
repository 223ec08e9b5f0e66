package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.block.Addresses;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.session.Device;
import java.lang.foreign.Arena;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What is known of an address is what the driver says, and nothing if it does not. */
class AddressesTest {
  private static final int BYTES = 4096;

  /** What the driver refuses questions about addresses with. */
  private @Nullable CudaStatus refusal;

  /** What it says that devices may do with memory of pools; null for what is so. */
  private @Nullable Integer access;

  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver ->
                  DriverProxy.of((method, arguments) -> {
                    CudaStatus now = refusal;
                    if (now != null && method.getName().equals("pointerGetAttribute")) {
                      throw new CudaException(now, "cuPointerGetAttribute", "the test's");
                    }
                    return DriverProxy.forward(driver, method, arguments);
                  })));
  private final Device device = CudaDevice.coreOf(cuda.device(0));
  private final CudaStream stream = cuda.device(0).createStream();

  @AfterEach
  void close() {
    cuda.close();
  }

  private boolean isPageLocked(long address) {
    return Addresses.isPageLocked(device, address);
  }

  @Test
  void memoryOfTheHostThatTheDriverKnows_isPageLocked_andNoOther() {
    try (Arena arena = Arena.ofConfined();
        Buffer pinned = cuda.directPinned().allocate(BYTES);
        Buffer ofDevice = MemoryResource.direct().allocate(BYTES, stream)) {
      assertThat(isPageLocked(pinned.address())).isTrue();
      assertThat(isPageLocked(pinned.address() + BYTES - 1)).isTrue();
      assertThat(isPageLocked(ofDevice.address())).isFalse();
      assertThat(isPageLocked(arena.allocate(BYTES).address())).isFalse();
      refusal = CudaStatus.INVALID_VALUE;
      assertThat(isPageLocked(pinned.address())).isFalse();
      refusal = CudaStatus.NOT_PERMITTED;
      assertThatThrownBy(() -> isPageLocked(pinned.address()))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("the test's");
      refusal = null;
    }
  }

  @Test
  void memoryOfAPool_isNotPlain_unlessTheDriverDoesNotSay() {
    try (DeviceMemoryResource resource =
            new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
        Buffer ofPool = resource.allocate(BYTES, stream);
        Buffer plain = MemoryResource.direct().allocate(BYTES, stream)) {
      assertThat(Addresses.poolOf(device, ofPool.address())).isEqualTo(resource.handle());
      assertThat(Addresses.isPlain(device, ofPool.address())).isFalse();
      assertThat(Addresses.poolOf(device, plain.address())).isZero();
      assertThat(Addresses.isPlain(device, plain.address())).isTrue();
      refusal = CudaStatus.NOT_PERMITTED;
      assertThat(Addresses.poolOf(device, ofPool.address())).isZero();
      refusal = null;
    }
  }

  /** Nobody knows then who may read it. */
  @Test
  void memoryOfAPoolThatTheDriverDoesNotName_isDeniedToAll() {
    try (Cuda two = two();
        DeviceMemoryResource resource =
            new DeviceMemoryResource(two.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
      CudaStream home = two.device(0).createStream();
      List<Buffer> buffers =
          List.of(MemoryResource.async().allocate(BYTES, home), resource.allocate(BYTES, home));
      for (Buffer each : buffers) {
        Block block = ((BufferBase) each).block();
        assertThat(block.deniesAccess(two.device(0).core())).as("its own").isFalse();
        assertThat(block.deniesAccess(two.device(1).core())).as("no other was let in").isTrue();
      }
      Block ofDefaultPool = ((BufferBase) buffers.getFirst()).block();
      Block ofResource = ((BufferBase) buffers.getLast()).block();
      for (CudaStatus status : new CudaStatus[] {CudaStatus.INVALID_VALUE, CudaStatus.UNKNOWN}) {
        refusal = status;
        for (CudaDevice device : two.devices()) {
          assertThat(ofDefaultPool.deniesAccess(device.core())).as("%s", device).isTrue();
          assertThat(ofResource.deniesAccess(device.core())).isEqualTo(device.id() == 1);
        }
        refusal = null;
      }
    }
  }

  /** For kernels write what they are given. */
  @Test
  void memoryOfAPoolThatADeviceMayOnlyRead_isDeniedToIt() {
    try (Cuda two = two();
        DeviceMemoryResource resource =
            new DeviceMemoryResource(two.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
      Buffer buffer = resource.allocate(BYTES, two.device(0).createStream());
      Block block = ((BufferBase) buffer).block();
      for (int flags : new int[] {MemAccessFlags.NONE, MemAccessFlags.READ}) {
        access = flags;
        assertThat(block.deniesAccess(two.device(1).core())).as("access %d", flags).isTrue();
      }
      access = MemAccessFlags.READ_WRITE;
      assertThat(block.deniesAccess(two.device(1).core())).isFalse();
      access = null;
    }
  }

  private Cuda two() {
    return Cuda.open(
        CudaOptions.simulated()
            .withDevice("sim:devices=2")
            .withDecorator(driver ->
                DriverProxy.of((method, arguments) -> {
                  CudaStatus now = refusal;
                  if (now != null && method.getName().equals("pointerGetAttribute")) {
                    throw new CudaException(now, "cuPointerGetAttribute", "the test's");
                  }
                  Integer given = method.getName().equals("memPoolGetAccess") ? access : null;
                  return given != null ? given : DriverProxy.forward(driver, method, arguments);
                })));
  }
}
