package io.cuvette.internal.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.OptionalLibrary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ToolkitHeadersTest {
  @Test
  void headers_areBesideTheLibraries(@TempDir Path folder) throws IOException {
    Path include = Files.createDirectories(folder.resolve("cuda/include"));
    Path library = folder.resolve("cuda/lib64");
    List<Path> libraries = List.of(folder.resolve("other/lib"), library);
    assertThatThrownBy(() -> ToolkitHeaders.find(libraries))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith("the headers of CUDA are missing: no cooperative_groups.h in ")
        .hasMessageContaining(include.toString())
        .hasMessageContaining("; install ");
    Files.writeString(include.resolve("cooperative_groups.h"), "");
    assertThat(ToolkitHeaders.find(libraries)).containsExactly(include);
    Path parts = Files.createDirectory(include.resolve("cccl"));
    assertThat(ToolkitHeaders.find(libraries)).containsExactly(include, parts);
  }

  /** Whether this machine has them or not. */
  @Test
  void headers_areThoseBesideTheLibrariesOfTheDriver() {
    assertThat(answer(ToolkitHeaders::find))
        .isEqualTo(answer(() -> ToolkitHeaders.find(OptionalLibrary.folders())))
        .isNotEqualTo(List.of());
  }

  private static Object answer(Supplier<List<Path>> question) {
    try {
      return question.get();
    } catch (UnsupportedOperationException e) {
      return String.valueOf(e.getMessage());
    }
  }
}
