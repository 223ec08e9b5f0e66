package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CompilerException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CudaProgramTest {
  private final ScriptedCompiler compiler = new ScriptedCompiler();

  private static CudaProgram program(String source) {
    return CudaProgram.of(source).withCache(ProgramCache.none());
  }

  private KernelCode compile(CudaProgram program) {
    return program.compile(KernelCode.Kind.PTX, compiler);
  }

  @Test
  void compiledProgram_hasCodeLogAndNames_andLeavesNothingOpen() {
    compiler.log = "a warning\n";
    CompilerOptions options = CompilerOptions.DEFAULTS.withNameExpression("add<int>");
    KernelCode code = compile(program("source").withOptions(options));
    assertThat(code.text()).isEqualTo("code");
    assertThat(code.log()).isEqualTo("a warning\n");
    assertThat(code.loweredName("add<int>")).isEqualTo("_Z8addint");
    assertThatThrownBy(() -> code.loweredName("add<float>"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("add<float>")
        .hasMessageContaining("[add<int>]");
    assertThat(compiler.open()).isZero();
  }

  @Test
  void programThatDoesNotCompile_isAnErrorWithItsLog() {
    compiler.failing = Set.of("compile");
    compiler.log = "program.cu(1): error\n" + "x".repeat(100_000);
    assertThatThrownBy(() -> compile(program("wrong")))
        .isInstanceOfSatisfying(
            CompilerException.class,
            e -> {
              assertThat(e.log()).isEqualTo(compiler.log);
              assertThat(e.code()).isEqualTo(9);
              assertThat(e.status()).isEqualTo("NVRTC_ERROR_OF_TEST");
              assertThat(e.getMessage().length()).isLessThan(5_000);
            })
        .hasMessageContaining("program.cu(1): error")
        .hasMessageContaining("more characters in log()");
    assertThat(compiler.open()).isZero();
  }

  @ParameterizedTest
  @ValueSource(strings = {"create", "expression", "compile", "get", "log", "lowered"})
  void anyCallThatFails_isAnError_andLeavesNothingOpen(String call) {
    compiler.failing = Set.of(call);
    CudaProgram program =
        program("source").withOptions(CompilerOptions.DEFAULTS.withNameExpression("f"));
    assertThatThrownBy(() -> compile(program))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining(call + "()");
    assertThat(compiler.open()).isZero();
  }

  @Test
  void logThatCannotBeRead_doesNotHideTheError() {
    compiler.failing = Set.of("compile", "log");
    assertThatThrownBy(() -> compile(program("source")))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("compile()")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
  }

  @Test
  void programThatCannotBeDestroyed_isCompiledAllTheSame() {
    compiler.failing = Set.of("destroy");
    assertThat(compile(program("source")).text()).isEqualTo("code");
  }

  @Test
  void compilerThatGivesNothing_isAnError() {
    compiler.code = new byte[0];
    CompilerOptions options = CompilerOptions.DEFAULTS.withDefine("WORD");
    assertThatThrownBy(() -> compile(program("source").withOptions(options)))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("options=" + options.arguments(KernelCode.Kind.PTX))
        .hasMessageContaining("gives no PTX");
  }

  @Test
  void badSource_isRefusedBeforeAnythingIsCompiled() {
    assertThatThrownBy(() -> CudaProgram.of(" \n"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("source: blank (expected: CUDA C++)");
    assertThatThrownBy(() -> CudaProgram.of("int a;\nint \0b;"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("character 0 at index 11, line 2");
    assertThatThrownBy(() -> CudaProgram.of("// \ud800"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("half of a surrogate pair at index 3, line 1");
    assertThat(CudaProgram.of("// \ud83d\ude00").source()).hasSize(5);
    assertThatThrownBy(() -> CudaProgram.of("int a;").withName("a\nb"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("name: 'a\\nb' (expected: no line break)");
  }

  @Test
  void badOptions_areRefusedBeforeAnythingIsCompiled() {
    CompilerOptions options = CompilerOptions.DEFAULTS;
    for (String name : new String[] {"sm_9", "sm_", "90", "sm_90x", "sm_090", "sm_1000", ""}) {
      assertThatThrownBy(() -> options.withArchitecture(name))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("architecture: '" + name + "' (expected: such as sm_90");
    }
    assertThatThrownBy(
            () -> compile(program("source").withOptions(options.withArchitecture("sm_123"))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "architecture: 'sm_123' (expected: one of sm_80, sm_90, which NVRTC 13.0 compiles"
                + " for)");
    assertThatThrownBy(() -> options.withStandard("20"))
        .hasMessage("standard: '20' (expected: such as c++17 or c++20)");
    assertThatThrownBy(() -> options.withDefine("1x")).hasMessageContaining("a name of C++");
    assertThatThrownBy(() -> options.withDefine("x", "1\n2"))
        .hasMessage("value: '1\\n2' (expected: no line break)");
    assertThatThrownBy(() -> options.withArgument("--a\r--b"))
        .hasMessageContaining("no line break");
    assertThatThrownBy(() -> options.withArgument("-I/tmp"))
        .hasMessageContaining("none for macros");
    assertThatThrownBy(() -> options.withArgument("file.cu")).hasMessageContaining("begins with");
    assertThatThrownBy(() -> options.withMaxRegisters(256))
        .hasMessage("registers: 256 (expected: 1 to 255)");
    Path none = Path.of("/none/of/these");
    assertThatThrownBy(
            () -> compile(program("source").withOptions(options.withIncludeFolder(none))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("include folder: /none/of/these (expected: a folder)");
    assertThat(compiler.compilations).hasValue(0);
  }

  @Test
  void versionOfTheCompiler_isSaidWithItsMinor() {
    CompilerOptions options = CompilerOptions.DEFAULTS.withArchitecture("sm_123");
    Map<Integer, String> versions =
        Map.of(12_000, "12.0", 12_010, "12.1", 12_090, "12.9", 13_020, "13.2", 14_110, "14.11");
    versions.forEach((version, text) -> {
      compiler.version = version;
      assertThatThrownBy(() -> compile(program("source").withOptions(options)))
          .hasMessageEndingWith(", which NVRTC " + text + " compiles for)");
    });
  }

  @Test
  void kindsThatAreNotCompiledTo_areRefused() {
    assertThatThrownBy(() -> program("source").compile(KernelCode.Kind.CUBIN, compiler))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("CUBIN without an architecture");
    assertThatThrownBy(() -> program("source").compile(KernelCode.Kind.FATBIN, compiler))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("PTX, CUBIN or LTOIR");
  }

  @Test
  void options_areArgumentsOfTheCompiler() {
    CompilerOptions options =
        CompilerOptions.DEFAULTS
            .withArchitecture(new ComputeCapability(9, 0))
            .withStandard("c++17")
            .withStandard("c++20")
            .withDebug(true)
            .withDebug(false)
            .withLineInfo(true)
            .withFastMath(true)
            .withFlushToZero(true)
            .withPreciseDivision(false)
            .withPreciseRoot(false)
            .withFusedMultiplyAdd(true)
            .withMaxRegisters(64)
            .withRelocatableCode(true)
            .withDefaultDevice(true)
            .withRestrict(true)
            .withWarningsDisabled(true)
            .withDefine("A")
            .withDefine("F(x)", "x + 1")
            .withUndefine("B")
            .withAssemblerOption("--verbose")
            .withArgument("--diag-suppress=177")
            .withIncludeFolder(Path.of("/opt/../usr"));
    assertThat(options.arguments(KernelCode.Kind.CUBIN))
        .containsExactly(
            "--gpu-architecture=sm_90",
            "--std=c++20",
            "--generate-line-info",
            "--use_fast_math",
            "--ftz=true",
            "--prec-div=false",
            "--prec-sqrt=false",
            "--fmad=true",
            "--maxrregcount=64",
            "--relocatable-device-code=true",
            "--device-as-default-execution-space",
            "--restrict",
            "--disable-warnings",
            "--define-macro=A",
            "--define-macro=F(x)=x + 1",
            "--undefine-macro=B",
            "--ptxas-options=--verbose",
            "--diag-suppress=177",
            "--include-path=/usr");
    assertThat(options.arguments(KernelCode.Kind.PTX)).contains("--gpu-architecture=compute_90");
    assertThat(options.arguments(KernelCode.Kind.LTOIR))
        .startsWith("-dlto", "--gpu-architecture=sm_90");
  }

  @Test
  void optionsWithTheSameContent_areEqual() {
    CompilerOptions one = CompilerOptions.DEFAULTS.withDefine("A").withHeader("a.h", "int a;");
    CompilerOptions same = CompilerOptions.DEFAULTS.withHeader("a.h", "int a;").withDefine("A");
    assertThat(one).isEqualTo(same).hasSameHashCodeAs(same);
    assertThat(one).isNotEqualTo(one.withHeader("a.h", "int b;"));
    assertThat(one).isNotEqualTo(one.withNameExpression("f")).hasToString(one.toString());
  }

  @Test
  void secondCompilation_comesFromTheCache(@TempDir Path folder) {
    CudaProgram program = CudaProgram.of("source").withCache(ProgramCache.in(folder.resolve("c")));
    compiler.log = "warning";
    KernelCode first = compile(program);
    compiler.code = "other".getBytes(StandardCharsets.UTF_8);
    assertThat(compile(program)).isEqualTo(first);
    assertThat(compiler.compilations).hasValue(1);
  }

  @Test
  void anythingThatCodeDependsOn_isPartOfTheKey(@TempDir Path folder) throws IOException {
    Path include = Files.createDirectory(folder.resolve("include"));
    Path other = Files.createDirectory(folder.resolve("other"));
    Files.writeString(include.resolve("a.h"), "#include \"b.h\"\n");
    Files.writeString(include.resolve("b.h"), "int b;");
    CompilerOptions options = CompilerOptions.DEFAULTS.withIncludeFolder(include);
    CudaProgram program =
        new CudaProgram(
            "#include <a.h>\n", "p.cu", options, ProgramCache.in(folder.resolve("cache")));
    int expected = 0;
    for (CudaProgram each :
        new CudaProgram[] {
          program,
          program.withName("q.cu"),
          program.withOptions(options.withIncludeFolder(other)),
          program.withOptions(options.withDefine("A")),
          program.withOptions(options.withArchitecture("sm_90")),
          program.withOptions(options.withArchitecture("sm_90a")),
          program.withOptions(options.withHeader("c.h", "int c;")),
          program.withOptions(options.withHeader("c.h", "int d;")),
          program.withOptions(options.withHeader("d.h", "int d;")),
          program.withOptions(options.withNameExpression("f")),
          program.withOptions(options.withNameExpression("g")),
          program.withOptions(options.withNameExpression("f").withNameExpression("g")),
          new CudaProgram("#include <a.h>\n ", "p.cu", options, program.cache())
        }) {
      compile(each);
      assertThat(compiler.compilations).as(each.toString()).hasValue(++expected);
      compile(each);
      assertThat(compiler.compilations).as(each.toString()).hasValue(expected);
    }
    assertThat(program.compile(KernelCode.Kind.LTOIR, compiler).kind())
        .isEqualTo(KernelCode.Kind.LTOIR);
    assertThat(compiler.compilations).hasValue(++expected);
    Files.writeString(include.resolve("b.h"), "int changed;");
    compile(program);
    assertThat(compiler.compilations).hasValue(++expected);
    compiler.version = 13_010;
    compile(program);
    assertThat(compiler.compilations).hasValue(++expected);
  }

  @Test
  void otherFileOfTheCompiler_compilesAnew(@TempDir Path folder) throws IOException {
    CudaProgram program = CudaProgram.of("source").withCache(ProgramCache.in(folder.resolve("c")));
    Path library = Files.writeString(folder.resolve("libnvrtc.so"), "compiler");
    Files.setLastModifiedTime(library, FileTime.fromMillis(1_000));
    compiler.library = library.toString();
    compile(program);
    compile(program);
    assertThat(compiler.compilations).hasValue(1);
    Files.setLastModifiedTime(library, FileTime.fromMillis(2_000));
    compile(program);
    assertThat(compiler.compilations).as("a later one").hasValue(2);
    Files.writeString(library, "longer compiler");
    Files.setLastModifiedTime(library, FileTime.fromMillis(2_000));
    compile(program);
    assertThat(compiler.compilations).as("a longer one").hasValue(3);
  }

  /** Wherever the process stands, and whatever looks for the file. */
  @Test
  void includeFolder_isGivenAsAWholePath() {
    CompilerOptions options = CompilerOptions.DEFAULTS.withIncludeFolder(Path.of("a/../b"));
    assertThat(options.arguments(KernelCode.Kind.PTX))
        .contains("--include-path=" + Path.of("b").toAbsolutePath());
  }

  @Test
  void headerThatAppearsOrChangesInTime_isNoticed(@TempDir Path folder) throws IOException {
    Path include = Files.createDirectory(folder.resolve("include"));
    CompilerOptions options = CompilerOptions.DEFAULTS.withIncludeFolder(include);
    CudaProgram program =
        new CudaProgram(
            "#if __has_include(<a.h>)\n#endif\n",
            "p.cu",
            options,
            ProgramCache.in(folder.resolve("cache")));
    compile(program);
    compiler.whileCompiling = () -> write(include.resolve("a.h"), "int later;");
    Files.writeString(include.resolve("a.h"), "int a;");
    compile(program);
    compiler.whileCompiling = () -> {};
    Files.writeString(include.resolve("a.h"), "int a;");
    compile(program);
    assertThat(compiler.compilations).as("what changed meanwhile was not kept").hasValue(3);
  }

  private static void write(Path file, String text) {
    try {
      Files.writeString(file, text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void headersThatCannotBeKnown_areCompiledEachTime(@TempDir Path folder) {
    CudaProgram program =
        CudaProgram.of("#define A <a.h>\n#include A\n")
            .withCache(ProgramCache.in(folder.resolve("c")));
    compile(program);
    compile(program);
    assertThat(compiler.compilations).hasValue(2);
    assertThat(folder.resolve("c")).doesNotExist();
  }

  /** __FILE__ is another. */
  @Test
  void sameHeaderInAnotherFolder_compilesAnew(@TempDir Path folder) throws IOException {
    Path first = Files.createDirectory(folder.resolve("first"));
    Path second = Files.createDirectory(folder.resolve("second"));
    CudaProgram program =
        new CudaProgram(
            "#include <a.h>\n",
            "p.cu",
            CompilerOptions.DEFAULTS.withIncludeFolder(first).withIncludeFolder(second),
            ProgramCache.in(folder.resolve("cache")));
    write(second.resolve("a.h"), "int a;");
    compile(program);
    Files.move(second.resolve("a.h"), first.resolve("a.h"));
    compile(program);
    compile(program);
    assertThat(compiler.compilations).hasValue(2);
  }

  /** Who reads the parts one after another without counting them would take one for the other. */
  @Test
  void sameWordsInOtherPlaces_areAnotherProgram(@TempDir Path folder) throws IOException {
    Path include = Files.createDirectory(folder.resolve("include"));
    Path file = include.toAbsolutePath().resolve("a.h");
    CompilerOptions options = CompilerOptions.DEFAULTS.withIncludeFolder(include);
    CudaProgram program =
        new CudaProgram(
            "#include <a.h>\n", "p.cu", options, ProgramCache.in(folder.resolve("cache")));
    compile(program.withOptions(options.withHeader("h", "0")));
    compile(program.withOptions(options.withNameExpression("1").withNameExpression("h")));
    assertThat(compiler.compilations).as("a header, and expressions").hasValue(2);
    compile(program.withOptions(options.withHeader(file.toString(), "int a;")));
    write(file, "int a;");
    compile(program);
    assertThat(compiler.compilations).as("a header, and a file").hasValue(4);
  }
}
