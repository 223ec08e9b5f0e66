package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/**
 * Holds figures of the core's structure, which may only fall: who lowers one records it here.
 * Skipped where there are no sources, as in the GPU bundle.
 */
class HouseTest {
  /** How many types the largest knot has. */
  private static final int LARGEST_KNOT = 32;

  /** How many arrows lead from the engine to what users hold. */
  private static final int ENGINE_TO_HANDLES = 0;

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

  private static House core() {
    Optional<Path> root = Repository.root();
    assumeTrue(root.isPresent(), "the sources are not here");
    Path classes = root.orElseThrow().resolve("cuvette-core/target/classes");
    assumeTrue(Files.isDirectory(classes), "the core is not compiled");
    return House.read(classes);
  }
}
