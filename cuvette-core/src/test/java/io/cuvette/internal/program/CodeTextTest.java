package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.KernelCode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
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
    assertThatThrownBy(() -> Texts.check("value", "a\nb\0c\nd\n"))
        .hasMessageStartingWith("value: character 0 at index 3, line 2 ");
  }

  private static String key(Object... parts) {
    CodeKey key = new CodeKey();
    for (Object part : parts) {
      CodeKey _ = part instanceof Long number ? key.with(number) : key.with((String) part);
    }
    return key.end();
  }

  /** Else code would be taken for that of another source. */
  @Test
  void keysOfOtherParts_areOthers_howeverTheyAreDivided() {
    List<String> keys =
        List.of(
            key(),
            key(""),
            key("", ""),
            key("ab"),
            key("a", "b"),
            key("", "ab"),
            key("ab", ""),
            key("b", "a"),
            key("1:a"),
            key("a1:b"),
            key(12L, 3L),
            key(1L, 23L),
            key(123L));
    assertThat(keys).doesNotHaveDuplicates().allMatch(each -> each.matches("[0-9a-f]{64}"));
    assertThat(key("a", 1L)).isEqualTo(key("a", 1L)).isEqualTo(key("a", "1"));
  }

  @Test
  void textIsPtx_withBothDirectivesAtItsBeginning() {
    String gap = " ".repeat(70_000);
    Map<String, Boolean> texts =
        Map.of(
            ".version 8.4\n.target sm_90",
            true,
            ".target sm_90\n.version 8.4",
            true,
            ".version 8.4\n",
            false,
            ".target sm_90\n",
            false,
            "version target",
            false,
            ".version 8.4" + gap + ".target sm_90",
            false,
            gap + ".version 8.4 .target sm_90",
            false,
            "",
            false);
    texts.forEach((text, isPtx) -> {
      byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
      if (isPtx) {
        assertThat(CodeKinds.of(bytes)).isEqualTo(KernelCode.Kind.PTX);
      } else {
        assertThatThrownBy(() -> CodeKinds.of(bytes))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageStartingWith(bytes.length + " bytes that begin with [");
      }
    });
  }

  @Test
  void zeroAtTheEnd_isTakenAway_once_andNothingElse() {
    byte[][][] cases = {
      {{}, {}}, {{0}, {}}, {{1}, {1}}, {{1, 0}, {1}}, {{1, 0, 0}, {1, 0}}, {{0, 1}, {0, 1}}
    };
    for (byte[][] each : cases) {
      assertThat(CodeKinds.withoutLastZero(each[0])).containsExactly(each[1]);
    }
  }

  @Test
  void partOfAnOption_isNotBlank() {
    for (String blank : new String[] {"", " ", "\t", "\u2003"}) {
      assertThatThrownBy(() -> Texts.checkOption("value", blank))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("value: '%s' (expected: not blank)", blank);
    }
    assertThatThrownBy(() -> Texts.checkOption("value", "a\nb")).hasMessageContaining("line break");
    assertThat(Texts.checkOption("value", " a ")).isEqualTo(" a ");
  }
}
