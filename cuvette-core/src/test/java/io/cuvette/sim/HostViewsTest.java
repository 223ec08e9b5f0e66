package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Views of page-locked memory, and the memory behind them, which both must have ended. */
class HostViewsTest extends SimTestBase {
  private static final long BYTES = 8192;

  private MemorySegment allocate(int value) {
    return driver.memory().memHostAlloc(0, BYTES, 0).fill((byte) value);
  }

  private MemorySegment view(MemorySegment segment, Arena arena) {
    return driver.memory().hostView(0, segment.address(), BYTES, arena);
  }

  private long fileBytes() throws IOException {
    return driver.machine.hostMemory.fileBytes();
  }

  /** Whichever of its views is the last. */
  @Test
  void memoryWithSeveralViews_isNobodyElses_untilTheLastOfThemEnds() throws IOException {
    for (int last = 0; last < 3; last++) {
      MemorySegment segment = allocate(1);
      List<Arena> arenas = List.of(Arena.ofShared(), Arena.ofShared(), Arena.ofShared());
      List<MemorySegment> views = arenas.stream().map(arena -> view(segment, arena)).toList();
      driver.memory().memFreeHost(0, segment.address());
      for (int i = 0; i < 3; i++) {
        if (i != last) {
          arenas.get(i).close();
          MemorySegment other = allocate(2);
          assertThat(views.get(last).get(ValueLayout.JAVA_BYTE, 4096)).isEqualTo((byte) 1);
          driver.memory().memFreeHost(0, other.address());
        }
      }
      arenas.get(last).close();
      driver.memory().memFreeHost(0, allocate(2).address());
      assertThat(fileBytes()).isZero();
    }
  }

  /** However often it was tried before; and it is no memory of the driver meanwhile. */
  @Test
  void memoryThatIsStillInUse_goesOnceItIsNot() throws IOException {
    MemorySegment segment = allocate(1);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment view = view(segment, arena);
      driver.memory().memFreeHost(0, segment.address());
      for (int i = 0; i < 3; i++) {
        driver.memory().memFreeHost(0, allocate(2).address());
      }
      assertThat(driver.liveHostBytes()).isZero();
      assertThat(fileBytes()).isPositive();
      assertThat(view.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
    }
    driver.memory().memFreeHost(0, allocate(2).address());
    assertThat(fileBytes()).isZero();
  }

  @Test
  void memoryWithViews_isReportedOnce() {
    MemorySegment segment = allocate(1);
    List<String> report = List.copyOf(driver.report().lines().toList());
    try (Arena arena = Arena.ofShared()) {
      MemorySegment view = view(segment, arena);
      assertThat(view.address()).isNotEqualTo(segment.address());
      assertThat(driver.report().lines()).containsExactlyElementsOf(report);
      assertThat(driver.liveAllocations()).isEqualTo(1);
    }
  }

  /** Wherever it is, and if that is nowhere. */
  @Test
  void viewOfNothing_isNoMemory() {
    MemorySegment segment = allocate(1);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment view = driver.memory().hostView(0, segment.address() + 64, 0, arena);
      assertThat(view.byteSize()).isZero();
      for (long address : new long[] {0, view.address()}) {
        assertFails(
            CudaStatus.INVALID_VALUE,
            "live memory",
            () -> driver.memory().pointerGetAttribute(0, 2, address));
      }
      assertThat(driver.memory().pointerGetAttribute(0, 11, segment.address() + 64))
          .isEqualTo(segment.address());
    }
  }
}
