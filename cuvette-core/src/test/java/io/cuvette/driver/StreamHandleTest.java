package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class StreamHandleTest {
  @Test
  void handlesOfTheStreamsThatExistFromTheStart_areToldFromOthers() {
    String[] names = {"null stream", "legacy default stream", "per-thread default stream"};
    for (int handle = 0; handle < names.length; handle++) {
      assertThat(StreamHandle.isBuiltIn(handle)).isTrue();
      assertThat(StreamHandle.isLegacy(handle)).isEqualTo(handle < 2);
      assertThat(StreamHandle.name(handle)).isEqualTo(names[handle]);
    }
    for (long handle : new long[] {3, -1, 1L << 32, Long.MIN_VALUE}) {
      assertThat(StreamHandle.isBuiltIn(handle)).isFalse();
      assertThat(StreamHandle.isLegacy(handle)).isFalse();
      assertThat(StreamHandle.name(handle)).isEqualTo("stream 0x" + Long.toHexString(handle));
    }
  }
}
