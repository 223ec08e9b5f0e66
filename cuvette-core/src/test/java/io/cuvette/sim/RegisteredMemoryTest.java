package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Memory of the program that the devices get to know. */
class RegisteredMemoryTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final int READ_ONLY = 8;

  private final MemorySegment segment = Arena.ofAuto().allocate(64, 4096);

  private void register(MemorySegment memory, int flags) {
    driver.memory().memHostRegister(0, memory, flags);
  }

  private void unregister(long address) {
    driver.memory().memHostUnregister(0, address);
  }

  @Test
  void memoryThatADeviceCannotSee_isRefused() {
    String isNative = "(expected: native memory)";
    assertFails(INVALID, isNative, () -> register(MemorySegment.ofArray(new long[8]), 0));
    assertFails(INVALID, isNative, () -> register(segment.asSlice(0, 0), 0));
    assertFails(
        INVALID,
        "may not be written (expected: flag 8)",
        () -> register(segment.asReadOnly(), READ_ONLY - 1));
    assertFails(INVALID, "flags: 16 (expected: 0 to 15)", () -> register(segment, 16));
    assertFails(INVALID, "flags: -1", () -> register(segment, -1));
    assertThat(driver.liveAllocations()).isZero();
  }

  @Test
  void onlyTheStartOfRegisteredMemory_endsIt() {
    CudaStatus status = CudaStatus.HOST_MEMORY_NOT_REGISTERED;
    String first = "expected: the first of registered memory";
    assertFails(status, first, () -> unregister(segment.address()));
    register(segment, 0);
    assertFails(status, first, () -> unregister(segment.address() + 4));
    long pinned = driver.memory().memHostAlloc(0, 64, 0).address();
    assertFails(status, first, () -> unregister(pinned));
    long device = driver.memory().memAlloc(0, 64);
    assertFails(INVALID, "this is device memory", () -> unregister(device));
    unregister(segment.address());
    assertFails(status, first, () -> unregister(segment.address()));
    register(segment, 0);
  }

  @Test
  void memoryRegisteredToBeRead_isRead_andWhoWritesItLosesTheDevice() {
    segment.fill((byte) 6);
    register(segment.asReadOnly(), READ_ONLY);
    long memory = driver.memory().memAlloc(0, 64);
    driver.transfers().memcpyAsync(0, memory, segment.address(), 64, 0);
    assertThat(read(memory, 64)).containsOnly(6);
    driver.transfers().memsetD8Async(0, segment.address(), (byte) 7, 64, 0);
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS,
        "64 bytes that are registered as read-only",
        () -> driver.streams().streamSynchronize(0, 0));
    assertThat(segment.toArray(ValueLayout.JAVA_BYTE)).containsOnly(6);
  }
}
