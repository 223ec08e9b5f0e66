package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Two simulated drivers, which stand for two processes, and words for what they share. */
@EnabledOnOs(OS.LINUX)
abstract class SimSharingBase {
  static final long KIB = 1L << 10;
  static final long MIB = 1L << 20;
  static final int DEVICE = 1;
  static final int HOST_NUMA = 3;
  static final int INTERPROCESS = 6;

  static final DescriptorCalls DESCRIPTORS = DescriptorCalls.find().orElseThrow();

  /** Its queues hold more than an event can have records that are not done. */
  final SimulatedDriver exporter = open("devices=2,queueLength=2048");

  final SimulatedDriver importer = open("devices=2");
  final long out = stream(exporter);
  final long in = stream(importer);

  static SimulatedDriver open(String settings) {
    return SimulatedDriver.open(SimulatedOptions.parse(settings).withMemoryBytes(64 * MIB));
  }

  static long stream(SimulatedDriver driver) {
    return driver.streams().streamCreateWithPriority(0, 1, 0);
  }

  /** Nothing is shared any more once both are closed. */
  @AfterEach
  void close() {
    exporter.close();
    importer.close();
    assertThat(exporter.liveSharedFiles()).isZero();
    assertThat(importer.liveSharedFiles()).isZero();
  }

  long pool(int location) {
    long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, location, 0, 0));
    exporter.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
    DESCRIPTORS.close(
        exporter.sharing().memPoolExportToShareableHandle(pool)); // before its memory can be
    return pool;
  }

  /** Imports a pool of the exporter. */
  long imported(long pool) {
    int descriptor = exporter.sharing().memPoolExportToShareableHandle(pool);
    try {
      long mapped = importer.sharing().memPoolImportFromShareableHandle(descriptor);
      assertThat(importer.pools().memPoolGetAccess(mapped, 2, 0))
          .isEqualTo(exporter.pools().memPoolGetAccess(pool, 2, 0));
      importer.pools().memPoolSetAccess(mapped, 1, new int[] {0}, 3);
      return mapped;
    } finally {
      DESCRIPTORS.close(descriptor);
    }
  }

  long allocate(long pool, long bytes) {
    long address = exporter.ordered().memAllocFromPoolAsync(0, bytes, pool, out);
    exporter.streams().streamSynchronize(0, out);
    return address;
  }

  static void fill(SimulatedDriver driver, long address, int value, long bytes, long stream) {
    driver.transfers().memsetD8Async(0, address, (byte) value, bytes, stream);
    driver.streams().streamSynchronize(0, stream);
  }

  static byte read(SimulatedDriver driver, long address) {
    return read(driver, address, 1)[0];
  }

  static byte[] read(SimulatedDriver driver, long address, int count) {
    MemorySegment host = driver.memory().memHostAlloc(0, count, 0);
    driver.transfers().memcpyAsync(0, host.address(), address, count, 0);
    driver.streams().streamSynchronize(0, 0);
    byte[] bytes = host.toArray(ValueLayout.JAVA_BYTE);
    driver.memory().memFreeHost(0, host.address());
    return bytes;
  }

  static void assertFails(CudaStatus status, String message, ThrowingCallable call) {
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(call)
        .withMessageContaining(message)
        .withMessageNotContainingAny("%d", "%s", "%x", "null")
        .satisfies(e -> assertThat(e.status()).isEqualTo(status));
  }
}
