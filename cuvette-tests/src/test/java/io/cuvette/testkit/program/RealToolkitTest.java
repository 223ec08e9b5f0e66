package io.cuvette.testkit.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.CompilerOptions;
import io.cuvette.CudaLinker;
import io.cuvette.CudaProgram;
import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import io.cuvette.LinkerOptions;
import io.cuvette.ProgramCache;
import io.cuvette.driver.CompilerException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** NVRTC and nvJitLink themselves, which need no GPU; skipped where they are not. */
class RealToolkitTest {
  private static final CompilerOptions SM_90 =
      CompilerOptions.DEFAULTS.withArchitecture("sm_90").withStandard("c++20");
  private static final String CALLER =
      "extern __device__ int twice(int);"
          + " extern \"C\" __global__ void call(int* x) { x[0] = twice(x[0]); }";
  private static final String CALLED = "__device__ int twice(int x) { return x * 2; }";

  private static CudaProgram program(String source) {
    return new CudaProgram(source, "test.cu", SM_90, ProgramCache.none());
  }

  @Test
  void samples_compileToEachKind() {
    Toolkit.needsCompiler();
    CudaProgram samples =
        Toolkit.samples(SM_90.withNameExpression("scale<float>").withNameExpression("scale<int>"));
    for (Kind kind : List.of(Kind.PTX, Kind.CUBIN, Kind.LTOIR)) {
      KernelCode code = samples.compile(kind);
      assertThat(KernelCode.of(code.bytes()).kind()).isEqualTo(kind);
      assertThat(code.loweredName("scale<float>")).isEqualTo("_Z5scaleIfEvPT_S0_i");
    }
    assertThat(samples.compile(Kind.PTX).text())
        .contains(
            ".entry vector_add",
            ".entry block_sum",
            ".entry grid_sum",
            ".entry cluster_turn",
            ".entry histogram",
            ".entry _Z5scaleIiEvPT_S0_i",
            ".target sm_90");
  }

  @Test
  void errors_haveTheLogOfTheCompiler() {
    Toolkit.needsCompiler();
    assertThatThrownBy(() -> program("int x = ;").compile(Kind.PTX))
        .isInstanceOfSatisfying(
            CompilerException.class,
            e -> assertThat(e.status()).isEqualTo("NVRTC_ERROR_COMPILATION"))
        .hasMessageContaining("test.cu(1): error");
    CudaProgram unnamed = program("__global__ void f() {}");
    assertThatThrownBy(
            () -> unnamed.withOptions(SM_90.withNameExpression("nothing<int>")).compile(Kind.PTX))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("nothing");
    assertThatThrownBy(
            () -> unnamed.withOptions(SM_90.withArgument("--none-such")).compile(Kind.PTX))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("--none-such");
    assertThatThrownBy(
            () -> unnamed.withOptions(SM_90.withArchitecture("sm_99")).compile(Kind.CUBIN))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("sm_90, ");
    assertThatThrownBy(() -> program("#include \"none.h\"\n").compile(Kind.PTX))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("none.h");
  }

  @Test
  void warnings_areInTheLogOfWhatCompiles_alsoFromTheCache(@TempDir Path folder) {
    Toolkit.needsCompiler();
    CudaProgram program =
        program("__global__ void f() { int unused; }")
            .withCache(ProgramCache.in(folder.resolve("cache")));
    KernelCode first = program.compile(Kind.PTX);
    assertThat(first.log()).contains("unused");
    assertThat(program.compile(Kind.PTX)).isEqualTo(first);
    assertThat(program.withOptions(SM_90.withWarningsDisabled(true)).compile(Kind.PTX).log())
        .isEmpty();
  }

  /** Whatever the compiler reads is found by the search for headers, or nothing is kept. */
  @Test
  void headers_ofAnyFolder_arePartOfTheKey(@TempDir Path folder) throws IOException {
    Toolkit.needsCompiler();
    Path include = Files.createDirectories(folder.resolve("include/sub")).getParent();
    Files.writeString(include.resolve("a.h"), "#include \"sub/b.h\"\n");
    Files.writeString(include.resolve("sub/b.h"), "#include \"c.h\"\n");
    Files.writeString(include.resolve("sub/c.h"), "#define VALUE 1111\n");
    CudaProgram program =
        program("#include <a.h>\n#include \"m.h\"\n__global__ void f(int* x) { x[0] = VALUE; }")
            .withCache(ProgramCache.in(folder.resolve("cache")))
            .withOptions(SM_90.withIncludeFolder(include).withHeader("m.h", "#define OTHER 1\n"));
    assertThat(program.compile(Kind.PTX).text()).contains("1111");
    Files.writeString(include.resolve("sub/c.h"), "#define VALUE 2222\n");
    assertThat(program.compile(Kind.PTX).text()).contains("2222");
    Files.writeString(include.resolve("c.h"), "#define VALUE 3333\n"); // not the nearest
    assertThat(program.compile(Kind.PTX).text()).contains("2222");
    Files.delete(include.resolve("sub/c.h"));
    assertThat(program.compile(Kind.PTX).text()).contains("3333");
    try (Stream<Path> entries = Files.list(folder.resolve("cache"))) {
      assertThat(entries).hasSize(4);
    }
  }

