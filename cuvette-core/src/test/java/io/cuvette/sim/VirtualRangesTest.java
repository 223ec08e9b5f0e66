package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.sim.internal.base.Addresses;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Addresses that are reserved, up to all there are, and what is mapped there, beside a list. */
class VirtualRangesTest extends SimTestBase {
  private static final long PAGE = 2 * MIB;
  private static final long START = Addresses.VIRTUAL_START;
  private static final long END = START + Addresses.VIRTUAL_BYTES;
  private static final int STEPS = 200;

  private final VirtualCalls virtual = driver.virtual();
  private final TreeMap<Long, Long> ranges = new TreeMap<>();

  private static long up(long address, long step) {
    return (address + step - 1) / step * step;
  }

  private boolean isFree(long address, long bytes) {
    Map.Entry<Long, Long> before = ranges.lowerEntry(address + bytes);
    return address >= START
        && address + bytes <= END
        && (before == null || before.getKey() + before.getValue() <= address);
  }

  /** Whether there is a place anywhere: at the start, or behind one of the ranges. */
  private boolean isRoom(long bytes, long step) {
    return isFree(up(START, step), bytes)
        || ranges.entrySet().stream()
            .anyMatch(range -> isFree(up(range.getKey() + range.getValue(), step), bytes));
  }

  private static long sizeOf(Random random) {
    return random.nextBoolean()
        ? PAGE * (1 + random.nextInt(8))
        : Addresses.VIRTUAL_BYTES / 16 * (1 + random.nextInt(6)) - PAGE * random.nextInt(2);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void ranges_areApart_andRefusedOnlyIfNoGapIsLargeEnough(long seed) {
    Random random = new Random(seed);
    boolean hasWishes = seed % 2 == 0;
    long used = START;
    for (int i = 0; i < STEPS; i++) {
      if (!ranges.isEmpty() && random.nextInt(5) < 2) {
        long address = (long) ranges.keySet().toArray()[random.nextInt(ranges.size())];
        virtual.memAddressFree(address, Objects.requireNonNull(ranges.remove(address)));
        continue;
      }
      long bytes = sizeOf(random);
      long alignment = random.nextBoolean() ? 0 : 1L << random.nextInt(46);
      long step = Math.max(PAGE, alignment);
      long wanted = hasWishes && random.nextBoolean() ? up(START + sizeOf(random), step) : 0;
      boolean isRoom = isRoom(bytes, step);
      try {
        long address = virtual.memAddressReserve(bytes, alignment, wanted);
        assertThat(isFree(address, bytes)).isTrue();
        assertThat(address % step).isZero();
        if (wanted != 0 && isFree(wanted, bytes)) {
          assertThat(address).isEqualTo(wanted);
        } else if (!hasWishes && isFree(up(used, step), bytes)) {
          assertThat(address).as("not where one was before").isEqualTo(up(used, step));
          used = address + bytes;
        }
        ranges.put(address, bytes);
      } catch (CudaException e) {
        assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
        assertThat(isRoom).isFalse();
      }
    }
    ranges.forEach(virtual::memAddressFree);
    assertThat(virtual.memAddressReserve(Addresses.VIRTUAL_BYTES, 0, 0)).isEqualTo(START);
  }

  @Test
  void moreThanAllAddresses_areRefused() {
    for (long bytes : new long[] {END - START + PAGE, Long.MAX_VALUE / PAGE * PAGE}) {
      String message =
          "%d bytes of addresses (expected: at most %d, the largest free range)"
              .formatted(bytes, END - START);
      assertFails(CudaStatus.OUT_OF_MEMORY, message, () -> virtual.memAddressReserve(bytes, 0, 0));
      assertFails(
          CudaStatus.OUT_OF_MEMORY, message, () -> virtual.memAddressReserve(bytes, 0, START));
    }
    assertThat(virtual.memAddressReserve(END - START, 0, 0)).isEqualTo(START);
  }

  /** Whether some bytes are mappings from the first to the last. */
  private boolean areWhole(long address, long bytes) {
    long end = address;
    while (end < address + bytes && ranges.containsKey(end)) {
      end += ranges.get(end);
    }
    return bytes > 0 && end == address + bytes;
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void unmapping_takesWholeMappings_orNothing(long seed) {
    Random random = new Random(seed);
    long start = virtual.memAddressReserve(16 * PAGE, 0, 0);
    for (int i = 0; i < STEPS; i++) {
      long address = start + PAGE * random.nextInt(16) + (random.nextInt(8) == 0 ? PAGE / 2 : 0);
      long bytes = PAGE * (random.nextInt(6) - 1) - (random.nextInt(8) == 0 ? PAGE / 2 : 0);
      if (random.nextBoolean()) {
        map(start, start + PAGE * random.nextInt(16), PAGE * (1 + random.nextInt(3)));
      } else if (areWhole(address, bytes)) {
        virtual.memUnmap(address, bytes);
        ranges.subMap(address, address + bytes).clear();
      } else {
        assertFails(CudaStatus.INVALID_VALUE, "", () -> virtual.memUnmap(address, bytes));
      }
      assertThat(driver.report()).contains(", %d mappings".formatted(ranges.size()));
      long mapped = ranges.values().stream().mapToLong(Long::longValue).sum();
      assertThat(driver.liveBytes(0)).isEqualTo(mapped);
    }
  }

  private void map(long start, long address, long bytes) {
    long handle = virtual.memCreate(bytes, AllocationProperties.ofDevice(0, 0));
    Map.Entry<Long, Long> before = ranges.lowerEntry(address + bytes);
    boolean isFree = before == null || before.getKey() + before.getValue() <= address;
    if (isFree && address + bytes <= start + 16 * PAGE) {
      virtual.memMap(address, bytes, 0, handle);
      ranges.put(address, bytes);
    } else {
      assertFails(CudaStatus.INVALID_VALUE, "", () -> virtual.memMap(address, bytes, 0, handle));
    }
    virtual.memRelease(handle);
  }
}
