package io.cuvette.ffm.toolkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CompilerException;
import io.cuvette.driver.OptionalLibrary;
import io.cuvette.ffm.CCompiler;
import io.cuvette.ffm.link.SharedLibraries;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls of NVRTC reach it with each argument in place, and survive whatever it answers. */
class FfmCompilerTest {
  private StubToolkit stub;
  private FfmCompiler compiler;

  @BeforeEach
  void compileStub(@TempDir Path folder) throws Exception {
    stub = StubToolkit.compile(folder);
    compiler = stub.compiler();
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  @Test
  void program_isCompiled_withEachArgumentInPlace() {
    Map<String, String> headers = new TreeMap<>(Map.of("a.h", "int a;", "b.h", "int \u00e4;"));
    long program = compiler.createProgram("source \u20ac", "name.cu", headers);
    compiler.addNameExpression(program, "add<int>");
    compiler.compileProgram(program, List.of("--one", "--two=2"));
    String expected = "name.cu|source \u20ac|a.h=int a;;b.h=int \u00e4;;|--one --two=2 ";
    assertThat(text(compiler.getPtx(program))).isEqualTo(expected);
    assertThat(text(compiler.getCubin(program))).isEqualTo(expected + "\0");
    assertThat(text(compiler.getLtoIr(program))).isEqualTo(expected + "\0");
    assertThat(compiler.getProgramLog(program)).isEqualTo("the log");
    assertThat(compiler.getLoweredName(program, "add<int>")).isEqualTo("_Z7lowered");
    assertThat(stub.open()).isEqualTo(1);
    compiler.destroyProgram(program);
    assertThat(stub.open()).isZero();
    assertThat(compiler.version()).isEqualTo(13_010);
    assertThat(compiler.supportedArchitectures()).containsExactly(80, 90);
    assertThat(compiler.library()).isEqualTo(stub.file().toString());
  }

  @Test
  void statuses_areErrorsThatNameTheCall() {
    long program = compiler.createProgram("wrong", "n", Map.of());
    assertThatThrownBy(() -> compiler.compileProgram(program, List.of("--a")))
        .isInstanceOfSatisfying(CompilerException.class, e -> assertThat(e.code()).isEqualTo(6))
        .hasMessage("nvrtcCompileProgram(options=[--a]): NVRTC_ERROR_COMPILATION (6)");
    assertThatThrownBy(() -> compiler.getLoweredName(program, "f"))
        .hasMessageContaining("nvrtcGetLoweredName(program=")
        .hasMessageEndingWith("expression=f): NVRTC_ERROR_OF_STUB (10)");
    stub.set("nvrtcGetPTXSize", 99);
    assertThatThrownBy(() -> compiler.getPtx(program))
        .as("a status without a name")
        .hasMessage("nvrtcGetPTXSize:  (99)");
    stub.set("nvrtcDestroyProgram", 4);
    assertThatThrownBy(() -> compiler.destroyProgram(program))
        .isInstanceOf(CompilerException.class);
    stub.set("nvrtcCreateProgram", -1);
    assertThatThrownBy(() -> compiler.createProgram("s", "n", Map.of()))
        .isInstanceOf(CompilerException.class)
        .hasMessage("nvrtcCreateProgram(name=n, headers=[]): NVRTC_ERROR_OF_STUB (-1)");
  }

  @Test
  void logs_ofAnySize_areRead() {
    long program = compiler.createProgram("s", "n", Map.of());
    stub.set("log", 0);
    assertThat(compiler.getProgramLog(program)).isEmpty();
    stub.set("log", 1);
    assertThat(compiler.getProgramLog(program)).isEmpty();
    stub.set("log", 64L << 20);
    assertThat(compiler.getProgramLog(program)).hasSize((64 << 20) - 1).startsWith("the logx");
    stub.set("log", 100);
    stub.set("unterminated", 1);
    assertThat(compiler.getProgramLog(program)).hasSize(100).endsWith("x");
    for (long size : new long[] {-1, Long.MIN_VALUE, Integer.MAX_VALUE, Long.MAX_VALUE}) {
      stub.set("log", size);
      assertThatThrownBy(() -> compiler.getProgramLog(program))
          .isInstanceOf(CompilerException.class)
          .hasMessageStartingWith("nvrtcGetProgramLogSize: ")
          .hasMessageContaining(Long.toUnsignedString(size) + " bytes (expected: at most");
    }
    compiler.destroyProgram(program);
  }

  @Test
  void codeOfNoSize_isEmpty_andANameThatIsNoneToo() {
    long program = compiler.createProgram("s", "n", Map.of());
    compiler.addNameExpression(program, "f");
    stub.set("CUBIN", 0);
    stub.set("nameless", 1);
    assertThat(compiler.getCubin(program)).isEmpty();
    assertThat(compiler.getLoweredName(program, "f")).isEmpty();
    stub.set("architectures", 1 << 30);
    assertThatThrownBy(compiler::supportedArchitectures)
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("1073741824 architectures (expected: 1 to 1000)");
    compiler.destroyProgram(program);
  }

  @Test
  void manyThreads_compileAtOnce() throws Exception {
    List<Callable<Void>> all = new ArrayList<>();
    for (int thread = 0; thread < 8; thread++) {
      String source = "source " + thread;
      all.add(() -> {
        for (int i = 0; i < 200; i++) {
          long program = compiler.createProgram(source, "n", Map.of());
          compiler.compileProgram(program, List.of("--x"));
          assertThat(text(compiler.getPtx(program))).isEqualTo("n|" + source + "||--x ");
          compiler.destroyProgram(program);
        }
        return null;
      });
    }
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      for (Future<Void> each : threads.invokeAll(all)) {
        each.get();
      }
    }
    assertThat(stub.open()).isZero();
  }

