package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.VirtualCalls;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random programs with memory that is mapped here and there, beside a list of their pages. */
class MappingsModelTest extends SimTestBase {
  private static final long PAGE = 2 * MIB;
  private static final int PAGES = 12;
  private static final int STEPS = 150;
  private static final int MOST = 6;

  private final VirtualCalls virtual = driver.virtual();
  private final long range = virtual.memAddressReserve(PAGES * PAGE, 0, 0);
  private final List<Memory> memories = new ArrayList<>();
  private final @Nullable Mapped[] pages = new @Nullable Mapped[PAGES];

  /** Memory, with a value for each of its pages, and how often its handle is held. */
  private static final class Memory {
    final long handle;
    final AllocationProperties place;
    final int size;
    final int[] content;
    int held = 1;

    Memory(long handle, AllocationProperties place, int size) {
      this.handle = handle;
      this.place = place;
      this.size = size;
      this.content = new int[size];
      Arrays.fill(content, 0xA5);
    }

    boolean isOnDevice() {
      return place.locationType() == MemLocationType.DEVICE;
    }
  }

  /** A mapping, at each of its pages. */
  private static final class Mapped {
    final Memory memory;
    final int first;
    final int[] access = new int[2];

    Mapped(Memory memory, int first) {
      this.memory = memory;
      this.first = first;
    }
  }

  private long at(int page) {
    return range + page * PAGE;
  }

  private boolean isMapped(Memory memory) {
    return Arrays.stream(pages).anyMatch(page -> page != null && page.memory == memory);
  }

  private void create(Random random) {
    int size = 1 + random.nextInt(3);
    int place = random.nextInt(3);
    AllocationProperties properties =
        place == 2
            ? new AllocationProperties(0, MemLocationType.HOST_NUMA, 0)
            : AllocationProperties.ofDevice(place, 0);
    long handle = virtual.memCreate(size * PAGE, properties);
    memories.add(new Memory(handle, properties, size));
  }

  private void release(Memory memory) {
    if (memory.held > 0) {
      virtual.memRelease(memory.handle);
      memory.held--;
    } else {
      assertFails(CudaStatus.INVALID_VALUE, "", () -> virtual.memRelease(memory.handle));
    }
  }

