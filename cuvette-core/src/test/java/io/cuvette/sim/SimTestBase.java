package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.schedule.SimStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;

/** Two small simulated devices whose work waits to be waited for, and words for tests of them. */
abstract class SimTestBase {
  static final long KIB = 1L << 10;
  static final long MIB = 1L << 20;
  static final long GIB = 1L << 30;
  static final long NO_HANDLE = 0x51L << 56 | 0xFFF0;

  final SimulatedDriver driver =
      SimulatedDriver.open(
          SimulatedOptions.parse("devices=2,pace=lazy").withMemoryBytes(64 * MIB).withPeers("all"));

  @AfterEach
  void close() {
    driver.close();
  }

  static void assertFails(CudaStatus status, String message, ThrowingCallable call) {
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(call)
        .withMessageContaining(message)
        .satisfies(e -> org.assertj.core.api.Assertions.assertThat(e.status()).isEqualTo(status));
  }

  long stream(int device) {
    return driver.streamCreateWithPriority(device, SimStream.NON_BLOCKING, 0);
  }

  void write(long address, byte... bytes) {
    MemorySegment host = driver.memHostAlloc(0, bytes.length, 0);
    host.copyFrom(MemorySegment.ofArray(bytes));
    driver.memcpyAsync(0, address, host.address(), bytes.length, 0);
    driver.memFreeHost(0, host.address());
  }

  byte[] read(long address, int count) {
    MemorySegment host = driver.memHostAlloc(0, count, 0);
    driver.memcpyAsync(0, host.address(), address, count, 0);
    driver.streamSynchronize(0, 0);
    byte[] bytes = host.toArray(ValueLayout.JAVA_BYTE);
    driver.memFreeHost(0, host.address());
    return bytes;
  }
}
