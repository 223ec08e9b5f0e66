package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Programs that are compiled by a library of ours, found by the service loader. */
class ProgramTest {
  @TempDir private Path folder;

  private ForkedJvm.Result run(String library) throws Exception {
    return ForkedJvm.run(
        ProgramMain.class,
        Map.of("CUVETTE_CACHE", folder.resolve("cache").toString()),
        "-Dcuvette.nvrtc=" + library);
  }

  /** Both write the same entries, and read what the other writes. */
  @Test
  void processesAtOnce_shareACache() throws Exception {
    Path source = folder.resolve("stub_toolkit.c");
    try (InputStream text = ProgramTest.class.getResourceAsStream("stub_toolkit.c")) {
      Files.write(source, text.readAllBytes());
    }
    String library =
        CCompiler.compile(source, folder.resolve("libnvrtc.so.13"), "-shared", "-fPIC").toString();
    List<Future<ForkedJvm.Result>> all = new ArrayList<>();
    try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
      for (int i = 0; i < 3; i++) {
        all.add(threads.submit(() -> run(library)));
      }
    }
    for (Future<ForkedJvm.Result> each : all) {
      assertThat(each.get().output())
          .contains("right 200 of 200")
          .doesNotContain("WARNING: Compiled code is not kept");
    }
    try (Stream<Path> entries = Files.list(folder.resolve("cache"))) {
      assertThat(entries).hasSize(40).allMatch(file -> file.toString().endsWith(".code"));
    }
  }

  @Test
  void compilerThatIsNotThere_isOneErrorThatSaysWhatToDo() throws Exception {
    assertThat(run(folder.resolve("libnone.so").toString()).output())
        .contains("NVRTC cannot be loaded, -Dcuvette.nvrtc=" + folder.resolve("libnone.so"))
        .contains("No such file or directory")
        .contains("install cuda-nvrtc of the CUDA toolkit, or pip install nvidia-cuda-nvrtc")
        .contains("right 0 of 200");
    assertThat(folder.resolve("cache")).doesNotExist();
  }
}
