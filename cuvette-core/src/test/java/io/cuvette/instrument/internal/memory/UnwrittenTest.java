package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class UnwrittenTest {
  private static final int BYTES = 100;

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3, 8, 15})
  void memoryMarkedFromAnyAddress_isUnwrittenFromAnyOther_untilAByteIsWritten(int from) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(2 * BYTES, Long.BYTES).asSlice(from, BYTES);
      Unwritten.mark(memory);

      for (int at = 0; at < Long.BYTES; at++) {
        assertThat(Unwritten.isAllMarked(memory.asSlice(at))).as("from byte %d", at).isTrue();
      }
      for (int at = 0; at < BYTES; at++) {
        byte mark = memory.get(ValueLayout.JAVA_BYTE, at);
        memory.set(ValueLayout.JAVA_BYTE, at, (byte) ~mark);
        assertThat(Unwritten.isAllMarked(memory)).as("byte %d is written", at).isFalse();
        memory.set(ValueLayout.JAVA_BYTE, at, mark);
      }
      byte was = memory.get(ValueLayout.JAVA_BYTE, BYTES - 1);
      memory.set(ValueLayout.JAVA_BYTE, BYTES - 1, (byte) ~was);
      assertThat(Unwritten.isAllMarked(memory)).isFalse();
      assertThat(Unwritten.isAllMarked(memory.asSlice(0, BYTES - 1))).isTrue();
    }
  }

  @Test
  void memoryOf64MiB_isTheLargestThatIsMarked_ifItCanBeWritten() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate((64L << 20) + 1, Long.BYTES);
      MemorySegment most = memory.asSlice(0, 64L << 20);
      Unwritten.mark(memory);
      Unwritten.mark(most.asReadOnly());
      assertThat(Unwritten.isAllMarked(most.asSlice(0, BYTES))).isFalse();
      Unwritten.mark(most);
      assertThat(Unwritten.isAllMarked(most)).isTrue();
    }
  }

  /** So few that somebody may have written the same are as good as written. */
  @Test
  void fifteenBytes_areTheFewestThatAreUnwritten() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(BYTES, Long.BYTES);
      Unwritten.mark(memory);
      for (int bytes = 0; bytes < 20; bytes++) {
        for (int at = 0; at < Long.BYTES; at++) {
          assertThat(Unwritten.isAllMarked(memory.asSlice(at, bytes)))
              .as("%d bytes", bytes)
              .isEqualTo(bytes >= 15);
        }
      }
    }
  }
}
