package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Holds what all texts of the repository keep, Java or not: nothing left over from work, scripts of
 * a size. The other rules are those of Checkstyle and {@link ArchitectureTest}. Skipped where there
 * are no sources, as in the GPU bundle.
 */
class TidyTest {
  // Each pattern is written so that it does not find itself.
  private static final Map<String, Pattern> LEFTOVERS =
      Map.of(
          "a note of something to do",
          Pattern.compile("\\b(TOD[O]|FIXM[E]|XX[X])\\b"),
          "a folder of one machine",
          Pattern.compile("(?<![\\w.}*-])/(work|root|tmp|home/\\w+)/[\\w.]"),
          "the host of a registry",
          Pattern.compile(
              "repo1?[.](maven|apache)|maven[.]org/maven2|pypi[.]org|pythonhosted[.]org"
                  + "|registry[.]npmjs|crates[.]io|proxy[.]golang"));
  private static final int MOST_LINES = 500;
  private static final int MOST_COLUMNS = 120;

  private static SortedMap<String, String> files = new TreeMap<>();

  @BeforeAll
  static void readSources() {
    Optional<Path> root = Repository.root();
    assumeTrue(root.isPresent(), "the sources are not here");
    files = Repository.read(root.orElseThrow());
  }

  @Test
  void repository_isReadWhole() {
    assertThat(files)
        .containsKeys(
            "pom.xml",
            "README.md",
            "cuvette",
            ".ci/run",
            "build/checkstyle/rules.xml",
            "cuvette-core/src/main/java/module-info.java",
            "cuvette-tests/src/test/java/io/cuvette/testkit/tidy/TidyTest.java");
  }

  @Test
  void filesOfAUserBesideThem_areNotRead(@TempDir Path folder) throws IOException {
    for (String file : List.of("My.java", "notes.txt", "mine/My.java", "cuvette-core/My.java")) {
      Path path = folder.resolve(file);
      Files.createDirectories(path.getParent());
      Files.writeString(path, "");
    }
    assertThat(Repository.read(folder)).containsOnlyKeys("cuvette-core/My.java");
  }

  @Test
  void formatterAndCheckstyle_areGivenEveryModule_andNotTheRoot() {
    String pom = files.getOrDefault("pom.xml", "");
    List<String> modules = found(pom, "<module>(cuvette-[a-z]+)</module>");
    assertThat(modules).isNotEmpty();
    String checkstyle = files.getOrDefault("build/checkstyle/pom.xml", "");
    assertThat(found(checkstyle, "<argument>(\\.|build|cuvette-[a-z]+)</argument>"))
        .startsWith("build")
        .containsAll(modules)
        .hasSize(modules.size() + 1);
    List<String> sources =
        found(checkstyle, "<sourceDirectory>.*/(build|cuvette-[a-z]+(?=/src))\\b.*<");
    assertThat(sources)
        .startsWith("build")
        .allSatisfy(each -> assertThat(sources).filteredOn(each::equals).hasSize(checks(each)))
        .containsAll(modules);
  }

  /** Sizes and rules; of tests the sizes alone. */
  private static int checks(String module) {
    return module.equals("cuvette-tests") ? 1 : 2;
  }

  private static List<String> found(String text, String pattern) {
    return Pattern.compile(pattern).matcher(text).results().map(match -> match.group(1)).toList();
  }

  @Test
  void nothing_isLeftOverFromWork() {
    assertThat(
            files.entrySet().stream()
                .flatMap(file ->
                    leftovers(file.getValue()).stream().map(line -> file.getKey() + ": " + line)))
        .isEmpty();
  }

  private static List<String> leftovers(String text) {
    return text.lines()
        .flatMap(line ->
            LEFTOVERS.entrySet().stream()
                .filter(leftover -> leftover.getValue().matcher(line).find())
                .map(leftover -> leftover.getKey() + ": " + line.strip()))
        .toList();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "// TO" + "DO later",
        "a FIX" + "ME",
        "see /wo" + "rk/x",
        "'/ro" + "ot/.m2'",
        "pip -i https://py" + "pi.org/simple"
      })
  void leftover_isFound(String line) {
    assertThat(leftovers("a\n" + line)).hasSize(1);
  }

  @Test
  void leftover_isNoOrdinaryWord() {
    assertThat(leftovers("network/works the root/x a.work/b /workload $HOME/work/x")).isEmpty();
  }

  @Test
  void scripts_haveTheSizesOfSources() {
    assertThat(
            files.entrySet().stream()
                .filter(file -> file.getKey().endsWith(".sh") || file.getKey().endsWith(".py"))
                .filter(file -> isTooLarge(file.getValue()))
                .map(Map.Entry::getKey))
        .isEmpty();
  }

  private static boolean isTooLarge(String text) {
    return text.lines().count() > MOST_LINES
        || text.lines().anyMatch(line -> line.length() > MOST_COLUMNS && !line.contains("://"));
  }
}
