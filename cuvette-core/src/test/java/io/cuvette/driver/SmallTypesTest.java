package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What small types of calls say of themselves. */
class SmallTypesTest {
  @Test
  void shapeHasClusters_whereAnySideIsLonger() {
    assertThat(shape(1, 1, 1).hasClusters()).isFalse();
    assertThat(shape(2, 1, 1).hasClusters()).isTrue();
    assertThat(shape(1, 2, 1).hasClusters()).isTrue();
    assertThat(shape(1, 1, 2).hasClusters()).isTrue();
  }

  private static LaunchShape shape(int x, int y, int z) {
    return new LaunchShape(4, 4, 4, 32, 1, 1, x, y, z, 0, false, false);
  }

  @Test
  void streams_areNamed() {
    assertThat(StreamHandle.name(StreamHandle.NULL)).isEqualTo("null stream");
    assertThat(StreamHandle.name(StreamHandle.LEGACY)).isEqualTo("legacy default stream");
    assertThat(StreamHandle.name(StreamHandle.PER_THREAD)).isEqualTo("per-thread default stream");
    assertThat(StreamHandle.name(0xabc)).isEqualTo("stream 0xabc");
  }
}
