package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What a tool is told, by the interop library of the machine and without it: the tool is a library
 * of ours. Skipped without a C compiler.
 */
class NvtxTest {
  private static final String NAME = "libnvtx3interop.so.1";

  private static final String[] TOLD = {
    "mark 0 plain category 0 v3/48",
    "mark 0 green category 0 color FF00FF00 v3/48",
    "mark 0 no color category 0 v3/48",
    "mark 0 argb category 0 color 80FF0000 v3/48",
    "mark 0 zero\u2400inside \u00e4\u20ac category 0 v3/48",
    "push 0 outer category 0 v3/48",
    "push 0 inner category 0 color FFFF0000 v3/48",
    "push 0 innermost category 0 color 00000000 v3/48",
    "pop 0",
    "pop 0",
    "pop 0",
    "start 0 scope category 0 v3/48",
    "start 0 other category 0 color 00000001 v3/48",
    "end 0 2",
    "end 0 1",
    "domain solver",
    "category solve 1 7",
    "register step 1",
    "mark 1 registered step category 7 payload -5 v3/48",
    "mark 1 registered step category 7 color FF7F7F7F payload 2.5 v3/48",
    "start 0 virtual category 0 v3/48",
    "end 0 3",
    "mark 1 again category 0 v3/48",
    "device second 1",
    "stream copies 4711",
    "domain Cuvette",
    "in 2 heap pool 4096+8192 usage 1 type 1 v102/48 range 16 text 1",
    "in 2 region of 119: 4608+512 count 1 step 16 type 1 v102/48 out 1",
    "in 2 region end 4608 count 1 step 8 kind 1 v102/32",
    "in 2 heap end 119",
  };

  @TempDir private Path folder;

  private Path tool(String... options) throws IOException, InterruptedException {
    return compile("libtool.so", options);
  }

  private Path compile(String name, String... options) throws IOException, InterruptedException {
    Path source = folder.resolve("stub_nvtx.c");
    try (InputStream text = NvtxTest.class.getResourceAsStream("stub_nvtx.c")) {
      Files.write(source, text.readAllBytes());
    }
    String[] all =
        Stream.concat(Stream.of("-shared", "-fPIC"), Stream.of(options)).toArray(String[]::new);
    return CCompiler.compile(source, folder.resolve(name), all);
  }

  private Path log() {
    return folder.resolve("log");
  }

  private String run(String library, Map<String, String> environment)
      throws IOException, InterruptedException {
    return run(environment, "-Dcuvette.nvtx=" + library);
  }

  private String run(Map<String, String> environment, String... options)
      throws IOException, InterruptedException {
    Map<String, String> all = new HashMap<>(environment);
    all.put("STUB_NVTX_LOG", log().toString());
    all.putIfAbsent("NVTX_INJECTION64_PATH", "");
    ForkedJvm.Result result = ForkedJvm.run(NvtxMain.class, all, options);
    assertThat(result.exitCode()).as(result.output()).isZero();
    assertThat(result.output())
        .contains("depths 210", "has no open range (expected: a rangePush of this thread");
    return result.output();
  }

  /** The interop library of the machine; tests are skipped where there is none. */
  private static String interop() {
    Optional<Path> found =
        Stream.of("/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")
            .map(path -> Path.of(path, NAME))
            .filter(Files::exists)
            .findFirst();
    assumeTrue(found.isPresent(), "no " + NAME);
    return found.orElseThrow().toString();
  }

  @Test
  void tool_isToldWithoutTheInteropLibrary() throws Exception {
    Path tool = tool();
    String output = run("", Map.of("NVTX_INJECTION64_PATH", tool.toString()));
    assertThat(output).contains("listening true", "library " + tool);
    assertThat(Files.readAllLines(log())).containsExactly(TOLD);
  }

  @Test
  void tool_isToldTheNamesOfDevicesAndStreams_ofAGpuAlone() throws Exception {
    Path gpu = Standin.compile(Files.createDirectory(folder.resolve("gpu")));
    run(
        Map.of("NVTX_INJECTION64_PATH", tool().toString()),
        "-Dcuvette.nvtx=",
        "-Dcuvette.libcuda=" + gpu,
        "-D" + NvtxMain.DEVICE + "=gpu");
    List<String> told = Files.readAllLines(log());
    assertThat(told).contains("device first 0").hasSize(TOLD.length + 2);
    assertThat(told).filteredOn(line -> line.startsWith("stream a stream ")).hasSize(1);
  }

  @Test
  void tool_isToldTheSameByTheInteropLibrary() throws Exception {
    String library = interop();
    String output = run(library, Map.of("NVTX_INJECTION64_PATH", tool().toString()));
    assertThat(output).contains("listening true", "library " + library);
    assertThat(Files.readAllLines(log())).containsExactly(TOLD);
  }

  @Test
  void interopLibraryWithoutATool_isLeftAlone() throws Exception {
    assertThat(run(interop(), Map.of())).contains("listening false", "library none");
  }

  @Test
  void interopLibraryThatTheLoaderFinds_isUsedByItsName() throws Exception {
    Path library = compile(NAME, "-DINTEROP");
    String output = run(Map.of("LD_LIBRARY_PATH", library.getParent().toString()));
    assertThat(output.lines()).contains("listening true", "library " + NAME);
  }

  @Test
  void withoutAnything_nothingListens() throws Exception {
    assertThat(run("", Map.of())).contains("listening false").doesNotContain("WARNING");
  }

  @Test
  void toolThatRefuses_isNamedInAWarning() throws Exception {
    Path tool = tool();
    String output =
        run("", Map.of("NVTX_INJECTION64_PATH", tool.toString(), "STUB_NVTX_REFUSES", "1"));
    assertThat(output)
        .contains("listening false", "InitializeInjectionNvtx2 of " + tool + " returned 0");
    assertThat(log()).doesNotExist();
  }

  @Test
  void toolThatIsNotThere_isNamedInAWarning() throws Exception {
    String missing = folder.resolve("libnone.so").toString();
    assertThat(run("", Map.of("NVTX_INJECTION64_PATH", missing)))
        .contains("listening false", "NVTX_INJECTION64_PATH=" + missing);
  }

  @Test
  void libraryThatIsNoTool_isNamedInAWarning() throws Exception {
    Path other =
        CCompiler.compile(
            Files.writeString(folder.resolve("other.c"), "int nothing;"),
            folder.resolve("libother.so"),
            "-shared",
            "-fPIC");
    assertThat(run("", Map.of("NVTX_INJECTION64_PATH", other.toString())))
        .contains("listening false", other + " has no function InitializeInjectionNvtx2");
  }

  @Test
  void structures_areThoseOfTheHeaders() throws Exception {
    Path headers = CCompiler.cudaHeaders();
    assumeTrue(Files.exists(headers.resolve("nvtx3/nvToolsExtMem.h")), "no nvtx3/nvToolsExtMem.h");
    assertThat(tool("-DHEADERS", "-I" + headers)).exists();
  }
}
