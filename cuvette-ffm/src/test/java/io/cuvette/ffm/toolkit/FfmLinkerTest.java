package io.cuvette.ffm.toolkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CompilerException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Calls of nvJitLink reach it with each argument in place, and survive whatever it answers. */
class FfmLinkerTest {
  private StubToolkit stub;
  private FfmLinker linker;

  @BeforeEach
  void compileStub(@TempDir Path folder) throws Exception {
    stub = StubToolkit.compile(folder);
    linker = stub.linker();
  }

  @Test
  void inputs_areLinked_withEachArgumentInPlace() {
    long handle = linker.create(List.of("-arch=sm_90", "-lto"));
    linker.addData(handle, 2, "one".getBytes(StandardCharsets.UTF_8), "first");
    linker.addData(handle, 3, "two".getBytes(StandardCharsets.UTF_8), "second");
    linker.complete(handle);
    String expected = "-arch=sm_90 -lto first:2:3:one second:3:3:two ";
    assertThat(new String(linker.getLinkedPtx(handle), StandardCharsets.UTF_8)).isEqualTo(expected);
    assertThat(new String(linker.getLinkedCubin(handle), StandardCharsets.UTF_8))
        .isEqualTo(expected + "\0");
    assertThat(linker.getErrorLog(handle)).isEqualTo("the errors");
    assertThat(linker.getInfoLog(handle)).isEqualTo("the infos");
    linker.destroy(handle);
    assertThat(stub.open()).isZero();
    assertThat(linker.version()).isEqualTo(13_010);
    assertThat(linker.library()).isEqualTo(stub.file().toString());
  }

  /** The library makes a linker for the log alone, which must go. */
  @Test
  void linkerThatCannotBeCreated_isAnErrorWithItsLog_andLeavesNothing() {
    stub.set("nvJitLinkCreate", 17);
    assertThatThrownBy(() -> linker.create(List.of("-arch=sm_50")))
        .isInstanceOfSatisfying(
            CompilerException.class, e -> assertThat(e.log()).isEqualTo("the errors"))
        .hasMessage(
            "nvJitLinkCreate(options=[-arch=sm_50]): NVJITLINK_ERROR_UNSUPPORTED_ARCH (17)\n"
                + "the errors");
    assertThat(stub.open()).isZero();
    stub.set("nvJitLinkGetErrorLogSize", 6);
    assertThatThrownBy(() -> linker.create(List.of()))
        .hasMessageContaining("UNSUPPORTED_ARCH (17)")
        .hasMessageContaining("NVJITLINK_ERROR_INTERNAL (6)");
    stub.set("without", 1);
    assertThatThrownBy(() -> linker.create(List.of()))
        .hasMessage("nvJitLinkCreate(options=[]): NVJITLINK_ERROR_UNSUPPORTED_ARCH (17)");
  }

  @Test
  void statuses_areErrorsThatNameTheCall() {
    long handle = linker.create(List.of());
    stub.set("nvJitLinkAddData", 12);
    assertThatThrownBy(() -> linker.addData(handle, 1, new byte[3], "in"))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining(
            "type=1, bytes=3, name=in): NVJITLINK_ERROR_INCORRECT_INPUT_TYPE (12)");
    stub.set("nvJitLinkComplete", 77);
    assertThatThrownBy(() -> linker.complete(handle))
        .hasMessageEndingWith("an unknown nvJitLinkResult (77)");
    stub.set("LinkedCubin", -5);
    assertThatThrownBy(() -> linker.getLinkedCubin(handle))
        .hasMessageContaining("bytes (expected: at most");
    stub.set("nvJitLinkDestroy", 6);
    assertThatThrownBy(() -> linker.destroy(handle)).isInstanceOf(CompilerException.class);
  }

  @Test
  void anEmptyInput_isPassed() {
    long handle = linker.create(List.of());
    linker.addData(handle, 2, new byte[0], "none");
    assertThat(new String(linker.getLinkedPtx(handle), StandardCharsets.UTF_8))
        .isEqualTo("none:2:0: ");
    linker.destroy(handle);
  }

  @Test
  void linkerThatDoesNotTellItsVersion_isNotUsed(@TempDir Path folder) throws Exception {
    StubToolkit other = StubToolkit.compile(folder);
    other.set("nvJitLinkVersion", 6);
    assertThatThrownBy(other::linker)
        .isInstanceOf(CompilerException.class)
        .hasMessage("nvJitLinkVersion(): NVJITLINK_ERROR_INTERNAL (6)");
  }
}
