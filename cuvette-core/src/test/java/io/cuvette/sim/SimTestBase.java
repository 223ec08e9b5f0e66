package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.Latches;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.queue.SimStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;

/** Two small simulated devices, whose work runs as the seed says, and words for tests of them. */
abstract class SimTestBase {
  static final long KIB = 1L << 10;
  static final long MIB = 1L << 20;
  static final long GIB = 1L << 30;

  /** What messages have where a value of theirs is missing. */
  private static final String[] UNFILLED = {"%d", "%s", "%x", "%,d", "null"};

  static final long NO_HANDLE = 0x51L << 56 | 0xFFF0;

  final SimulatedDriver driver =
      SimulatedDriver.open(
          SimulatedOptions.parse("devices=2").withMemoryBytes(64 * MIB).withPeers("all"));

  private final List<CountDownLatch> holds = new ArrayList<>();

  @AfterEach
  void close() {
    holds.forEach(CountDownLatch::countDown);
    driver.close();
  }

  /** Keeps what a stream gets from now on from running, until it is counted down. */
  CountDownLatch hold(int device, long stream) {
    CountDownLatch goOn = hold(driver, device, stream);
    holds.add(goOn);
    return goOn;
  }

  static CountDownLatch hold(SimulatedDriver driver, int device, long stream) {
    CountDownLatch goOn = new CountDownLatch(1);
    driver.streams().launchHostFunc(device, stream, () -> Latches.await(goOn));
    return goOn;
  }

  static void assertFails(CudaStatus status, String message, ThrowingCallable call) {
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(call)
        .withMessageContaining(message)
        .withMessageNotContainingAny(UNFILLED)
        .satisfies(e -> org.assertj.core.api.Assertions.assertThat(e.status()).isEqualTo(status));
  }

  long stream(int device) {
    return driver.streams().streamCreateWithPriority(device, SimStream.NON_BLOCKING, 0);
  }

  void write(long address, byte... bytes) {
    MemorySegment host = driver.memory().memHostAlloc(0, bytes.length, 0);
    host.copyFrom(MemorySegment.ofArray(bytes));
    driver.transfers().memcpyAsync(0, address, host.address(), bytes.length, 0);
    driver.memory().memFreeHost(0, host.address());
  }

  byte[] read(long address, int count) {
    MemorySegment host = driver.memory().memHostAlloc(0, count, 0);
    driver.transfers().memcpyAsync(0, host.address(), address, count, 0);
    driver.streams().streamSynchronize(0, 0);
    byte[] bytes = host.toArray(ValueLayout.JAVA_BYTE);
    driver.memory().memFreeHost(0, host.address());
    return bytes;
  }
}
