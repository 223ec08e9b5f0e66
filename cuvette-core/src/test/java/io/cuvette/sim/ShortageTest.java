package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is free and what fits: as it was seen on an H200. */
class ShortageTest {
  private static final long KIB = 1L << 10;
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;

  private SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);

  @AfterEach
  void close() {
    driver.close();
  }

  private void reopen(String settings) {
    driver.close();
    driver = SimulatedDriver.open(SimulatedOptions.parse(settings));
  }

  private long free() {
    return driver.devices().memGetInfo(0).freeBytes();
  }

  private List<Long> fillUp(long bytes) {
    List<Long> blocks = new ArrayList<>();
    try {
      while (blocks.size() < 100_000) {
        blocks.add(driver.memory().memAlloc(0, bytes));
      }
    } catch (CudaException e) {
      assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
    }
    return blocks;
  }

  @Test
  void contextAndOthers_areNotFree() {
    assertThat(free()).isEqualTo(143_156 * MIB - 552_402_944);
    reopen("memory=10GiB,context=300MiB,others=2GiB");
    assertThat(free()).isEqualTo(10 * GIB - 300 * MIB - 2 * GIB);
    assertThat(driver.devices().deviceTotalMem(0)).isEqualTo(10 * GIB);
    assertThat(fillUp(GIB)).hasSize(7);
  }

  /** As large as on an H200, in proportion; none that would be less than a page. */
  @ParameterizedTest
  @CsvSource({"520, 0", "534, 0", "536, 2048", "544, 2048", "560, 2112", "4096, 15424"})
  void contextThatIsNotSet_isAPartOfTheMemory(long mebibytes, long contextKibibytes) {
    reopen("memory=%dMiB".formatted(mebibytes));
    assertThat(free()).isEqualTo(mebibytes * MIB - contextKibibytes * 1024);
  }

  @ParameterizedTest
  @CsvSource({
    "1, 200, 2",
    "4096, 200, 2",
    "65536, 200, 14",
    "65537, 200, 14",
    "102400, 200, 20",
    "524288, 128, 64",
    "524289, 127, 86",
    "716800, 93, 94",
    "1048576, 64, 64",
    "1048577, 63, 126",
    "2097151, 32, 64",
    "2097152, 32, 64",
    "2097153, 31, 124",
    "3145728, 21, 84",
    "34603008, 3, 102",
  })
  void allocationsOfOneSize_takeAsManyPagesAsOnAGpu(long bytes, int count, long mebibytes) {
    long before = free();
    List<Long> blocks = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      blocks.add(driver.memory().memAlloc(0, bytes));
    }
    assertThat(before - free()).isEqualTo(mebibytes * MIB);
    blocks.forEach(block -> driver.memory().memFree(0, block));
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void smallAllocations_takeTheSmallestGapThatIsLargeEnough() {
    long[] sizes = {
      1,
      3 * MIB / 2,
      400 * KIB,
      MIB,
      700 * KIB,
      2 * MIB,
      512,
      3 * MIB,
      900 * KIB,
      900 * KIB,
      64 * KIB,
      MIB + 512,
      128 * KIB
    };
    long[] taken = {2, 0, 0, 2, 0, 2, 0, 4, 2, 0, 0, 2, 0};
    for (int i = 0; i < sizes.length; i++) {
      long before = free();
      driver.memory().memAlloc(0, sizes[i]);
      assertThat(before - free()).as("allocation %d", i).isEqualTo(taken[i] * MIB);
    }
  }

  @Test
  void gapsBetweenSmallAllocations_serveThoseOfTheirSize_andPagesGoBackWhenEmpty() {
    long before = free();
    List<Long> blocks = new ArrayList<>();
    for (int i = 0; i < 4096; i++) {
      blocks.add(driver.memory().memAlloc(0, 4 * KIB));
    }
    for (int i = 0; i < 4096; i += 2) {
      driver.memory().memFree(0, blocks.get(i));
    }
    assertThat(free()).isEqualTo(before - 16 * MIB);
    for (int i = 0; i < 4096; i += 2) {
      blocks.set(i, driver.memory().memAlloc(0, 4 * KIB));
    }
    assertThat(free()).isEqualTo(before - 16 * MIB);
    for (int i = 0; i < 4096; i++) {
      if (i % 512 != 1) {
        driver.memory().memFree(0, blocks.get(i));
      }
    }
    assertThat(free()).as("one block in each page").isEqualTo(before - 16 * MIB);
    for (int i = 1; i < 4096; i += 512) {
      driver.memory().memFree(0, blocks.get(i));
    }
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void holesOfAPage_areOneForALargeAllocation() {
    reopen("memory=4GiB,context=0");
    List<Long> blocks = fillUp(2 * MIB);
    assertThat(blocks).hasSize(2048);
    assertThat(fillUp(1)).isEmpty();
    for (int i = 0; i < 2048; i += 2) {
      driver.memory().memFree(0, blocks.get(i));
    }
    driver.memory().memAlloc(0, 2 * GIB);
    assertThat(free()).isZero();
  }

  @Test
  void poolAtTheBrim_growsByWholeSteps() {
    reopen("memory=1GiB,context=0");
    driver.memory().memAlloc(0, GIB - 62 * MIB);
    driver.ordered().memAllocAsync(0, 32 * MIB, 0);
    assertThat(free()).isEqualTo(30 * MIB);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.ordered().memAllocAsync(0, 1, 0))
        .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
    driver.memory().memAlloc(0, 30 * MIB);
  }

  @Test
  void endOfTheMemory_isFreeForNobody() {
    fillUp(GIB);
    fillUp(2 * MIB);
    assertThat(fillUp(1)).isEmpty();
    // 3.1 to 7.1 MiB on an H200.
    assertThat(free()).isBetween(7 * MIB, 10 * MIB);
  }

  @Test
  void gapsInAPool_inWhichNoWholeStepIs_serveNothingLargerThanThey() {
    reopen("memory=2GiB,context=0");
    long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
    driver.pools().memPoolSetAttribute(pool, 4, -1);
    driver.ordered().memAllocFromPoolAsync(0, 16 * MIB, pool, 0);
    List<Long> blocks = new ArrayList<>();
    for (int i = 0; i < 63; i++) {
      blocks.add(driver.ordered().memAllocFromPoolAsync(0, 32 * MIB, pool, 0));
    }
    for (int i = 1; i < 63; i += 2) {
      driver.ordered().memFreeAsync(0, blocks.get(i), 0);
    }
    driver.streams().streamSynchronize(0, 0);
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> driver.ordered().memAllocFromPoolAsync(0, 33 * MIB, pool, 0))
        .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
    driver.ordered().memFreeAsync(0, blocks.get(2), 0);
    driver.ordered().memAllocFromPoolAsync(0, 96 * MIB, pool, 0);
    driver.ordered().memFreeAsync(0, blocks.get(6), 0);
    driver.streams().streamSynchronize(0, 0);
    driver.ordered().memAllocFromPoolAsync(0, 33 * MIB, pool, 0);
  }

  @Test
  void streams_areTheContextsForEver_asManyAsThereWereAtATime() {
    long before = free();
    int made = 0;
    long[] streams = new long[1024];
    long[] taken = {8, 34, 140, 560};
    int[] counts = {16, 64, 256, 1024};
    for (int i = 0; i < counts.length; i++) {
      while (made < counts[i]) {
        streams[made++] = driver.streams().streamCreateWithPriority(0, 1, 0);
      }
      assertThat(before - free()).isEqualTo(taken[i] * MIB);
    }
    for (long stream : streams) {
      driver.streams().streamDestroy(0, stream);
    }
    assertThat(before - free()).isEqualTo(560 * MIB);
    driver.streams().streamCreateWithPriority(0, 1, 0);
    assertThat(before - free()).isEqualTo(560 * MIB);
  }

  @Test
  void managedMemory_countsFromItsPrefetchOrFill_untilItIsFreed() {
    long before = free();
    long managed = driver.memory().memAllocManaged(0, 8 * MIB, 1).address();
    assertThat(free()).isEqualTo(before);
    driver.memory().memPrefetchAsync(0, managed, 3 * MIB, 1, 0, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(before - free()).isEqualTo(4 * MIB);
    driver.transfers().memsetD8Async(0, managed + 7 * MIB, (byte) 1, 1, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(before - free()).isEqualTo(6 * MIB);
    driver.memory().memPrefetchAsync(0, managed, 8 * MIB, 2, 0, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(before - free()).as("the host's copy does not free the device's").isEqualTo(6 * MIB);
    driver.memory().memFree(0, managed);
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void managedMemory_makesRoom_forOthersAndForItself() {
    reopen("memory=1GiB,context=0");
    driver.memory().memAlloc(0, GIB - 32 * MIB);
    long managed = driver.memory().memAllocManaged(0, 64 * MIB, 1).address();
    driver.memory().memPrefetchAsync(0, managed, 64 * MIB, 1, 0, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(free()).as("more than there is room for").isZero();
    long plain = driver.memory().memAlloc(0, 24 * MIB);
    assertThat(free()).isZero();
    driver.memory().memFree(0, plain);
    assertThat(free()).as("what left stays away").isEqualTo(24 * MIB);
    driver.memory().memFree(0, managed);
    assertThat(free()).isEqualTo(32 * MIB);
    assertThat(fillUp(2 * MIB)).hasSize(16);
  }

  @Test
  void managedMemory_makesRoom_forStreams() {
    reopen("memory=2GiB,context=600MiB");
    long managed = driver.memory().memAllocManaged(0, 2 * GIB, 1).address();
    driver.memory().memPrefetchAsync(0, managed, 2 * GIB, 1, 0, 0);
    driver.streams().streamSynchronize(0, 0);
    long before = free();
    for (int i = 0; i < 256; i++) {
      driver.streams().streamCreateWithPriority(0, 1, 0);
    }
    assertThat(free()).as("kept back, for nobody").isEqualTo(before).isPositive();
  }

  /** The free end of a page and the free front of the next are no page. */
  @Test
  void gapsOfTwoPages_doNotMakeOne() {
    List<Long> blocks = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      blocks.add(driver.memory().memAlloc(0, MIB));
    }
    long before = free();
    driver.memory().memFree(0, blocks.get(2));
    driver.memory().memFree(0, blocks.get(1));
    assertThat(free()).isEqualTo(before);
    driver.memory().memFree(0, blocks.get(3));
    assertThat(free() - before).isEqualTo(2 * MIB);
  }

  /** Those that fit into what the context has already are made; and again once there is room. */
  @Test
  void streamThatAFullDeviceHasNoRoomFor_isRefused() {
    reopen("memory=1GiB,context=300MiB");
    List<Long> blocks = fillUp(2 * MIB);
    List<Long> streams = new ArrayList<>();
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(() -> {
          while (streams.size() < 200) {
            streams.add(driver.streams().streamCreateWithPriority(0, 1, 0));
          }
        })
        .withMessageContaining("streams need")
        .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
    int made = streams.size();
    long free = free();
    driver.streams().streamDestroy(0, streams.getLast());
    streams.add(driver.streams().streamCreateWithPriority(0, 1, 0));
    assertThat(free()).isEqualTo(free);
    driver.memory().memFree(0, blocks.getLast());
    streams.add(driver.streams().streamCreateWithPriority(0, 1, 0));
    assertThat(free()).as("a page is for streams").isEqualTo(free);
    assertThat(made).isBetween(1, 20);
  }

  /** However large that is. */
  @Test
  void firstStreams_areInTheContext() {
    reopen("memory=8GiB,context=4GiB");
    List<Long> taken = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      long before = free();
      long _ = driver.streams().streamCreateWithPriority(0, 1, 0);
      taken.add((before - free()) / MIB);
    }
    assertThat(taken).containsExactly(0L, 0L, 4L, 4L);
  }

  /** What a device has less than nothing of is nothing. */
  @Test
  void refusalOfAStream_saysThatNothingIsFree() {
    for (long othersMiB : new long[] {720, 722, 724}) {
      reopen("memory=1GiB,context=300MiB,others=" + othersMiB + "MiB");
      assertThatExceptionOfType(CudaException.class)
          .isThrownBy(() -> {
            for (int i = 0; i < 200; i++) {
              long _ = driver.streams().streamCreateWithPriority(0, 1, 0);
            }
          })
          .withMessageContaining("(expected: at most 0, the free memory)");
    }
  }

  /** The first two streams take nothing, and the next ones share what the third takes. */
  @Test
  void streamsThatTakeNothing_areMadeWhereNothingIsLeft() {
    reopen("memory=150MiB,context=148MiB");
    for (int i = 0; i < 3; i++) {
      long _ = driver.streams().streamCreateWithPriority(0, 0, 0);
    }
    assertThat(fillUp(2 * MIB)).isEmpty();
  }
}
