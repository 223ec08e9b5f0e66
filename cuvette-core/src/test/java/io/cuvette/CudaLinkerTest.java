package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.KernelCode.Kind;
import io.cuvette.driver.CompilerException;
import io.cuvette.driver.LinkerCalls;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CudaLinkerTest {
  private static final KernelCode LTO = KernelCode.of(Kind.LTOIR, new byte[] {1});
  private static final KernelCode PTX = KernelCode.of(Kind.PTX, new byte[] {2});

  private final Scripted calls = new Scripted();
  private final CudaLinker linker = new CudaLinker(LinkerOptions.of("sm_90"));

  /** A linker that "links" to text that says what it was given. */
  private static final class Scripted implements LinkerCalls {
    private final List<String> noted = new ArrayList<>();
    private Set<String> failing = Set.of();
    private String missing = "";
    private int status = 6;
    private int open;
    private String result = "result";

    private void note(String call, String what) {
      noted.add(call + " " + what);
      if (failing.contains(call)) {
        throw new CompilerException(call + "()", status, "NVJITLINK_ERROR_OF_TEST", "");
      }
    }

    @Override
    public String library() {
      return "scripted";
    }

    @Override
    public int version() {
      return 12_090;
    }

    @Override
    public long create(List<String> options) {
      if (!missing.isEmpty()) {
        throw new UnsupportedOperationException(missing);
      }
      note("create", options.toString());
      open++;
      return 7;
    }

    @Override
    public void destroy(long handle) {
      open--;
      note("destroy", "" + handle);
    }

    @Override
    public void addData(long handle, int type, byte[] data, String name) {
      note("add", type + " " + data[0] + " " + name);
    }

    @Override
    public void complete(long handle) {
      note("complete", "");
    }

    @Override
    public byte[] getLinkedCubin(long handle) {
      note("get", "cubin");
      return result.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public byte[] getLinkedPtx(long handle) {
      note("get", "ptx");
      return result.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String getErrorLog(long handle) {
      note("log", "errors");
      return "errors\n";
    }

    @Override
    public String getInfoLog(long handle) {
      return "infos\n";
    }
  }

  @Test
  void inputs_areGivenInTheirOrder_withTheirKinds() {
    List<KernelCode> inputs = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      inputs.add(KernelCode.of(kind, new byte[] {9}));
    }
    KernelCode code = linker.link(Kind.CUBIN, inputs, calls);
    assertThat(code)
        .isEqualTo(
            new KernelCode(
                Kind.CUBIN,
                "result".getBytes(StandardCharsets.UTF_8),
                "errors\ninfos\n",
                Map.of()));
    assertThat(calls.noted)
        .containsExactly(
            "create [-arch=sm_90, -lto]",
            "add 2 9 input 1 of 6",
            "add 1 9 input 2 of 6",
            "add 4 9 input 3 of 6",
            "add 3 9 input 4 of 6",
            "add 5 9 input 5 of 6",
            "add 6 9 input 6 of 6",
            "complete ",
            "get cubin",
            "log errors",
            "destroy 7");
  }

  @Test
  void linksOfIntermediateCode_areAskedFor_whereThereIsSome() {
    for (Kind kind : Kind.values()) {
      calls.noted.clear();
      KernelCode _ = linker.link(Kind.CUBIN, List.of(KernelCode.of(kind, new byte[] {9})), calls);
      assertThat(calls.noted)
          .startsWith(kind == Kind.LTOIR ? "create [-arch=sm_90, -lto]" : "create [-arch=sm_90]");
    }
  }

  @Test
  void options_areArgumentsOfTheLinker_andNamesAreKnownOfTheResult() {
    LinkerOptions options =
        LinkerOptions.of(new ComputeCapability(9, 0))
            .withDebug(true)
            .withLineInfo(true)
            .withVerbose(true)
            .withOptimization(3)
            .withOptimization(1)
            .withMaxRegisters(32)
            .withFlushToZero(true)
            .withPreciseDivision(false)
            .withPreciseRoot(false)
            .withFusedMultiplyAdd(true)
            .withArgument("-kernels-used=f")
            .withDebug(false);
    KernelCode named = new KernelCode(Kind.LTOIR, new byte[] {1}, "", Map.of("f<int>", "_Z1f"));
    KernelCode code = new CudaLinker(options).link(Kind.PTX, List.of(named, LTO), calls);
    assertThat(code.loweredName("f<int>")).isEqualTo("_Z1f");
    assertThat(calls.noted)
        .contains("get ptx")
        .startsWith(
            "create [-arch=sm_90, -lto, -ptx, -lineinfo, -verbose, -O1, -maxrregcount=32, -ftz=1,"
                + " -prec-div=0, -prec-sqrt=0, -fma=1, -kernels-used=f]");
  }

  @Test
  void kindThatNothingIsLinkedTo_isNamed() {
    for (Kind kind : Kind.values()) {
      if (kind != Kind.CUBIN && kind != Kind.PTX) {
        assertThatThrownBy(() -> linker.link(kind, List.of(LTO), calls))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage("kind: %s (expected: CUBIN or PTX, which nvJitLink links to)", kind);
      }
    }
    assertThat(calls.noted).isEmpty();
  }

  @Test
  void everySwitch_canBeOnAndOff() {
    for (boolean on : new boolean[] {true, false}) {
      LinkerOptions options =
          LinkerOptions.of("sm_90")
              .withFlushToZero(on)
              .withPreciseDivision(on)
              .withPreciseRoot(on)
              .withFusedMultiplyAdd(on);
      String set = on ? "1" : "0";
      assertThat(options.flags())
          .isEqualTo(Map.of("-ftz", set, "-prec-div", set, "-prec-sqrt", set, "-fma", set));
    }
  }

  /** Options are checked once: nobody can put others in later, nor lines into one. */
  @Test
  void flags_areCopied_andCannotBeChanged_andAreOneLineEach() {
    Map<String, String> given = new LinkedHashMap<>(Map.of("-lineinfo", ""));
    LinkerOptions options = new LinkerOptions("sm_90", given, List.of());
    given.put("-g", "");
    assertThat(options.flags()).containsOnlyKeys("-lineinfo");
    assertThatThrownBy(() -> options.flags().put("-g", ""))
        .isInstanceOf(UnsupportedOperationException.class);
    assertThatThrownBy(() -> options.arguments().add("-g"))
        .isInstanceOf(UnsupportedOperationException.class);
    for (String value : List.of("1\n", "1\r2", "\0")) {
      Map<String, String> flags = Map.of("-maxrregcount", value);
      assertThatThrownBy(() -> new LinkerOptions("sm_90", flags, List.of()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("value of -maxrregcount: ");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"create", "add", "complete", "get"})
  void anyCallThatFails_isAnErrorWithTheLog_andLeavesNothingOpen(String call) {
    calls.failing = Set.of(call);
    assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(PTX), calls))
        .isInstanceOfSatisfying(
            CompilerException.class,
            e ->
                assertThat(e.log())
                    .isEqualTo(Set.of("create", "get").contains(call) ? "" : "errors\ninfos\n"))
        .hasMessageContaining(call + "()");
    assertThat(calls.open).isZero();
  }

  @Test
  void inputOfANewerCompiler_isExplained() {
    calls.failing = Set.of("complete");
    for (int status : new int[] {5, 14}) {
      calls.status = status;
      assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(LTO), calls))
          .hasMessageContaining("errors\ninfos\n")
          .hasMessageContaining("This is nvJitLink 12.9, scripted: it links what compilers up to");
    }
    calls.failing = Set.of("complete", "log");
    assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(LTO), calls))
        .hasMessageContaining("complete()")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
  }

  @Test
  void linkerThatCannotBeDestroyed_hasLinkedAllTheSame_andOneThatGivesNothingIsAnError() {
    calls.failing = Set.of("destroy");
    assertThat(linker.link(Kind.CUBIN, List.of(PTX), calls).size()).isEqualTo(6);
    calls.result = "";
    assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(PTX), calls))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("gives no CUBIN");
  }

  @Test
  void badInput_isRefusedBeforeAnythingIsLinked() {
    assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(), calls))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("inputs: none (expected: at least 1)");
    assertThatThrownBy(() -> linker.link(Kind.FATBIN, List.of(PTX), calls))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("CUBIN or PTX");
    assertThatThrownBy(() -> linker.link(Kind.PTX, List.of(PTX, LTO), calls))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("PTX at index 0");
    assertThatThrownBy(() -> linker.link(Kind.PTX, List.of(LTO, PTX), calls))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("inputs: PTX at index 1 (expected: LTOIR alone, to link to PTX)");
    for (String architecture : new String[] {"sm_1", "sm_9", "sm_0", "90", "sm_90\n"}) {
      assertThatThrownBy(() -> LinkerOptions.of(architecture))
          .isInstanceOf(IllegalArgumentException.class);
    }
    LinkerOptions options = linker.options();
    for (String argument : new String[] {"-arch=sm_1", "-lto", "-ptx", "a", "", "-a\n-b"}) {
      assertThatThrownBy(() -> options.withArgument(argument))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> options.withOptimization(4)).hasMessage("level: 4 (expected: 0 to 3)");
    assertThatThrownBy(() -> options.withMaxRegisters(0)).hasMessageContaining("1 to 255");
    for (String flag : new String[] {"-arch", "-lto", "-ptx", "g", "-", "-1", "-a b", ""}) {
      assertThatThrownBy(() -> new LinkerOptions("sm_90", Map.of(flag, ""), List.of()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("flags: '%s' (expected: such as -lineinfo)".formatted(flag));
    }
    assertThat(calls.noted).isEmpty();
  }

  @Test
  void firstLinkerThatIsThere_andCan_links() {
    Scripted absent = new Scripted();
    absent.missing = "nvJitLink is not found";
    assertThat(linker.linkByFirst(Kind.CUBIN, List.of(PTX), List.of(absent, calls)).size())
        .isEqualTo(6);
    assertThat(absent.noted).isEmpty();
    assertThat(calls.noted).contains("complete ");
    Scripted unused = new Scripted();
    linker.linkByFirst(Kind.CUBIN, List.of(PTX), List.of(calls, unused));
    assertThat(unused.noted).isEmpty();
  }

  @Test
  void linkersThatAreMissing_areOneErrorThatNamesEach() {
    Scripted absent = new Scripted();
    absent.missing = "nvJitLink is not found";
    calls.missing = "the driver's linker does not link LTO-IR";
    assertThatThrownBy(() -> linker.linkByFirst(Kind.CUBIN, List.of(LTO), List.of(absent, calls)))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessage("nvJitLink is not found; and the driver's linker does not link LTO-IR");
    assertThatThrownBy(() -> linker.linkByFirst(Kind.CUBIN, List.of(LTO), List.of()))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("add io.cuvette.ffm (artifact cuvette-ffm)");
  }
}
