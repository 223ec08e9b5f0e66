package io.cuvette.testkit.support;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What this process holds of the operating system, as Linux counts it. Stateless. */
public final class OpenFiles {
  private static final Path SELF = Path.of("/proc/self");

  private OpenFiles() {}

  /** The open descriptors; the one to count with among them. */
  public static int descriptors() throws IOException {
    try (Stream<Path> open = Files.list(SELF.resolve("fd"))) {
      return Math.toIntExact(open.count());
    }
  }

  /** The mapped ranges of files and memory. */
  public static List<String> mappings() throws IOException {
    return Files.readAllLines(SELF.resolve("maps"));
  }
}
