package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CompilerException;
import io.cuvette.driver.LinkerCalls;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The driver's linker gets what nvJitLink would, in its own terms, and leaves nothing behind. */
class DriverLinkerTest {
  private static final long STATE = 0x7654_3210_fedcL;

  private StubLibrary library;
  private LinkerCalls linker;

  @BeforeEach
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    linker = library.linker();
    library.makeCurrent(0);
    library.reset();
    library.answer(STATE, 0);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  @Test
  void inputs_areLinked_inTheContextOfADevice_whichIsGivenBack() {
    long made =
        linker.create(
            List.of("-arch=sm_90a", "-g", "-lineinfo", "-verbose", "-O2", "-maxrregcount=64"));
    assertThat(made).isEqualTo(STATE);
    assertThat(library.retained(0)).isOne();
    linker.addData(made, 2, bytes("ptx "), "first");
    linker.addData(made, 1, bytes("cubin "), "second");
    linker.addData(made, 4, bytes("fatbin "), "third");
    linker.addData(made, 5, bytes("object "), "fourth");
    linker.addData(made, 6, bytes("library"), "fifth");
    linker.complete(made);
    assertThat(linker.getErrorLog(made)).isEqualTo("the errors");
    assertThat(linker.getInfoLog(made)).isEqualTo("the infos");
    Arrays.fill(linker.getLinkedCubin(made), (byte) 0); // which is the caller's own
    byte[] cubin = linker.getLinkedCubin(made);
    linker.destroy(made);
    assertThat(new String(cubin, StandardCharsets.US_ASCII))
        .isEqualTo("ptx cubin fatbin object library");
    assertThat(library.calls().stream().filter(call -> call.startsWith("cuLink")))
        .containsExactly(
            "cuLinkCreate@6050( 0=40 4=10000 6=10000 7=2 9=1005a 11=1 12=1 13=1) in c000",
            "cuLinkAddData@6050(76543210fedc, 1, 5, first, 0, 0, 0) in c000",
            "cuLinkAddData@6050(76543210fedc, 0, 6, second, 0, 0, 0) in c000",
            "cuLinkAddData@6050(76543210fedc, 2, 7, third, 0, 0, 0) in c000",
            "cuLinkAddData@6050(76543210fedc, 3, 7, fourth, 0, 0, 0) in c000",
            "cuLinkAddData@6050(76543210fedc, 4, 7, fifth, 0, 0, 0) in c000",
            "cuLinkComplete@5050(76543210fedc) in c000",
            "cuLinkDestroy@5050(76543210fedc) in c000");
    assertThat(library.retained(0)).isZero();
    assertThat(library.current()).isZero();
    assertThat(linker.library()).endsWith("libcuda.so.1");
    assertThat(linker.version()).isPositive();
  }

  @Test
  void architectures_areTargets() {
    for (String[] each : new String[][] {{"sm_75", "4b"}, {"sm_100f", "20064"}, {"sm_120", "78"}}) {
      library.reset();
      library.answer(STATE, 0);
      linker.destroy(linker.create(List.of("-arch=" + each[0])));
      assertThat(library.calls())
          .contains("cuLinkCreate@6050( 4=10000 6=10000 9=%s) in c000".formatted(each[1]));
    }
  }

  @Test
  void everyOption_isTheDriversOwn() {
    Map<String, String> options =
        Map.of(
            "-g", "4=10000 6=10000 11=1",
            "-lineinfo", "4=10000 6=10000 13=1",
            "-verbose", "4=10000 6=10000 12=1",
            "-O0", "4=10000 6=10000 7=0",
            "-O1", "4=10000 6=10000 7=1",
            "-O2", "4=10000 6=10000 7=2",
            "-O3", "4=10000 6=10000 7=3",
            "-maxrregcount=1", "0=1 4=10000 6=10000",
            "-maxrregcount=255", "0=ff 4=10000 6=10000");
    options.forEach((option, numbers) -> {
      library.reset();
      library.answer(STATE, 0);
      linker.destroy(linker.create(List.of(option)));
      assertThat(library.calls())
          .as(option)
          .contains("cuLinkCreate@6050( %s) in c000".formatted(numbers));
    });
  }

  @Test
  void anyCallThatFails_isAnErrorWithItsStatus_andLeavesNothingBehind() {
    library.fail("cuLinkCreate", 222);
    assertThatThrownBy(() -> linker.create(List.of("-arch=sm_90")))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("cuLinkCreate(options=[-arch=sm_90]): UNSUPPORTED_PTX_VERSION (222)");
    assertThat(library.retained(0)).isZero();
    library.reset();
    library.answer(STATE, 0);
    long made = linker.create(List.of("-arch=sm_90"));
    library.fail("cuLinkAddData", 218);
    assertThatThrownBy(() -> linker.addData(made, 2, bytes("p"), "first"))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining(
            "cuLinkAddData(state=0x76543210fedc, type=1, bytes=2, name=first): INVALID_PTX (218)")
        .hasMessageContaining("the errors");
    library.fail("cuLinkComplete", 1);
    assertThatThrownBy(() -> linker.complete(made))
        .hasMessageContaining("cuLinkComplete(state=0x76543210fedc): INVALID_VALUE (1)");
    assertThat(linker.getLinkedCubin(made)).isEmpty();
    library.fail("cuLinkDestroy", 400);
    assertThatThrownBy(() -> linker.destroy(made))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("cuLinkDestroy(state=0x76543210fedc): ");
    assertThat(library.retained(0)).isZero();
  }

  @Test
  void whatTheDriverCannotLink_isRefusedBeforeItIsCalled() {
    for (String lto : new String[] {"-lto", "-ptx"}) {
      assertThatThrownBy(() -> linker.create(List.of("-arch=sm_90", lto)))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("the driver's linker does not link LTO-IR");
    }
    for (String option : new String[] {"-ftz=1", "-maxrregcount=0", "-arch=90", "-O4", ""}) {
      assertThatThrownBy(() -> linker.create(List.of("-arch=sm_90", option)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("option: " + option + " (expected: one of -g");
    }
    assertThat(library.calls()).isEmpty();
    long made = linker.create(List.of("-arch=sm_90"));
    for (int type : new int[] {-1, 0, 3, 7}) {
      assertThatThrownBy(() -> linker.addData(made, type, bytes("x"), "x"))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("type: " + type);
    }
    assertThatThrownBy(() -> linker.getLinkedPtx(made))
        .isInstanceOf(UnsupportedOperationException.class);
    linker.destroy(made);
    assertThatThrownBy(() -> linker.complete(made)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> linker.destroy(made)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void driverThatIsNotThere_orHasNoDevice_isMissing() {
    library.devices(0);
    assertThatThrownBy(() -> linker.create(List.of("-arch=sm_90")))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("the driver's linker cannot be used: ")
        .hasMessageContaining("shows no device");
  }
}
