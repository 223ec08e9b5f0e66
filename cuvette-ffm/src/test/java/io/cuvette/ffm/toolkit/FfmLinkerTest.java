package io.cuvette.ffm.toolkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CompilerException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
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

  @Test
  void eachFunctionThatFails_isNamedWithItsStatus() {
    long handle = linker.create(List.of());
    Map<String, ThrowingCallable> calls = new LinkedHashMap<>();
    calls.put("nvJitLinkAddData", () -> linker.addData(handle, 1, new byte[3], "in"));
    calls.put("nvJitLinkComplete", () -> linker.complete(handle));
    calls.put("nvJitLinkGetLinkedCubinSize", () -> linker.getLinkedCubin(handle));
    calls.put("nvJitLinkGetLinkedCubin", () -> linker.getLinkedCubin(handle));
    calls.put("nvJitLinkGetLinkedPtxSize", () -> linker.getLinkedPtx(handle));
    calls.put("nvJitLinkGetLinkedPtx", () -> linker.getLinkedPtx(handle));
    calls.put("nvJitLinkGetErrorLogSize", () -> linker.getErrorLog(handle));
    calls.put("nvJitLinkGetErrorLog", () -> linker.getErrorLog(handle));
    calls.put("nvJitLinkGetInfoLogSize", () -> linker.getInfoLog(handle));
    calls.put("nvJitLinkGetInfoLog", () -> linker.getInfoLog(handle));
    linker.addData(handle, 1, new byte[] {'x'}, "in"); // so that there is something
    calls.forEach((function, call) -> {
      stub.set(function, 5);
      assertThatThrownBy(call)
          .as(function)
          .isInstanceOfSatisfying(CompilerException.class, e -> assertThat(e.code()).isEqualTo(5))
          .hasMessageStartingWith(function)
          .hasMessageEndingWith(": NVJITLINK_ERROR_NVVM_COMPILE (5)");
      stub.set(function, 0);
      assertThatCode(call).as(function).doesNotThrowAnyException();
    });
    linker.destroy(handle);
  }

  @Test
  void statuses_haveTheNamesOfTheHeader() {
    assertThat(IntStream.range(0, 19).mapToObj(NvJitLink::statusName))
        .startsWith("NVJITLINK_SUCCESS", "NVJITLINK_ERROR_UNRECOGNIZED_OPTION")
        .endsWith("NVJITLINK_ERROR_UNSUPPORTED_ARCH", "NVJITLINK_ERROR_LTO_NOT_ENABLED")
        .doesNotHaveDuplicates();
    for (int other : new int[] {-1, 19, 20, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
      assertThat(NvJitLink.statusName(other)).isEqualTo("an unknown nvJitLinkResult");
    }
  }

  /** Whatever else fails about one that was made for its log alone, it goes. */
  @Test
  void linkerThatCannotBeCreated_isDestroyed_alsoIfItsLogCannotBeRead() {
    stub.set("nvJitLinkCreate", 17);
    for (String log : List.of("nvJitLinkGetErrorLogSize", "nvJitLinkGetErrorLog")) {
      stub.set(log, 6);
      assertThatThrownBy(() -> linker.create(List.of()))
          .hasMessageContaining("UNSUPPORTED_ARCH (17)")
          .hasMessageContaining(log)
          .hasMessageContaining("NVJITLINK_ERROR_INTERNAL (6)");
      assertThat(stub.open()).isZero();
      stub.set(log, 0);
    }
    stub.set("nvJitLinkDestroy", 2);
    assertThatThrownBy(() -> linker.create(List.of()))
        .hasMessageContaining("UNSUPPORTED_ARCH (17)")
        .hasMessageContaining("the errors")
        .hasMessageContaining("NVJITLINK_ERROR_MISSING_ARCH (2)");
  }
}
