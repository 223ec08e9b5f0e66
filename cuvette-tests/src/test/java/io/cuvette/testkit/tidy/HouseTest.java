package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Holds figures of the core's structure, which may only fall: who lowers one records it here.
 * Skipped where there are no sources, as in the GPU bundle.
 */
class HouseTest {
  /** How many types the largest knot has. */
  private static final int LARGEST_KNOT = 31;

  /** How many arrows lead from the engine to what users hold. */
  private static final int ENGINE_TO_HANDLES = 0;

  /** How many lines a package of the engine has at most. */
  private static final long MOST_LINES = 1_600;

  @Test
  void enginePackages_canBeReadInOneSitting() throws IOException {
    Path engine = sources().resolve("cuvette-core/src/main/java/io/cuvette/internal");
    try (Stream<Path> packages = Files.list(engine)) {
      for (Path each : packages.sorted().toList()) {
        String name = each.getFileName().toString();
        long lines = lines(each);
        System.out.printf("lines of %s: %d%n", name, lines);
        assertThat(lines).as(name).isLessThanOrEqualTo(MOST_LINES);
      }
    }
  }

  private static long lines(Path folder) throws IOException {
    long lines = 0;
    try (Stream<Path> files = Files.list(folder)) {
      for (Path each : files.toList()) {
        lines += Files.readAllLines(each).size();
      }
    }
    return lines;
  }

  /** Lines of the main sources, comments included, rounded up to hundreds; may only fall. */
  private static final Map<String, Long> LARGEST_MODULES =
      Map.of("cuvette-core", 87_700L, "cuvette-ffm", 9_900L);

  @Test
  void modules_doNotGrowUnseen() throws IOException {
    for (Map.Entry<String, Long> each : LARGEST_MODULES.entrySet()) {
      long lines = linesBelow(sources().resolve(each.getKey()).resolve("src/main/java"));
      System.out.printf("lines of %s: %d%n", each.getKey(), lines);
      assertThat(lines).as(each.getKey()).isLessThanOrEqualTo(each.getValue());
    }
  }

  private static long linesBelow(Path folder) throws IOException {
    long lines = 0;
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path each : files.filter(file -> file.toString().endsWith(".java")).toList()) {
        lines += Files.readAllLines(each).size();
      }
    }
    return lines;
  }

  @Test
  void figures_areAsRecorded() {
    House core = core();
    List<String> knot = core.knots().getFirst();
    List<String> arrows = core.engineToHandles();
    System.out.printf("types of the largest knot: %d%n", knot.size());
    System.out.printf("arrows from the engine to handles: %d%n", arrows.size());
    assertThat(knot).as("types of the largest knot").hasSize(LARGEST_KNOT);
    assertThat(arrows).as("arrows from the engine to handles").hasSize(ENGINE_TO_HANDLES);
  }

  @Test
  void knots_areWhatReachesEachOther() {
    Map<String, List<String>> arrows =
        Map.of("a", List.of("b"), "b", List.of("c"), "c", List.of("a", "d"), "d", List.of());
    assertThat(new Knots(arrows::get).of(List.of("d", "a")))
        .containsExactly(List.of("d"), List.of("c", "b", "a"));
  }

  private static Path sources() {
    Optional<Path> root = Repository.root();
    assumeTrue(root.isPresent(), "the sources are not here");
    return root.orElseThrow();
  }

  private static House core() {
    Path classes = sources().resolve("cuvette-core/target/classes");
    assumeTrue(Files.isDirectory(classes), "the core is not compiled");
    return House.read(classes);
  }
}
