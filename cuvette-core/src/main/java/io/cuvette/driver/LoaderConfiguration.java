package io.cuvette.driver;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Reads the folders of the dynamic loader's configuration, with what it includes. Stateless. */
final class LoaderConfiguration {
  private static final int DEEPEST_INCLUDE = 8;
  private static final String INCLUDE = "include ";

  private LoaderConfiguration() {}

  /** The folders, in order; none if the file cannot be read. */
  static Set<Path> folders(Path file) {
    Set<Path> folders = new LinkedHashSet<>();
    read(file, folders, 0);
    return folders;
  }

  private static void read(Path file, Set<Path> folders, int depth) {
    for (String line : lines(file)) {
      String text = line.replaceAll("#.*", "").strip();
      if (text.startsWith(INCLUDE) && depth < DEEPEST_INCLUDE) {
        String pattern = text.substring(INCLUDE.length()).strip();
        included(file, pattern).forEach(next -> read(next, folders, depth + 1));
      } else if (text.startsWith("/")) {
        folders.add(Path.of(text));
      }
    }
  }

  private static Set<Path> included(Path from, String pattern) {
    Path all = from.resolveSibling(pattern);
    Path folder = all.getParent();
    Path name = all.getFileName();
    Set<Path> files = new TreeSet<>();
    if (folder == null || name == null) {
      return files;
    }
    try (DirectoryStream<Path> found = Files.newDirectoryStream(folder, name.toString())) {
      found.forEach(files::add);
    } catch (IOException e) {
      // The loader skips what it cannot read, too.
      files.clear();
    }
    return files;
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      return List.of();
    }
  }
}
