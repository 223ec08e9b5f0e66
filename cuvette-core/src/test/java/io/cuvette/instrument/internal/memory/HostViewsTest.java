package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Where the host sees memory that the driver knows by another address. */
class HostViewsTest {
  private static final long KNOWN = 0x5000_0000_0000L;

  private final HostViews views = new HostViews();

  private static Range at(long address, long bytes, boolean host) {
    return new Range(address, bytes, Kind.READ, host);
  }

  @Test
  void rangeOfTheHost_isWhatTheDriverKnows_ifItIsInside() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment view = arena.allocate(64);
      long start = view.address();
      views.add(view, KNOWN);
      assertThat(views.resolve(at(start + 8, 56, true))).isEqualTo(at(KNOWN + 8, 56, false));
      assertThat(views.resolve(at(start + 8, 57, true))).isEqualTo(at(start + 8, 57, true));
      assertThat(views.resolve(at(start + 8, 56, false))).isEqualTo(at(start + 8, 56, false));
      assertThat(views.resolve(at(start - 1, 1, true))).isEqualTo(at(start - 1, 1, true));
    }
  }

  /** An empty view has no bytes, and hides none. */
  @Test
  void emptyView_isNone() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment view = arena.allocate(64);
      views.add(view, KNOWN);
      views.add(view.asSlice(16, 0), 2 * KNOWN);
      assertThat(views.resolve(at(view.address() + 16, 8, true)))
          .isEqualTo(at(KNOWN + 16, 8, false));
    }
  }

  /** The host and the driver mean the same by such an address. */
  @Test
  void viewWhereTheDriverHasIt_isNone() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment view = arena.allocate(64);
      views.add(view, view.address());
      Range range = at(view.address() + 8, 8, true);
      assertThat(views.resolve(range)).isEqualTo(range);
    }
  }

  @Test
  void viewsThatLive_areKept_howeverManyHaveEnded() {
    List<MemorySegment> living = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      for (int i = 0; i < 200; i++) {
        living.add(arena.allocate(16));
        views.add(living.getLast(), KNOWN + 16 * i);
        try (Arena brief = Arena.ofConfined()) {
          views.add(brief.allocate(16), 2 * KNOWN);
        }
      }
      for (int i = 0; i < 200; i++) {
        assertThat(views.resolve(at(living.get(i).address(), 16, true)))
            .isEqualTo(at(KNOWN + 16 * i, 16, false));
      }
    }
    long gone = living.getFirst().address();
    assertThat(views.resolve(at(gone, 16, true))).isEqualTo(at(gone, 16, true));
  }
}