  private void map(Memory memory, int first) {
    boolean isFree =
        first + memory.size <= PAGES
            && IntStream.range(first, first + memory.size).allMatch(page -> pages[page] == null);
    if (isFree && memory.held > 0) {
      virtual.memMap(at(first), memory.size * PAGE, 0, memory.handle);
      Mapped mapped = new Mapped(memory, first);
      Arrays.fill(pages, first, first + memory.size, mapped);
    } else {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "",
          () -> virtual.memMap(at(first), memory.size * PAGE, 0, memory.handle));
    }
  }

  /** Whether pages are mappings from the first to the last of them. */
  private boolean areWhole(int from, int to) {
    for (int page = from; page < to; page++) {
      if (pages[page] == null) {
        return false;
      }
    }
    Mapped first = Objects.requireNonNull(pages[from]);
    Mapped last = Objects.requireNonNull(pages[to - 1]);
    return first.first == from && last.first + last.memory.size == to;
  }

  private void unmap(int from, int to) {
    if (areWhole(from, to)) {
      virtual.memUnmap(at(from), (to - from) * PAGE);
      Arrays.fill(pages, from, to, null);
    } else {
      assertFails(
          CudaStatus.INVALID_VALUE, "", () -> virtual.memUnmap(at(from), (to - from) * PAGE));
    }
  }

  private void access(int from, int to, int[] devices, int... flags) {
    long bytes = (to - from) * PAGE;
    if (areWhole(from, to)) {
      virtual.memSetAccess(at(from), bytes, MemLocationType.DEVICE, devices, flags);
      for (int page = from; page < to; page++) {
        for (int i = 0; i < devices.length; i++) {
          Objects.requireNonNull(pages[page]).access[devices[i]] = flags[flags.length == 1 ? 0 : i];
        }
      }
    } else {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "",
          () -> virtual.memSetAccess(at(from), bytes, MemLocationType.DEVICE, devices, flags));
    }
  }

  /** Whether a device may write all of some pages, which are of one place. */
  private boolean isWritable(int device, int from, int to) {
    Mapped first = pages[from];
    for (int page = from; page < to; page++) {
      Mapped each = pages[page];
      if (each == null
          || first == null
          || each.access[device] != 3
          || !each.memory.place.equals(first.memory.place)) {
        return false;
      }
    }
    return true;
  }

  private void fill(int device, int from, int to, int value) {
    long bytes = (to - from) * PAGE;
    if (isWritable(device, from, to)) {
      driver.transfers().memsetD8Async(device, at(from), (byte) value, bytes, 0);
      driver.streams().streamSynchronize(device, 0);
      for (int page = from; page < to; page++) {
        Mapped mapped = Objects.requireNonNull(pages[page]);
        mapped.memory.content[page - mapped.first] = value;
      }
    } else {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "",
          () -> driver.transfers().memsetD8Async(device, at(from), (byte) value, bytes, 0));
    }
  }

  private void assertPage(int page) {
    Mapped mapped = pages[page];
    for (int device = 0; device < 2; device++) {
      int of = device;
      if (mapped == null) {
        assertFails(CudaStatus.INVALID_VALUE, "", () -> virtual.memGetAccess(at(page) + 1, 1, of));
      } else {
        assertThat(virtual.memGetAccess(at(page), 1, of)).isEqualTo(mapped.access[of]);
        assertThat(virtual.memGetAccess(at(page) + PAGE - 1, 1, of)).isEqualTo(mapped.access[of]);
      }
    }
    if (mapped != null && (mapped.access[0] & 1) == 1) {
      int value = mapped.memory.content[page - mapped.first];
      assertThat(read(at(page), 1)).containsExactly(value);
      assertThat(read(at(page) + PAGE - 1, 1)).containsExactly(value);
    }
  }

  private void assertMemories() {
    memories.removeIf(memory -> memory.held == 0 && !isMapped(memory));
    for (int device = 0; device < 2; device++) {
      int of = device;
      long used =
          memories.stream()
              .filter(memory -> memory.isOnDevice() && memory.place.locationId() == of)
              .mapToLong(memory -> memory.size * PAGE)
              .sum();
      assertThat(driver.liveBytes(device)).isEqualTo(used);
      assertThat(driver.devices().memGetInfo(device).freeBytes()).isEqualTo(64 * MIB - used);
    }
    for (Memory memory : memories) {
      if (memory.held > 0) {
        assertThat(virtual.memGetAllocationPropertiesFromHandle(memory.handle))
            .isEqualTo(memory.place);
      } else {
        assertFails(
            CudaStatus.INVALID_VALUE,
            "",
            () -> virtual.memGetAllocationPropertiesFromHandle(memory.handle));
      }
    }
    long mappings = Arrays.stream(pages).filter(Objects::nonNull).distinct().count();
    assertThat(driver.report()).contains(", %d mappings".formatted(mappings));
    assertThat(driver.report().lines().filter(line -> line.startsWith("allocation handle")))
        .hasSize(memories.size());
  }

  private void step(Random random) {
    int from = random.nextInt(PAGES);
    int to = from + 1 + random.nextInt(Math.min(4, PAGES - from));
    Mapped mapped = pages[from];
    switch (random.nextInt(memories.isEmpty() ? 1 : 10)) {
      case 0 -> {
        if (memories.size() < MOST) {
          create(random);
        }
      }
      case 1 -> release(memories.get(random.nextInt(memories.size())));
      case 2 -> {
        if (mapped != null) {
          assertThat(virtual.memRetainAllocationHandle(at(from) + 5))
              .isEqualTo(mapped.memory.handle);
          mapped.memory.held++;
        } else {
          assertFails(
              CudaStatus.INVALID_VALUE, "", () -> virtual.memRetainAllocationHandle(at(from)));
        }
      }
      case 3, 4 -> map(memories.get(random.nextInt(memories.size())), from);
      case 5 -> unmap(from, to);
      case 6 -> access(from, to, new int[] {0, 1}, random.nextInt(2), 3);
      case 7 -> access(from, to, new int[] {random.nextInt(2)}, 3);
      default -> fill(random.nextInt(2), from, to, 1 + random.nextInt(100));
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void pages_areWhatWasMappedThere_andOpenToWhoWasLetIn(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < STEPS; i++) {
      step(random);
      assertPage(random.nextInt(PAGES));
      assertMemories();
    }
  }
}
