package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.OutOfDeviceMemoryException.Details;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.async.OrderedFailures;
import io.cuvette.internal.base.OutOfMemoryText;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which number the first line of exhausted memory has, at the bounds too. */
class OutOfMemoryTextTest {
  private static final long LIMIT = 1 << 20;

  private static String text(long room, long limit, long driverFree, long cached) {
    Details details =
        new Details(0, 512, 512, 0, 0, cached, 0, 0, 0, 0, 0, limit, driverFree, RecoveryStep.GROW);
    return new OutOfDeviceMemoryException("grow()", details, room).getMessage();
  }

  /** The limit is named unless the driver has less than it leaves. */
  @ParameterizedTest
  @CsvSource({
    "100, -1, 0, of a limit of 1048576", // the driver does not report it
    "100, 100, 0, of a limit of 1048576",
    "101, 100, 0, free 100 in the driver",
    "1, 0, 0, free 0 in the driver",
    "0, 0, 0, of a limit of 1048576",
    "110, 100, 10, of a limit of 1048576",
    "111, 100, 10, free 100 in the driver",
    "100, 100, -1, of a limit of 1048576"
  })
  void firstLine_namesWhatIsScarcer(long room, long driverFree, long cached, String what) {
    assertThat(text(room, LIMIT, driverFree, cached).lines().findFirst().orElseThrow())
        .startsWith("out of device memory: 512 bytes on device 0, ")
        .endsWith(what);
  }

  @Test
  void memoryWithoutALimit_isTheDrivers() {
    assertThat(text(Long.MAX_VALUE, Long.MAX_VALUE, -1, 0))
        .startsWith("out of device memory: 512 bytes on device 0, free unknown in the driver");
  }

  @ParameterizedTest
  @CsvSource({
    "LIMIT, the limit",
    "DRIVER, the driver",
    "OWN_BLOCKS, own cached blocks",
    "OTHER_STREAMS, cached blocks of idle streams",
    "GROW, growing",
    "RELEASE, releasing cached memory",
    "PRESSURE, pressure listeners",
    "WAIT, waiting for other streams",
    "RECLAIM, reclaiming forgotten buffers"
  })
  void lastStep_isNamed(RecoveryStep step, String what) {
    Details details = new Details(0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, LIMIT, 0, step);
    assertThat(OutOfMemoryText.of(details, 0, "call()")).contains("tried up to: " + what + "\n");
    assertThat(OutOfMemoryText.ofPinned(details, "call()")).contains("tried up to: " + what + "\n");
  }

  /** Each number has its place. */
  @Test
  void allNumbers_areThere() {
    Details details = new Details(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, RecoveryStep.GROW);
    String failed = "call(): " + CudaStatus.describe(CudaStatus.OUT_OF_MEMORY.code());
    assertThat(OutOfMemoryText.of(details, 14, "call()").lines())
        .containsExactly(
            "out of device memory: 2 bytes on device 1, free 14 of a limit of 12",
            "  requested=2, block=3, limit=12, free in the driver=13",
            "  held=4, used=5, free=6 in 7 blocks, pending=8, for graphs=9",
            "  largest free=10, free on other streams=11, tried up to: growing",
            "  " + failed);
    assertThat(OutOfMemoryText.ofPinned(details, "call()").lines())
        .containsExactly(
            "out of page-locked memory: 2 bytes",
            "  requested=2, block=3, limit=12",
            "  held=4, used=5, free=6, tried up to: growing",
            "  " + failed);
  }

  @Test
  void oneBlock_isNotCalledSeveral() {
    Details one = new Details(0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, LIMIT, 0, RecoveryStep.GROW);
    Details unknown = new Details(0, 1, 1, 0, 0, 0, -1, 0, 0, 0, 0, LIMIT, 0, RecoveryStep.GROW);
    assertThat(OutOfMemoryText.of(one, 0, "call()")).contains("free=0 in 1 block,");
    assertThat(OutOfMemoryText.of(unknown, 0, "call()")).contains("free=0 in unknown blocks,");
    PinnedPoolStats now = new PinnedPoolStats(300, 200, 500, 300, 0, 1, 1, 500, 500, 3, 3, 0, 1000);
    assertThat(OutOfMemoryText.ofPinned(now, 900, 1024, RecoveryStep.WAIT, "call()"))
        .contains("free=200 in 1 block,");
  }

  /** What is pending is not free yet. */
  @Test
  void pinnedPool_namesWhatItsLimitLeaves() {
    PinnedPoolStats now =
        new PinnedPoolStats(300, 200, 500, 300, 100, 1, 2, 500, 500, 3, 3, 0, 1000);
    assertThat(OutOfMemoryText.ofPinned(now, 900, 1024, RecoveryStep.WAIT, "call()").lines())
        .startsWith(
            "out of page-locked memory: 900 bytes, free 600 of a limit of 1000",
            "  requested=900, block=1024, limit=1000",
            "  held=500, used=300, free=200 in 2 blocks, pending=100,"
                + " tried up to: waiting for other streams");
  }

  @Test
  void pinnedPoolWithoutALimit_namesNone() {
    PinnedPoolStats now =
        new PinnedPoolStats(300, 200, 500, 300, 100, 1, 2, 500, 500, 3, 3, 0, Long.MAX_VALUE);
    assertThat(OutOfMemoryText.ofPinned(now, 900, 1024, RecoveryStep.WAIT, "call()").lines())
        .startsWith(
            "out of page-locked memory: 900 bytes", "  requested=900, block=1024, limit=none");
  }

  /** Of what a driver's pool holds, what is not in use is free, where both are known. */
  @ParameterizedTest
  @CsvSource({"700, 300, 400", "0, 0, 0", "-1, 300, -1", "700, -1, -1"})
  void driversPool_hasFreeWhatItHoldsAndNobodyUses(long held, long used, long free) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      var e =
          OrderedFailures.outOfMemory(
              "call()", cuda.device(0).core(), 1, 512, () -> held, () -> used, LIMIT, 0);
      assertThat(e.details().freeBytes()).isEqualTo(free);
      assertThat(e.details().step()).isEqualTo(RecoveryStep.LIMIT);
    }
  }
}