  @Test
  void libraryThatIsTooOld_orNone_isNamed(@TempDir Path folder) throws Exception {
    StubToolkit old = StubToolkit.compile(folder, "OLD_LINKER");
    old.set("major", 11);
    old.set("minor", 8);
    assertThatThrownBy(old::compiler)
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith(old.file() + " is NVRTC 11.8 (expected: 12.0 or newer); install");
    assertThatThrownBy(old::linker)
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("is no nvJitLink that can be used: it lacks nvJitLinkVersion");
    old.set("major", 12);
    old.set("minor", 0);
    assertThat(old.compiler().version()).as("the oldest").isEqualTo(12_000);
    old.set("nvrtcVersion", 3);
    assertThatThrownBy(old::compiler).isInstanceOf(CompilerException.class);
    Path text = Files.writeString(folder.resolve("libtext.so"), "no library");
    assertThatThrownBy(() ->
            StubToolkit.with(
                Nvrtc.PROPERTY,
                text.toString(),
                () -> new FfmCompiler(new OnFirstUse<>(Nvrtc::load))))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith("NVRTC cannot be loaded, -Dcuvette.nvrtc=" + text)
        .hasMessageContaining("file too short")
        .hasMessageContaining("; install cuda-nvrtc");
    assertThatThrownBy(() ->
            StubToolkit.with(
                Nvrtc.PROPERTY, "", () -> new FfmCompiler(new OnFirstUse<>(Nvrtc::load))))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith("NVRTC cannot be loaded, -Dcuvette.nvrtc=; install");
  }

  @Test
  void architectures_areOneToAThousand() {
    for (int count : new int[] {1, 1_000}) {
      stub.set("architectures", count);
      assertThat(compiler.supportedArchitectures()).hasSize(count).startsWith(80);
    }
    for (int count : new int[] {-1, 0, 1_001}) {
      stub.set("architectures", count);
      assertThatThrownBy(compiler::supportedArchitectures)
          .isInstanceOf(CompilerException.class)
          .hasMessage("nvrtcGetNumSupportedArchs(): %d architectures (expected: 1 to 1000)", count);
    }
  }

  @Test
  void codeWithoutAnyByte_isEmpty() {
    long program = compiler.createProgram("s", "n", Map.of());
    stub.set("PTX", 0);
    assertThat(compiler.getPtx(program)).isEmpty();
    compiler.destroyProgram(program);
  }

