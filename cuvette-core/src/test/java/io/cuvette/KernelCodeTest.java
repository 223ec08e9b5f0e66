package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.KernelCode.Kind;
import io.cuvette.internal.program.CodeKinds;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelCodeTest {
  private static final String PTX = ".version 8.0\n.target sm_90\n.address_size 64\n";

  private static byte[] elf(int machine) {
    byte[] bytes = new byte[64];
    bytes[0] = 0x7F;
    bytes[1] = 'E';
    bytes[2] = 'L';
    bytes[3] = 'F';
    bytes[18] = (byte) machine;
    return bytes;
  }

  @Test
  void kind_isReadFromTheBytes() {
    assertThat(KernelCode.of(PTX.getBytes(StandardCharsets.US_ASCII)).kind()).isEqualTo(Kind.PTX);
    assertThat(KernelCode.of(elf(190)).kind()).isEqualTo(Kind.CUBIN);
    assertThat(KernelCode.of(elf(62)).kind()).isEqualTo(Kind.OBJECT);
    assertThat(KernelCode.of(Arrays.copyOf(elf(190), 20)).kind()).isEqualTo(Kind.CUBIN);
    assertThat(KernelCode.of(Arrays.copyOf(elf(190), 19)).kind()).isEqualTo(Kind.OBJECT);
    assertThat(KernelCode.of(new byte[] {0x50, (byte) 0xED, 0x55, (byte) 0xBA, 1}).kind())
        .isEqualTo(Kind.FATBIN);
    assertThat(KernelCode.of(new byte[] {(byte) 0xED, 'C', 'N', 0x7F}).kind())
        .isEqualTo(Kind.LTOIR);
    assertThat(KernelCode.of("!<arch>\nmore".getBytes(StandardCharsets.US_ASCII)).kind())
        .isEqualTo(Kind.LIBRARY);
  }

  @Test
  void bytesOfNoKind_areRefused() {
    assertThatThrownBy(() -> KernelCode.of(new byte[] {1, 2, (byte) 0xFF}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("3 bytes that begin with [01 02 ff] (expected: PTX with");
    assertThatThrownBy(() -> KernelCode.of(new byte[0]))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> KernelCode.of(Kind.CUBIN, new byte[0]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("bytes: none (expected: the code)");
    assertThatThrownBy(() -> KernelCode.of(new byte[] {0x7F, 'E', 'L', 'F'}).text())
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("OBJECT is no text (expected: PTX)");
  }

  /** As texts of C whose length is rounded up. */
  @Test
  void ptxThatIsLoaded_mayEndWithSeveralZeros() {
    CodeKinds.checkText((PTX + "\0\0\0").getBytes(StandardCharsets.US_ASCII));
    byte[] inside = (PTX + "\0.\0\0").getBytes(StandardCharsets.US_ASCII);
    assertThatThrownBy(() -> CodeKinds.checkText(inside))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("PTX with a 0 at index " + PTX.length() + " of ");
  }

  /** The driver says what is wrong with it. */
  @Test
  void codeOfZerosAlone_isNoText() {
    for (int length = 0; length < 4; length++) {
      byte[] zeros = new byte[length];
      CodeKinds.checkText(zeros);
      if (length < 2) {
        assertThatThrownBy(() -> KernelCode.of(Kind.PTX, zeros))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage("bytes: none (expected: the code)");
      }
    }
  }

  @Test
  void ptx_isWithoutTheZeroThatEndsIt_andHasNoneInside() {
    KernelCode code = KernelCode.of((PTX + "\0").getBytes(StandardCharsets.US_ASCII));
    assertThat(code).isEqualTo(KernelCode.ofPtx(PTX));
    assertThat(code.text()).isEqualTo(PTX);
    assertThat(code.size()).isEqualTo(PTX.length());
    assertThatThrownBy(() -> KernelCode.of(Kind.PTX, new byte[] {'a', 0, 'b'}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("bytes: PTX with a 0 at index 1 of 3 (expected: at most one, at the end)");
    assertThatThrownBy(() -> KernelCode.of(Kind.PTX, new byte[] {0, 'a'}))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("a 0 at index 0 of 2");
    assertThatThrownBy(() -> KernelCode.ofPtx("a\0b")).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void code_doesNotChangeWithWhatItWasMadeOf() {
    byte[] bytes = elf(190);
    Map<String, String> names = new HashMap<>(Map.of("f", "_Z1fv"));
    KernelCode code = new KernelCode(Kind.CUBIN, bytes, "log", names);
    bytes[0] = 0;
    names.clear();
    code.bytes()[1] = 0;
    assertThat(code.bytes()).isEqualTo(elf(190));
    assertThat(code.loweredName("f")).isEqualTo("_Z1fv");
    assertThat(code)
        .isEqualTo(new KernelCode(Kind.CUBIN, elf(190), "log", Map.of("f", "_Z1fv")))
        .hasSameHashCodeAs(new KernelCode(Kind.CUBIN, elf(190), "log", Map.of("f", "_Z1fv")))
        .isNotEqualTo(KernelCode.of(elf(190)))
        .hasToString("KernelCode[CUBIN, 64 bytes]");
  }

  @Test
  void codeThatDiffersInAnything_isAnother() {
    Map<String, String> names = Map.of("f", "_Z1fv");
    KernelCode code = new KernelCode(Kind.CUBIN, elf(190), "log", names);
    byte[] other = elf(190);
    other[other.length - 1]++;
    assertThat(code)
        .isNotEqualTo(new KernelCode(Kind.FATBIN, elf(190), "log", names))
        .isNotEqualTo(new KernelCode(Kind.CUBIN, other, "log", names))
        .isNotEqualTo(new KernelCode(Kind.CUBIN, elf(190), "another", names))
        .isNotEqualTo(new KernelCode(Kind.CUBIN, elf(190), "log", Map.of()));
  }

  @Test
  void file_isRead(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("k.ptx"), PTX);
    assertThat(KernelCode.read(file)).isEqualTo(KernelCode.ofPtx(PTX));
    Path other = Files.writeString(folder.resolve("k.txt"), "hello");
    assertThatThrownBy(() -> KernelCode.read(other))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(other + ": 5 bytes");
    assertThatThrownBy(() -> KernelCode.read(folder.resolve("none")))
        .isInstanceOf(UncheckedIOException.class);
  }

  /** The number of the machine has two bytes. */
  @Test
  void machineWhoseLowByteIsThatOfCuda_isAnother() {
    byte[] bytes = elf(190);
    bytes[19] = 1;
    assertThat(KernelCode.of(bytes).kind()).isEqualTo(Kind.OBJECT);
  }
}
