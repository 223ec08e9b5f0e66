package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Managed memory: both sides see it, and advice holds on exactly the pages it was given for. */
class ManagedMemoryTest extends SimTestBase {
  private static final int READ_MOSTLY = 1;
  private static final int PREFERRED = 2;
  private static final int ACCESSED_BY = 3;
  private static final int PREFETCHED = 4;
  private static final long PAGE = 4096;

  private final MemorySegment memory = driver.memory().memAllocManaged(0, 10 * PAGE, 1);

  private int attribute(int attribute, long page, long pages) {
    return driver
        .memory()
        .memRangeGetAttribute(0, attribute, memory.address() + page * PAGE, pages * PAGE);
  }

  private void advise(int advice, long page, long pages, int type, int id) {
    driver.memory().memAdvise(0, memory.address() + page * PAGE, pages * PAGE, advice, type, id);
  }

  @Test
  void attributeThatIsOneNumber_isAListOfOne() {
    long address = memory.address();
    advise(READ_MOSTLY, 0, 10, 1, 0);
    assertThat(driver.memory().memRangeGetAttributeList(0, READ_MOSTLY, address, PAGE, 1))
        .containsExactly(1);
    for (int each : new int[] {1, 2, 4, 5, 6, 7, 8}) {
      assertThat(driver.memory().memRangeGetAttributeList(0, each, address, PAGE, 1))
          .as("attribute %d", each)
          .containsExactly(driver.memory().memRangeGetAttribute(0, each, address, PAGE))
          .doesNotContain(each == 1 ? 0 : each);
    }
    assertFails(
        CudaStatus.INVALID_VALUE,
        "count: 2 (expected: 1)",
        () -> driver.memory().memRangeGetAttributeList(0, READ_MOSTLY, address, PAGE, 2));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "count: 0 (expected: > 0)",
        () -> driver.memory().memRangeGetAttributeList(0, ACCESSED_BY, address, PAGE, 0));
  }

  @Test
  void hostAndDevice_seeTheSameMemory() {
    memory.fill((byte) 3);
    long device = driver.memory().memAlloc(0, 100);
    driver.transfers().memcpyAsync(0, device, memory.address(), 100, 0);
    driver.transfers().memsetD8Async(0, memory.address(), (byte) 4, 10, 0);
    driver.devices().ctxSynchronize(0);
    assertThat(read(device, 1)).containsExactly(3);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 9)).isEqualTo((byte) 4);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 10)).isEqualTo((byte) 3);
    assertThat(driver.liveBytes(0)).isEqualTo(512);
    driver.memory().memFree(1, memory.address());
    assertThat(driver.liveHostBytes()).isZero();
  }

  @Test
  void nothingSaid_isNothing() {
    assertThat(attribute(READ_MOSTLY, 0, 10)).isZero();
    for (int attribute : new int[] {PREFERRED, ACCESSED_BY, PREFETCHED}) {
      assertThat(attribute(attribute, 0, 10)).isEqualTo(-2);
    }
    for (int attribute = 5; attribute <= 8; attribute++) {
      assertThat(attribute(attribute, 0, 10)).isZero();
    }
  }

  @Test
  void readMostly_holdsOnItsPagesOnly() {
    advise(1, 3, 4, 0, 0);
    assertThat(attribute(READ_MOSTLY, 3, 4)).isEqualTo(1);
    assertThat(attribute(READ_MOSTLY, 5, 1)).isEqualTo(1);
    assertThat(attribute(READ_MOSTLY, 2, 2)).isZero();
    assertThat(attribute(READ_MOSTLY, 6, 2)).isZero();
    assertThat(attribute(READ_MOSTLY, 0, 10)).isZero();
    advise(2, 4, 1, 0, 0);
    assertThat(attribute(READ_MOSTLY, 3, 1)).isEqualTo(1);
    assertThat(attribute(READ_MOSTLY, 4, 1)).isZero();
    assertThat(attribute(READ_MOSTLY, 5, 2)).isEqualTo(1);
  }

  @Test
  void preferredLocation_isReadBack_inBothForms() {
    advise(3, 0, 2, 1, 1);
    advise(3, 2, 2, 2, 0);
    advise(3, 4, 2, 4, 9);
    assertThat(attribute(PREFERRED, 0, 2)).isEqualTo(1);
    assertThat(attribute(PREFERRED, 2, 4)).isEqualTo(-1);
    assertThat(attribute(PREFERRED, 0, 4)).isEqualTo(-2);
    assertThat(attribute(5, 0, 2)).isEqualTo(1);
    assertThat(attribute(6, 0, 2)).isEqualTo(1);
    assertThat(attribute(5, 2, 2)).isEqualTo(2);
    assertThat(attribute(5, 4, 2)).isEqualTo(3);
    assertThat(attribute(5, 2, 4)).isZero();
    advise(4, 1, 1, 0, 0);
    assertThat(attribute(PREFERRED, 1, 1)).isEqualTo(-2);
    assertThat(attribute(PREFERRED, 0, 1)).isEqualTo(1);
  }

  @Test
  void accessedBy_isASet() {
    advise(5, 0, 10, 1, 1);
    advise(5, 0, 5, 1, 0);
    assertThat(attribute(ACCESSED_BY, 0, 10)).isEqualTo(1);
    assertThat(attribute(ACCESSED_BY, 0, 5)).isZero();
    advise(6, 0, 10, 1, 1);
    assertThat(attribute(ACCESSED_BY, 0, 10)).isEqualTo(-2);
    advise(5, 9, 1, 2, 0);
    assertThat(attribute(ACCESSED_BY, 9, 1)).isEqualTo(-1);
  }

  @Test
  void prefetch_isReadBack() {
    driver.memory().memPrefetchAsync(0, memory.address() + PAGE, 2 * PAGE, 1, 1, 0);
    assertThat(attribute(PREFETCHED, 1, 2)).isEqualTo(1);
    assertThat(attribute(7, 1, 2)).isEqualTo(1);
    assertThat(attribute(8, 1, 2)).isEqualTo(1);
    assertThat(attribute(PREFETCHED, 0, 1)).isEqualTo(-2);
    assertThat(attribute(PREFETCHED, 3, 1)).isEqualTo(-2);
    driver.memory().memPrefetchAsync(0, memory.address(), 10 * PAGE, 2, 0, 0);
    assertThat(attribute(PREFETCHED, 0, 10)).isEqualTo(-1);
    driver.devices().ctxSynchronize(0);
  }

  @Test
  void partOfAPage_countsAsThePage() {
    driver.memory().memAdvise(0, memory.address() + PAGE + 5, 1, 1, 0, 0);
    assertThat(attribute(READ_MOSTLY, 1, 1)).isEqualTo(1);
    assertThat(attribute(READ_MOSTLY, 0, 1)).isZero();
    assertThat(attribute(READ_MOSTLY, 2, 1)).isZero();
  }

  @Test
  void wrongArguments_areRefused() {
    long address = memory.address();
    long device = driver.memory().memAlloc(0, 64);
    long pinned = driver.memory().memHostAlloc(0, 64, 0).address();
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "managed memory", () -> driver.memory().memAdvise(0, device, 64, 1, 0, 0));
    assertFails(
        status, "managed memory", () -> driver.memory().memPrefetchAsync(0, pinned, 64, 1, 0, 0));
    assertFails(
        status, "managed memory", () -> driver.memory().memRangeGetAttribute(0, 1, device, 64));
    assertFails(status, "inside", () -> driver.memory().memAdvise(0, address, 11 * PAGE, 1, 0, 0));
    assertFails(status, "bytes: 0", () -> driver.memory().memAdvise(0, address, 0, 1, 0, 0));
    assertFails(status, "advice: 7", () -> driver.memory().memAdvise(0, address, 1, 7, 1, 0));
    assertFails(
        status, "location type: 0", () -> driver.memory().memAdvise(0, address, 1, 3, 0, 0));
    assertFails(
        status, "location type: 3", () -> driver.memory().memAdvise(0, address, 1, 5, 3, 0));
    assertFails(
        status,
        "NUMA node: 4 (expected: 0 to 0)",
        () -> driver.memory().memPrefetchAsync(0, address, 1, 3, 4, 0));
    assertFails(
        status, "attribute: 9", () -> driver.memory().memRangeGetAttribute(0, 9, address, 1));
    assertFails(
        CudaStatus.INVALID_DEVICE,
        "device: 2",
        () -> driver.memory().memPrefetchAsync(0, address, 1, 1, 2, 0));
    driver.devices().ctxSynchronize(0);
  }

  /** What holds for one page. */
  private static final class Page {
    boolean readMostly;
    int[] preferred = {0, 0};
    final Set<Integer> accessedBy = new TreeSet<>();
    int[] prefetched = {0, 0};

    int[] location(boolean isPrefetched) {
      return isPrefetched ? prefetched : preferred;
    }
  }

  private void change(Random random, List<Page> pages, long from, long bytes) {
    int[][] locations = {{1, 0}, {1, 1}, {2, 0}, {3, 0}, {4, 0}};
    int[] location = locations[random.nextInt(locations.length)];
    int[] seen = location[0] == 4 ? new int[] {3, 0} : location;
    int advice = 1 + random.nextInt(7);
    if (advice == 7) {
      driver.memory().memPrefetchAsync(0, from, bytes, location[0], location[1], 0);
      driver.streams().streamSynchronize(0, 0);
    } else if (advice >= 5 && location[0] > 2) {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "location type",
          () -> driver.memory().memAdvise(0, from, bytes, advice, location[0], location[1]));
      return;
    } else {
      driver.memory().memAdvise(0, from, bytes, advice, location[0], location[1]);
    }
    int by = location[0] == 1 ? location[1] : Integer.MAX_VALUE;
    for (Page page : pages) {
      switch (advice) {
        case 1, 2 -> page.readMostly = advice == 1;
        case 3 -> page.preferred = seen;
        case 4 -> page.preferred = new int[] {0, 0};
        case 5 -> page.accessedBy.add(by);
        case 6 -> page.accessedBy.remove(by);
        default -> page.prefetched = seen;
      }
    }
  }

  private void assertAttributes(List<Page> pages, long from, long bytes) {
    IntUnaryOperator value = i -> driver.memory().memRangeGetAttribute(0, i, from, bytes);
    boolean readMostly = pages.stream().allMatch(page -> page.readMostly);
    assertThat(value.applyAsInt(1)).isEqualTo(readMostly ? 1 : 0);
    for (boolean isPrefetched : new boolean[] {false, true}) {
      int[] first = pages.getFirst().location(isPrefetched);
      boolean isOne =
          pages.stream().allMatch(page -> Arrays.equals(page.location(isPrefetched), first));
      boolean isOneDevice =
          pages.stream().allMatch(page -> device(page.location(isPrefetched)) == device(first));
      int shift = isPrefetched ? 2 : 0;
      assertThat(value.applyAsInt(2 + shift)).isEqualTo(isOneDevice ? device(first) : -2);
      assertThat(value.applyAsInt(5 + shift)).isEqualTo(isOne ? first[0] : 0);
      assertThat(value.applyAsInt(6 + shift)).isEqualTo(isOne ? first[1] : 0);
    }
    Set<Integer> all = new TreeSet<>(pages.getFirst().accessedBy);
    pages.forEach(page -> all.retainAll(page.accessedBy));
    int[] expected = {-2, -2, -2, -2};
    int count = 0;
    for (int device : all) {
      expected[count++] = device == Integer.MAX_VALUE ? -1 : device;
    }
    assertThat(driver.memory().memRangeGetAttributeList(0, 3, from, bytes, 4)).isEqualTo(expected);
    assertThat(value.applyAsInt(3)).isEqualTo(expected[0]);
  }

  private static int device(int[] location) {
    return location[0] == 1 ? location[1] : location[0] == 0 ? -2 : -1;
  }

  /** Any advice about any range, beside what holds for each page. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void attributesOfARange_areWhatAllItsPagesAgreeOn(long seed) {
    Random random = new Random(seed);
    int count = 12;
    long start = driver.memory().memAllocManaged(0, count * 4096L - 100, 1).address();
    List<Page> pages = Stream.generate(Page::new).limit(count).toList();
    for (int step = 0; step < 150; step++) {
      int first = random.nextInt(count);
      int last = first + random.nextInt(Math.min(4, count - first));
      long from = start + first * 4096L + random.nextInt(1000);
      long bytes = (last - first) * 4096L + 1 + random.nextInt(2000);
      List<Page> range = pages.subList(first, last + 1);
      if (random.nextBoolean()) {
        change(random, range, from, bytes);
      }
      assertAttributes(range, from, bytes);
    }
    assertAttributes(pages, start, count * 4096L - 100);
  }
}
