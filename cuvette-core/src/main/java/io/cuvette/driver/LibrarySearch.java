package io.cuvette.driver;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** Looks where the dynamic loader looks, by the names of files; nothing is loaded. Thread-safe. */
final class LibrarySearch {
  private final boolean windows;
  private final Set<Path> folders;

  LibrarySearch(Map<String, String> environment, Path loaderConfiguration, String systemName) {
    this.windows = systemName.toLowerCase(Locale.ROOT).startsWith("windows");
    this.folders = new LinkedHashSet<>();
    addAll(environment.get(windows ? "PATH" : "LD_LIBRARY_PATH"));
    for (String home : List.of("CUDA_HOME", "CUDA_PATH")) {
      addUnder(environment.get(home));
    }
    if (!windows) {
      LoaderConfiguration.folders(loaderConfiguration).forEach(folders::add);
      for (String folder : List.of("/lib", "/usr/lib", "/lib64", "/usr/lib64")) {
        folders.add(Path.of(folder));
      }
      addUnder("/usr/local/cuda");
    }
  }

  /** The search of this machine. */
  static LibrarySearch here() {
    return new LibrarySearch(
        System.getenv(), Path.of("/etc/ld.so.conf"), System.getProperty("os.name", ""));
  }

  /** The file of a library, if it is anywhere. */
  Optional<Path> find(OptionalLibrary library) {
    return folders.stream().flatMap(folder -> newest(folder, start(library)).stream()).findFirst();
  }

  /** What the file of a library starts with here. */
  String start(OptionalLibrary library) {
    return windows ? library.windowsFile() : library.file();
  }

  /** Where it looks, in that order. */
  List<Path> folders() {
    return List.copyOf(folders);
  }

  private static Optional<Path> newest(Path folder, String start) {
    Set<Path> found = new TreeSet<>();
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(folder, file -> file.getFileName().toString().startsWith(start))) {
      files.forEach(found::add);
    } catch (IOException | UncheckedIOException | DirectoryIteratorException e) {
      // No such folder, or not ours to read: the loader skips it too.
      return Optional.empty();
    }
    return found.stream().reduce((_, last) -> last);
  }

  private void addAll(@Nullable String paths) {
    if (paths != null) {
      Arrays.stream(paths.split(windows ? ";" : ":"))
          .filter(path -> !path.isBlank())
          .forEach(this::add);
    }
  }

  private void addUnder(@Nullable String home) {
    if (home != null && !home.isBlank()) {
      for (String below :
          List.of("lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib", "bin")) {
        add(home + "/" + below);
      }
    }
  }

  private void add(String path) {
    try {
      folders.add(Path.of(path));
    } catch (java.nio.file.InvalidPathException e) {
      // Not a path on this system, so nothing is there.
    }
  }
}