  @Test
  void codeWithoutAnyByte_isNotAskedFor() {
    long program = compiler.createProgram("s", "n", Map.of());
    Map<String, Supplier<byte[]>> codes =
        Map.of(
            "PTX", () -> compiler.getPtx(program),
            "CUBIN", () -> compiler.getCubin(program),
            "LTOIR", () -> compiler.getLtoIr(program));
    codes.forEach((name, code) -> {
      stub.set("nvrtcGet" + name, 5);
      assertThatThrownBy(code::get).isInstanceOf(CompilerException.class);
      stub.set(name, 0);
      assertThat(code.get()).isEmpty();
    });
    stub.set("nvrtcGetProgramLog", 5);
    stub.set("log", 0);
    assertThat(compiler.getProgramLog(program)).isEmpty();
    compiler.destroyProgram(program);
  }

  @Test
  void eachFunctionThatFails_isNamedWithItsStatus() {
    long program = compiler.createProgram("s", "n", Map.of());
    compiler.addNameExpression(program, "f");
    Map<String, ThrowingCallable> calls =
        Map.ofEntries(
            Map.entry("nvrtcGetNumSupportedArchs", compiler::supportedArchitectures),
            Map.entry("nvrtcGetSupportedArchs", compiler::supportedArchitectures),
            Map.entry("nvrtcCreateProgram", () -> compiler.createProgram("s", "n", Map.of())),
            Map.entry("nvrtcAddNameExpression", () -> compiler.addNameExpression(program, "f")),
            Map.entry("nvrtcCompileProgram", () -> compiler.compileProgram(program, List.of())),
            Map.entry("nvrtcGetProgramLogSize", () -> compiler.getProgramLog(program)),
            Map.entry("nvrtcGetProgramLog", () -> compiler.getProgramLog(program)),
            Map.entry("nvrtcGetPTXSize", () -> compiler.getPtx(program)),
            Map.entry("nvrtcGetPTX", () -> compiler.getPtx(program)),
            Map.entry("nvrtcGetCUBINSize", () -> compiler.getCubin(program)),
            Map.entry("nvrtcGetCUBIN", () -> compiler.getCubin(program)),
            Map.entry("nvrtcGetLTOIRSize", () -> compiler.getLtoIr(program)),
            Map.entry("nvrtcGetLTOIR", () -> compiler.getLtoIr(program)),
            Map.entry("nvrtcGetLoweredName", () -> compiler.getLoweredName(program, "f")),
            Map.entry("nvrtcDestroyProgram", () -> compiler.destroyProgram(program)));
    calls.forEach((function, call) -> {
      if (!function.equals("nvrtcDestroyProgram")) {
        fails(function, call);
      }
    });
    fails("nvrtcDestroyProgram", calls.get("nvrtcDestroyProgram"));
  }

  private void fails(String function, ThrowingCallable call) {
    for (int status : new int[] {11, -3}) {
      stub.set(function, status);
      assertThatThrownBy(call)
          .as(function)
          .isInstanceOfSatisfying(
              CompilerException.class, e -> assertThat(e.code()).isEqualTo(status))
          .hasMessageStartingWith(function)
          .hasMessageNotContaining("%")
          .hasMessageEndingWith(": NVRTC_ERROR_OF_STUB (%d)", status);
      if (function.equals("nvrtcDestroyProgram")) {
        return; // the program is gone
      }
    }
    stub.set(function, 0);
    assertThatCode(call).as(function).doesNotThrowAnyException();
  }

  /** A loader that knows a library by its name alone finds what lies beside it as well. */
  @Test
  @EnabledOnOs(value = OS.LINUX, disabledReason = "names of libraries")
  void libraryThatIsKnownByItsNameAlone_isLoaded(@TempDir Path folder) throws Exception {
    String name = "libcuvette-nvrtc-by-name.so.13";
    Path source = folder.resolve("stub_toolkit.c");
    try (InputStream text = CCompiler.class.getResourceAsStream("stub_toolkit.c")) {
      Files.write(source, text.readAllBytes());
    }
    Path file =
        CCompiler.compile(
            source, folder.resolve("libany.so"), "-shared", "-fPIC", "-Wl,-soname," + name);
    assertThat(SharedLibraries.find(file.toString())).isPresent();
    FfmCompiler known =
        StubToolkit.with(
            Nvrtc.PROPERTY, name, () -> new FfmCompiler(new OnFirstUse<>(Nvrtc::load)));
    assertThat(known.version()).isEqualTo(13_010);
    assertThat(known.library()).isEqualTo(name);
  }

