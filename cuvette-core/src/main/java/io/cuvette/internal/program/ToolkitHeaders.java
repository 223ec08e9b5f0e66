package io.cuvette.internal.program;

import io.cuvette.driver.OptionalLibrary;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Finds the headers of CUDA's toolkit, beside where its libraries are. Stateless. */
public final class ToolkitHeaders {
  private static final String HEADER = "cooperative_groups.h";

  private ToolkitHeaders() {}

  /**
   * The folders of the headers.
   *
   * @throws UnsupportedOperationException if there are none
   */
  public static List<Path> find() {
    return find(OptionalLibrary.folders());
  }

  static List<Path> find(List<Path> libraryFolders) {
    List<Path> looked =
        libraryFolders.stream()
            .flatMap(folder -> Stream.of(folder.resolve("../include"), folder.resolve("include")))
            .map(Path::normalize)
            .distinct()
            .toList();
    for (Path folder : looked) {
      if (Files.isRegularFile(folder.resolve(HEADER))) {
        List<Path> found = new ArrayList<>(List.of(folder));
        Path parts = folder.resolve("cccl");
        if (Files.isDirectory(parts)) {
          found.add(parts);
        }
        return found;
      }
    }
    throw new UnsupportedOperationException(
        "the headers of CUDA are missing: no %s in %s; install cuda-cudart-dev of the CUDA toolkit"
            .formatted(
                HEADER, looked.stream().map(Path::toString).collect(Collectors.joining(", "))));
  }
}
