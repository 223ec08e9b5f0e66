package io.cuvette.arrow;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.ForeignLoan;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Numbers of arrays that others have: each ends one array, once, however late it comes. */
class ExportedNodesTest {
  private static final int COUNT = 1_000;

  private final ExportedNodes nodes = new ExportedNodes();

  private ExportedNode added() {
    ExportedNode node = new ExportedNode(new ForeignLoan[0], new ExportedNode[0]);
    nodes.add(node);
    return node;
  }

  @Test
  void eachNumber_findsItsArrayOnce() {
    List<ExportedNode> all = new ArrayList<>();
    for (int i = 0; i < COUNT; i++) {
      all.add(added());
    }
    for (ExportedNode node : all.reversed()) {
      assertThat(nodes.take(node.number)).isSameAs(node);
      assertThat(nodes.take(node.number)).isNull();
    }
  }

  @Test
  void numberThatNobodyGave_findsNothing() {
    assertThat(nodes.take(1L << 32)).as("before the first").isNull();
    ExportedNode node = added();
    for (long number : new long[] {0, -1, 1, 255, 256, 1L << 31, node.number + (1L << 32)}) {
      assertThat(nodes.take(number)).as("%x", number).isNull();
    }
    assertThat(nodes.take(node.number + 1)).as("a place without an array").isNull();
    assertThat(nodes.take(node.number)).isSameAs(node);
  }

  /** Places are used again, after many others; the numbers of those before are of nobody. */
  @Test
  void lateRelease_findsNothing_thoughItsPlaceHasAnotherArray() {
    Set<Long> gone = new HashSet<>();
    Set<Integer> places = new HashSet<>();
    for (int i = 0; i < COUNT; i++) {
      ExportedNode node = added();
      for (long number : gone) {
        assertThat(nodes.take(number)).isNull();
      }
      assertThat(gone.add(node.number)).as("a number is given once").isTrue();
      places.add((int) node.number);
      assertThat(nodes.take(node.number)).isSameAs(node);
    }
    assertThat(places).as("what rests, and the next").hasSize(257);
  }
}
