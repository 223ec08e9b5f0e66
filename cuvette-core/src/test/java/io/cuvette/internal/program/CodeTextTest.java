package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class CodeTextTest {
  private static byte[] cubin(int format, int... flags) {
    byte[] code = new byte[64];
    code[0] = 0x7F;
    code[1] = 'E';
    code[2] = 'L';
    code[3] = 'F';
    code[8] = (byte) format;
    code[18] = (byte) 190;
    for (int i = 0; i < flags.length; i++) {
      code[48 + i] = (byte) flags[i];
    }
    return code;
  }

  private static String of(String text) {
    return CodeText.of(text.getBytes(StandardCharsets.ISO_8859_1));
  }

  @Test
  void ptx_isDescribedByItsVersionAndTarget() {
    assertThat(of("// by hand\n.version 8.4\n.target sm_90a\n")).isEqualTo("PTX 8.4 for sm_90a");
    assertThat(of(".version\n.target\n")).isEqualTo("PTX ? for ?");
  }

  @Test
  void cubin_isDescribedByItsArchitecture_inBothFormats() {
    assertThat(CodeText.of(cubin(8, 0x04, 0x5A, 0x00, 0x06))).isEqualTo("a cubin for sm_90");
    assertThat(CodeText.of(cubin(7, 0x4B, 0x05, 0x4B, 0x00))).isEqualTo("a cubin for sm_75");
    assertThat(CodeText.of(Arrays.copyOf(cubin(8), 49))).isEqualTo("a cubin");
    assertThat(CodeText.of(Arrays.copyOf(cubin(8, 0x04, 0x5A), 50))).isEqualTo("a cubin for sm_90");
  }

  @Test
  void otherCode_isNamed() {
    assertThat(of("no code")).isEqualTo("none that is known");
    assertThat(CodeText.of(new byte[0])).isEqualTo("none that is known");
    assertThat(of("!<arch>\nx")).startsWith("an archive");
    assertThat(of("P\u00EDU\u00BA")).isEqualTo("a fatbin");
    assertThat(of("\u00EDCN\u007F")).startsWith("LTO-IR");
    assertThat(of("\u007FELF")).startsWith("an object file");
  }

  @Test
  void textOfOneLine_hasNoBreakAnywhere() {
    for (String line : new String[] {"\n", "\r", "\nab", "ab\n", "\rab", "a\rb"}) {
      assertThatThrownBy(() -> Texts.checkLine("value", line))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageEndingWith("(expected: no line break)");
    }
    assertThat(Texts.checkLine("value", "a b")).isEqualTo("a b");
    assertThat(Texts.checkLine("value", "")).isEmpty();
  }

  @Test
  void halfOfASurrogatePair_isRefused_whereverItIs() {
    String high = "\ud83d";
    String low = "\ude00";
    for (String half : new String[] {high, low, high + "x", high + high + low, low + high}) {
      assertThatThrownBy(() -> Texts.check("value", "ab" + half))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("value: half of a surrogate pair at index 2, line 1");
    }
    assertThat(Texts.check("value", high + low + high + low + "x")).hasSize(5);
  }
}
