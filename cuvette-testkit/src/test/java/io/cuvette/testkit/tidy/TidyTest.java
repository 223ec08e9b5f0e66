package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

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
  void filesOfAUserBesideThem_areNotRead(@TempDir Path folder) throws IOException {
    for (String file : List.of("My.java", "notes.txt", "mine/My.java", "cuvette-core/My.java")) {
      Path path = folder.resolve(file);
      Files.createDirectories(path.getParent());
      Files.writeString(path, "");
    }
    assertThat(Repository.read(folder))
        .extracting(SourceFile::path)
        .containsExactly("cuvette-core/My.java");
  }

  @Test
  void formatter_isGivenEveryModule_andNotTheRoot() {
    String pom = files.stream().filter(f -> f.path().equals("pom.xml")).findFirst().get().text();
    List<String> modules = found(pom, "<module>(cuvette-[a-z]+)</module>");
    assertThat(modules).isNotEmpty();
    assertThat(found(pom, "<argument>(\\.|build|cuvette-[a-z]+)</argument>"))
        .startsWith("build")
        .containsAll(modules)
        .hasSize(modules.size() + 1);
  }

  private static List<String> found(String text, String pattern) {
    return Pattern.compile(pattern).matcher(text).results().map(match -> match.group(1)).toList();
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
