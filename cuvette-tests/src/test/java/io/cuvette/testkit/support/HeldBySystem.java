package io.cuvette.testkit.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/** What this process holds of the operating system, as Linux counts it. Stateless. */
public final class HeldBySystem {
  private static final Path SELF = Path.of("/proc/self");
  private static final Path DESCRIPTORS = SELF.resolve("fd");
  private static final int COUNTS = 3;

  private HeldBySystem() {}

  /**
   * How many descriptors are open; the fewest of some counts, for others open some for a moment.
   */
  public static int descriptors() throws IOException {
    int fewest = Integer.MAX_VALUE;
    for (int i = 0; i < COUNTS; i++) {
      try (Stream<Path> open = Files.list(DESCRIPTORS)) {
        fewest = Math.min(fewest, Math.toIntExact(open.count()));
      }
    }
    return fewest;
  }

  /** What the descriptors are of, with how many of each. */
  public static Map<String, Integer> kinds() {
    Map<String, Integer> kinds = new TreeMap<>();
    try (Stream<Path> open = Files.list(DESCRIPTORS)) {
      open.forEach(each -> kinds.merge(kindOf(each), 1, Integer::sum));
      return kinds;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The numbers of the descriptors that are open. */
  public static int[] numbers() throws IOException {
    try (Stream<Path> open = Files.list(DESCRIPTORS)) {
      return open.mapToInt(each -> Integer.parseInt(each.getFileName().toString())).toArray();
    }
  }

  /** What a descriptor is of, as the system calls it. */
  public static String kindOf(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().replaceAll("[0-9]+", "N");
    } catch (IOException e) {
      return "closed meanwhile";
    }
  }

  /** A descriptor that this process has of a file. */
  public static int descriptorOf(Path file) {
    try (Stream<Path> open = Files.list(DESCRIPTORS)) {
      return open.filter(each -> isLinkTo(each, file))
          .mapToInt(each -> Integer.parseInt(each.getFileName().toString()))
          .findFirst()
          .orElseThrow();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isLinkTo(Path descriptor, Path file) {
    try {
      return Files.readSymbolicLink(descriptor).equals(file.toAbsolutePath());
    } catch (IOException e) {
      return false; // closed meanwhile
    }
  }

  /** The mapped ranges of files and memory. */
  public static List<String> mappings() throws IOException {
    return Files.readAllLines(SELF.resolve("maps"));
  }
}