  @Test
  void codeOfEachKind_isLinked() {
    Toolkit.needsCompiler();
    Toolkit.needsLinker();
    CudaLinker linker = new CudaLinker(LinkerOptions.of("sm_90"));
    CompilerOptions apart = SM_90.withRelocatableCode(true);
    for (Kind first : List.of(Kind.PTX, Kind.CUBIN, Kind.LTOIR)) {
      for (Kind second : List.of(Kind.PTX, Kind.CUBIN, Kind.LTOIR)) {
        KernelCode linked =
            linker.link(
                Kind.CUBIN,
                List.of(
                    program(CALLER).withOptions(apart).compile(first),
                    program(CALLED).withOptions(apart).compile(second)));
        assertThat(KernelCode.of(linked.bytes()).kind()).isEqualTo(Kind.CUBIN);
      }
    }
    KernelCode ptx =
        linker.link(
            Kind.PTX,
            List.of(
                program(CALLER).withOptions(apart).compile(Kind.LTOIR),
                program(CALLED).withOptions(apart).compile(Kind.LTOIR)));
    assertThat(ptx.text()).contains(".entry call").doesNotContain("twice");
  }

  @Test
  void whatCannotBeLinked_isAnErrorWithTheLog() {
    Toolkit.needsCompiler();
    Toolkit.needsLinker();
    CudaLinker linker = new CudaLinker(LinkerOptions.of("sm_90"));
    KernelCode caller =
        program(CALLER).withOptions(SM_90.withRelocatableCode(true)).compile(Kind.CUBIN);
    assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(caller)))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("Undefined reference to '_Z5twicei'");
    assertThatThrownBy(
            () -> new CudaLinker(LinkerOptions.of("sm_80")).link(Kind.CUBIN, List.of(caller)))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("NVJITLINK_ERROR");
    KernelCode newer =
        KernelCode.ofPtx(".version 99.0\n.target sm_90\n.address_size 64\n.entry f() { ret; }\n");
    assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(newer)))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("Unsupported .version 99.0");
    for (Kind kind : List.of(Kind.CUBIN, Kind.LTOIR, Kind.FATBIN)) {
      assertThatThrownBy(() -> linker.link(Kind.CUBIN, List.of(KernelCode.of(kind, new byte[100]))))
          .as(kind.name())
          .isInstanceOf(CompilerException.class);
    }
    assertThatThrownBy(
            () -> new CudaLinker(LinkerOptions.of("sm_91")).link(Kind.CUBIN, List.of(caller)))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("sm_91");
    assertThatThrownBy(() ->
            new CudaLinker(LinkerOptions.of("sm_90").withArgument("--none-such"))
                .link(Kind.CUBIN, List.of(caller)))
        .isInstanceOf(CompilerException.class)
        .hasMessageContaining("unrecognized option: --none-such");
  }

  @Test
  void manyThreads_compileAndLinkAtOnce(@TempDir Path folder) throws Exception {
    Toolkit.needsCompiler();
    Toolkit.needsLinker();
    List<Callable<Void>> all = new ArrayList<>();
    for (int thread = 0; thread < 8; thread++) {
      int number = 1000 + thread;
      all.add(() -> {
        for (int i = 0; i < 5; i++) {
          CudaProgram program =
              program("extern \"C\" __global__ void f(int* x) { x[0] = " + number + "; }")
                  .withCache(ProgramCache.in(folder.resolve("cache")));
          assertThat(program.compile(Kind.PTX).text()).contains("" + number);
          new CudaLinker(LinkerOptions.of("sm_90"))
              .link(Kind.CUBIN, List.of(program.compile(Kind.LTOIR)));
        }
        return null;
      });
    }
    try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
      for (Future<Void> each : threads.invokeAll(all)) {
        each.get();
      }
    }
  }
}
