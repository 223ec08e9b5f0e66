package io.cuvette.sim.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class MappedFilesTest {
  private static final long PAGE = 4096;

  /** Else bytes of a page that is there would be lost with the page beside it. */
  @Test
  void memoryThatBeginsWithinAPage_isAccessedInPiecesThatEndWherePagesDo() {
    MemorySegment memory = Arena.ofAuto().allocate(4 * PAGE, PAGE).asSlice(100, 3 * PAGE);
    List<Long> begins = new ArrayList<>();
    List<Long> sizes = new ArrayList<>();
    MappedFiles.forEachPage(
        memory,
        (at, page) -> {
          begins.add(at);
          sizes.add(page.byteSize());
          assertThat(page.address()).isEqualTo(memory.address() + at);
        });
    assertThat(begins).containsExactly(0L, PAGE - 100, 2 * PAGE - 100, 3 * PAGE - 100);
    assertThat(sizes).containsExactly(PAGE - 100, PAGE, PAGE, 100L);
  }
}
