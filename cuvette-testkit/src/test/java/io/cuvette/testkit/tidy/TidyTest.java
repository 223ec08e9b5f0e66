package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Holds the rules over the sources. Skipped where there are none, as in the GPU bundle. */
class TidyTest {
  private static List<SourceFile> files = List.of();

  @BeforeAll
  static void readSources() {
    Optional<Path> root = Repository.root();
    assumeTrue(root.isPresent(), "the sources are not here");
    files = Repository.read(root.orElseThrow());
  }

  @Test
  void repository_isReadWhole() {
    assertThat(files)
        .extracting(SourceFile::path)
        .contains(
            "pom.xml",
            "README.md",
            "cuvette",
            ".ci/run",
            "cuvette-core/src/main/java/module-info.java",
            "cuvette-testkit/src/test/java/io/cuvette/testkit/tidy/TidyTest.java");
  }

  @Test
  void everyFile_keepsTheRules() {
    assertThat(
            files.stream()
                .flatMap(file -> Rule.all().stream().flatMap(rule -> rule.check(file).stream())))
        .isEmpty();
  }

  @Test
  void everyPackage_isNullMarked() {
    assertThat(PackageRules.nullMarked(files)).isEmpty();
  }

  @Test
  void everyProvider_isFoundOnModulePathAndClassPath() {
    assertThat(PackageRules.services(files)).isEmpty();
  }
}
