package io.cuvette.testkit.guide;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The documents of the repository that this test was built from. Stateless. */
final class DocumentFiles {
  private DocumentFiles() {}

  /** The root by the property of the build, else the nearest folder above that looks like it. */
  static Optional<Path> root() {
    String given = System.getProperty("cuvette.root");
    Path folder = Path.of(given != null ? given : "").toAbsolutePath();
    while (folder != null && !Files.isRegularFile(folder.resolve("docs/migration.md"))) {
      folder = folder.getParent();
    }
    return Optional.ofNullable(folder);
  }

  /** README.md, and everything in docs. */
  static List<Path> pages(Path root) throws IOException {
    List<Path> pages = new ArrayList<>();
    pages.add(root.resolve("README.md"));
    try (Stream<Path> docs = Files.walk(root.resolve("docs"))) {
      docs.filter(file -> file.toString().endsWith(".md")).sorted().forEach(pages::add);
    }
    return pages;
  }

  /** What lies in a folder. */
  static List<Path> files(Path folder) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
