package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.internal.base.PagedBytes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** Memory that is not written costs nothing, however much of it there is. */
class LazyMemoryTest {
  private static final long GIB = 1L << 30;

  @Test
  void hundredGibibytes_writtenAtBothEnds_costNextToNothing() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      assertThat(driver.devices().deviceTotalMem(0)).isEqualTo(143_156L << 20);
      long before = usedHeap();
      long bytes = 100 * GIB;
      long address = driver.memory().memAlloc(0, bytes);
      MemorySegment host = driver.memory().memHostAlloc(0, 8, 0);
      host.fill((byte) 5);
      driver.transfers().memcpyAsync(0, address, host.address(), 8, 0);
      driver.transfers().memcpyAsync(0, address + bytes - 8, host.address(), 8, 0);
      driver.transfers().memsetD8Async(0, address + 8, (byte) 6, bytes / 2, 0);
      assertThat(read(driver, address)).isEqualTo((byte) 5);
      assertThat(read(driver, address + bytes - 1)).isEqualTo((byte) 5);
      assertThat(read(driver, address + bytes / 2)).isEqualTo((byte) 6);
      assertThat(read(driver, address + bytes - 9)).isEqualTo(PagedBytes.UNTOUCHED);
      // The table of the filled half alone is 50 GiB / 64 KiB references.
      assertThat(usedHeap() - before).isLessThan(24L << 20);
    }
  }

  @Test
  void wholePagesThatWereCopied_areNotSharedOnceWritten() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long one = driver.memory().memAlloc(0, GIB);
      long other = driver.memory().memAlloc(0, GIB);
      driver.transfers().memsetD8Async(0, one, (byte) 1, GIB, 0);
      driver.transfers().memcpyAsync(0, other, one, GIB, 0);
      driver.transfers().memsetD8Async(0, one + 70_000, (byte) 2, 1, 0);
      driver.transfers().memsetD8Async(0, other + 70_001, (byte) 3, 1, 0);
      assertThat(read(driver, one + 70_000)).isEqualTo((byte) 2);
      assertThat(read(driver, one + 70_001)).isEqualTo((byte) 1);
      assertThat(read(driver, other + 70_000)).isEqualTo((byte) 1);
      assertThat(read(driver, other + 70_001)).isEqualTo((byte) 3);
      assertThat(read(driver, other + GIB - 1)).isEqualTo((byte) 1);
    }
  }

  @Test
  void hundredThousandLiveBlocks_costLittleHeap() {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long before = usedHeap();
      for (int i = 0; i < 100_000; i++) {
        driver.memory().memAlloc(0, 1 << 20);
      }
      assertThat(driver.liveBytes(0)).isEqualTo(100_000L << 20);
      assertThat(usedHeap() - before).isLessThan(24L << 20);
    }
  }

  private static byte read(SimulatedDriver driver, long address) {
    MemorySegment host = driver.memory().memHostAlloc(0, 1, 0);
    driver.transfers().memcpyDtoHAsync(0, host, address, 0);
    driver.streams().streamSynchronize(0, 0);
    return host.get(ValueLayout.JAVA_BYTE, 0);
  }

  private static long usedHeap() {
    System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }
}
