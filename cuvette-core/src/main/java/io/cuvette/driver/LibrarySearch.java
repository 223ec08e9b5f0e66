package io.cuvette.driver;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Looks where the dynamic loader looks, then in the toolkit of CUDA and in the packages of Python,
 * by the names of files; nothing is loaded. Thread-safe.
 */
final class LibrarySearch {
  private static final Pattern NUMBER = Pattern.compile("\\d+");
  private static final int DIGITS = 9;

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
      addWheels(environment);
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
    Set<Path> found = new TreeSet<>(Comparator.comparing(LibrarySearch::ordered));
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(folder, file -> file.getFileName().toString().startsWith(start))) {
      files.forEach(found::add);
    } catch (IOException | UncheckedIOException | DirectoryIteratorException e) {
      // No such folder, or not ours to read: the loader skips it too.
      return Optional.empty();
    }
    return found.stream().reduce((_, last) -> last);
  }

  /** The name of a file with its numbers as long as each other, so that 9 is before 13. */
  private static String ordered(Path file) {
    return NUMBER
        .matcher(file.getFileName().toString())
        .replaceAll(number -> "0".repeat(Math.max(0, DIGITS - number.group().length())) + "$0");
  }

  /** Where the packages of Python have CUDA's libraries. */
  private void addWheels(Map<String, String> environment) {
    for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
      addWheelsUnder(environment.get(variable));
    }
    String home = environment.get("HOME");
    addWheelsUnder(home == null || home.isBlank() ? null : home + "/.local");
    addWheelsUnder("/usr/local");
    addWheelsUnder("/usr");
  }

  private void addWheelsUnder(@Nullable String prefix) {
    if (prefix == null || prefix.isBlank()) {
      return;
    }
    for (Path python : below(prefix + "/lib", "python3*")) {
      for (String packages : List.of("site-packages", "dist-packages")) {
        for (Path wheel : below(python + "/" + packages + "/nvidia", "*")) {
          Path lib = wheel.resolve("lib");
          if (Files.isDirectory(lib)) {
            folders.add(lib);
          }
        }
      }
    }
  }

  private static Set<Path> below(String folder, String pattern) {
    Set<Path> found = new TreeSet<>(Comparator.comparing(LibrarySearch::ordered).reversed());
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(Path.of(folder), pattern)) {
      entries.forEach(found::add);
    } catch (IOException
        | UncheckedIOException
        | DirectoryIteratorException
        | InvalidPathException e) {
      // No such folder, or not ours to read: nothing is found there.
      return Set.of();
    }
    return found;
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
    } catch (InvalidPathException e) {
      // Not a path on this system, so nothing is there.
    }
  }
}
