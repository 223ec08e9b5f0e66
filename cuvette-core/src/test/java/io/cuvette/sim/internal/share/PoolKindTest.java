package io.cuvette.sim.internal.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.base.SimRefusal;
import org.junit.jupiter.api.Test;

class PoolKindTest {
  private static final SimulatedOptions OPTIONS =
      SimulatedOptions.parse("devices=2").withNumaNodes(3);

  private static PoolKind of(int locationType, int id) {
    return PoolKind.of(OPTIONS, locationType, id, MemAllocationType.PINNED);
  }

  @Test
  void placesThatThereAre_haveAPool_andOthersAreRefused() {
    int[][] counts = {{MemLocationType.DEVICE, 2}, {MemLocationType.HOST_NUMA, 3}};
    for (int[] each : counts) {
      for (int id = 0; id < each[1]; id++) {
        assertThat(of(each[0], id).locationId()).isEqualTo(id);
      }
      for (int id : new int[] {-1, Integer.MIN_VALUE, each[1], Integer.MAX_VALUE}) {
        assertThatExceptionOfType(SimRefusal.class)
            .isThrownBy(() -> of(each[0], id))
            .withMessageContaining(id + " (expected: 0 to " + (each[1] - 1));
      }
    }
    assertThat(of(MemLocationType.HOST, 7).locationId()).isZero();
  }
}