  /** Of one that is in no folder that is looked through. */
  @Test
  @EnabledOnOs(value = OS.LINUX, disabledReason = "names of libraries")
  void versionOfALibrary_isFoundByItsName(@TempDir Path folder) throws Exception {
    String name = "libcuvette-by-version.so";
    OptionalLibrary library = new OptionalLibrary("test", name, "none_", "nothing");
    Path source = Files.writeString(folder.resolve("any.c"), "int any(void) { return 1; }\n");
    Path file =
        CCompiler.compile(
            source, folder.resolve("any.so"), "-shared", "-fPIC", "-Wl,-soname," + name + ".12");
    assertThat(SharedLibraries.find(file.toString())).isPresent();
    assertThat(ToolLibrary.load(library, "cuvette.of.no.library").file()).isEqualTo(name + ".12");
  }

  @Test
  void libraryThatIsNowhere_saysWhereItWasLookedFor() {
    OptionalLibrary none = new OptionalLibrary("test", "libcuvettenone.so", "none_", "nothing");
    assertThatThrownBy(() -> ToolLibrary.load(none, "cuvette.of.no.library"))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith("test is missing: no file libcuvettenone.so* in ")
        .hasMessageEndingWith("; install nothing");
  }

  @Test
  @EnabledOnOs(value = OS.LINUX, disabledReason = "folders of libraries")
  void fileThatIsNoLibrary_isNamed_withWhatTheLoaderSays() {
    Path text = Path.of("/usr/lib/os-release");
    assumeTrue(Files.isRegularFile(text), "another system");
    OptionalLibrary none = new OptionalLibrary("test", "os-release", "none_", "nothing");
    assertThatThrownBy(() -> ToolLibrary.load(none, "cuvette.of.no.library"))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith("test cannot be loaded: /")
        .hasMessageContaining("/os-release: ")
        .hasMessageEndingWith("; install nothing");
  }

  private static <T> Future<T> start(Callable<T> call) {
    FutureTask<T> task = new FutureTask<>(call);
    Thread.ofPlatform().daemon().start(task);
    return task;
  }

  /** A failure is the next one's to try again, and keeps nobody out. */
  @Test
  void whatIsMadeOnFirstUse_isMadeOnce_alsoAfterAFailure_byAnyThread() throws Exception {
    AtomicInteger made = new AtomicInteger();
    OnFirstUse<Integer> number =
        new OnFirstUse<>(() -> {
          if (made.incrementAndGet() < 3) {
            throw new IllegalStateException("not yet");
          }
          return made.get();
        });
    for (int i = 0; i < 2; i++) {
      Future<Integer> failing = start(number::get);
      assertThatThrownBy(() -> failing.get(60, TimeUnit.SECONDS)).hasMessageContaining("not yet");
    }
    for (int i = 0; i < 3; i++) {
      assertThat(start(number::get).get(60, TimeUnit.SECONDS)).isEqualTo(3);
    }
    assertThat(made).hasValue(3);
  }

  /** The compiler asks for it by its name alone, which finds what is loaded. */
  @ParameterizedTest
  @CsvSource({"12, 8", "13, 0"})
  @EnabledOnOs(value = OS.LINUX, disabledReason = "what is loaded is read from /proc")
  void builtins_besideTheLibrary_areLoadedWithIt(int major, int minor, @TempDir Path folder)
      throws Exception {
    StubToolkit other = StubToolkit.compile(folder);
    Path source = Files.writeString(folder.resolve("none.c"), "int none_at_all = 1;\n");
    String name = "libnvrtc-builtins.so.%d.%d".formatted(major, minor);
    Path builtins = CCompiler.compile(source, folder.resolve(name), "-shared", "-fPIC");
    other.set("major", major);
    other.set("minor", minor);
    assertThat(other.compiler().version()).isEqualTo(1000 * major + 10 * minor);
    assertThat(Files.readString(Path.of("/proc/self/maps")))
        .contains(builtins.toRealPath().toString());
  }
}
