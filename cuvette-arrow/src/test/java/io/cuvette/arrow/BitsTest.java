package io.cuvette.arrow;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Bits that move to the start of their memory: each place and each count. */
class BitsTest {
  private static final int BYTES = 6;

  private final Random random = new Random(3);

  @Test
  void bits_moveToTheStart_andThoseBehindThemInTheirLastByteAreCleared() {
    for (int from = 0; from < Byte.SIZE; from++) {
      for (int count = 0; count <= Byte.SIZE * BYTES - from; count++) {
        byte[] before = new byte[BYTES];
        random.nextBytes(before);
        byte[] after = before.clone();
        int used = (from + count + 7) / 8;
        Bits.toStart(MemorySegment.ofArray(after).asSlice(0, used), from, count);
        BitSet expected = BitSet.valueOf(before).get(from, from + count);
        int bytes = (count + 7) / 8;
        BitSet found =
            BitSet.valueOf(MemorySegment.ofArray(after).asSlice(0, bytes).asByteBuffer());
        assertThat(found).as("%d bits from %d on", count, from).isEqualTo(expected);
        assertThat(Bits.ones(MemorySegment.ofArray(after), count))
            .isEqualTo(expected.cardinality());
        for (int i = bytes; i < BYTES; i++) {
          assertThat(after[i])
              .as("byte %d of %d bits from %d on", i, count, from)
              .isEqualTo(before[i]);
        }
      }
    }
  }

  @Test
  void onesOfWholeBytes_areThoseOfAllBits() {
    MemorySegment memory = MemorySegment.ofArray(new byte[] {-1, 1, 0x55});
    assertThat(Bits.ones(memory, 0)).isZero();
    assertThat(Bits.ones(memory, 8)).isEqualTo(8);
    assertThat(Bits.ones(memory, 16)).isEqualTo(9);
    assertThat(Bits.ones(memory, 24)).isEqualTo(13);
    memory.set(JAVA_BYTE, 0, (byte) 0x80);
    assertThat(Bits.ones(memory, 8)).isEqualTo(1);
  }
}
