package io.cuvette.array.internal.twin;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The generator gives the known answers of Random123, the library of its authors. */
class PhiloxTest {
  private static void check(int[] counter, int[] key, int... expected) {
    Philox.block(counter, key[0], key[1]);
    assertThat(counter).containsExactly(expected);
  }

  @Test
  void blocks_areTheKnownAnswers() {
    check(new int[4], new int[2], 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    check(
        new int[] {-1, -1, -1, -1},
        new int[] {-1, -1},
        0x408f276d,
        0x41c83b0e,
        0xa20bc7c6,
        0x6d5451fd);
    check(
        new int[] {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
        new int[] {0xa4093822, 0x299f31d0},
        0xd16cfe09,
        0x94fdcceb,
        0x5001e420,
        0x24126ea1);
  }

  @Test
  void counterAndKeyOf64Bits_areTheLowerWords() {
    int[] block = new int[4];
    Philox.block(block, 0x1122334455667788L, 0x99aabbccddeeff00L);
    int[] expected = {0x55667788, 0x11223344, 0, 0};
    Philox.block(expected, 0xddeeff00, 0x99aabbcc);
    assertThat(block).isEqualTo(expected);
  }
}
