package io.cuvette.testkit.tidy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The names and figures of README.md, CONTRIBUTING.md and the guide are those of the sources. */
class DocumentedFiguresTest {
  /** A system property of the library or of the build, or a variable of its environment. */
  private static final Pattern NAME =
      Pattern.compile("(?<![\\w./])(cuvette(?:\\.[a-z][a-zA-Z]*)+|C(?:UVETTE|UPY|UDA)_[A-Z_]+)\\b");

  /** How main code reads one. */
  private static final Pattern READ =
      Pattern.compile("\"(cuvette(?:\\.[a-z][a-zA-Z]*)+|C(?:UVETTE|UPY|UDA)_[A-Z_]+)\"");

  private static SortedMap<String, String> files = new TreeMap<>();

  @BeforeAll
  static void readSources() {
    Path root = Repository.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    files = Repository.read(root);
  }

  @Test
  void settingsOfTheLibrary_areInTheGuidesTable() {
    String page = text("docs/guide/limits.md");
    String table =
        page.substring(page.indexOf("| environment variable |"), page.indexOf("A wrong text"));
    Set<String> read =
        found(
            READ,
            path -> path.matches("cuvette-(core|ffm)/src/main/.*\\.java"),
            line -> line.contains("getProperty(") || line.contains("getBoolean("));
    read.addAll(
        found(READ, path -> path.endsWith("/Environment.java"), line -> !line.contains(" == ")));
    assertThat(read).hasSizeGreaterThan(7);
    assertThat(found(NAME, table)).containsAll(read);
  }

  /** A line that was renamed since would let its mutation live unseen, or no longer. */
  @Test
  void linesOfTheMutationsThatMayLive_areInTheSources() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "build/mutations/Survivors.java",
                "build/mutations/survivors.txt",
                ".")
            .directory(Repository.root().orElseThrow().toFile())
            .redirectErrorStream(true)
            .start();
    try (BufferedReader printed = process.inputReader()) {
      String all = printed.readAllAsString();
      assertThat(process.waitFor()).as(all).isZero();
    } finally {
      process.destroyForcibly();
    }
  }

  /** What a page calls a setting is read somewhere: by the library, its tests or the build. */
  @Test
  void settingsOfThePages_areRead() {
    String sources =
        files.entrySet().stream()
            .filter(file -> file.getKey().matches(".*\\.(java|xml)"))
            .map(file -> file.getValue())
            .collect(Collectors.joining("\n"));
    Set<String> named =
        found(NAME, path -> path.endsWith(".md") && !path.equals("CHANGELOG.md"), _ -> true);
    named.removeIf(name ->
        name.matches(
            "CUDA_(VISIBLE_DEVICES|DEVICE_MAX_CONNECTIONS|MODULE_LOADING|ERROR_[A-Z_]+|SUCCESS)"));
    assertThat(named).contains("cuvette.seed", "CUPY_GPU_MEMORY_LIMIT", "cuvette.mutations.of");
    assertThat(named)
        .filteredOn(name -> !sources.contains("\"" + name + "\"") && !sources.contains("<" + name))
        .isEmpty();
  }

  @Test
  void sizesOfSources_areThoseThatAreChecked() {
    String sizes = text("build/checkstyle/sizes.xml");
    String method = most(text("build/checkstyle/rules.xml"), "MethodLength");
    assertThat(text("CONTRIBUTING.md"))
        .contains("end at " + most(sizes, "FileLength") + "; methods")
        .contains("end at " + method + "; lines end")
        .contains("lines end at " + most(sizes, "LineLength") + " columns");
    assertThat(text("build/MethodLengths.java")).contains("int MOST = " + method + ";");
  }

  @Test
  void howTheBuildRuns_isAsContributingSays() {
    String pom = text("pom.xml");
    assertThat(pom).contains("<cuvette.forks>1C<").contains("<cuvette.forks>1<");
    assertThat(pom).contains("<cuvette.forks.beside>0.5C<").contains("<cuvette.forks.beside>1<");
    assertThat(text("CONTRIBUTING.md"))
        .contains("as many JVMs as there are cores (one where")
        .contains("or half as many in the modules that are tested beside");
    assertThat(found(Pattern.compile("(?m)mvn.* -P([a-z-]+)"), text("CONTRIBUTING.md")))
        .hasSizeGreaterThan(3)
        .allSatisfy(profile -> assertThat(pom).contains("<id>" + profile + "</id>"));
    assertThat(text("CONTRIBUTING.md")).contains("-Pstress");
  }

  @Test
  void defaultsOfMutations_areThoseOfTheirModule() {
    String pom = text("build/mutations/pom.xml");
    String page = text("CONTRIBUTING.md");
    assertThat(value(pom, "cuvette.mutations")).isEqualTo("io.cuvette.*");
    assertThat(value(pom, "cuvette.mutations.threads")).as("one for each core").isEqualTo("0");
    assertThat(value(pom, "cuvette.mutations.tests")).isEqualTo("io.cuvette.*");
    assertThat(page)
        .contains(
            "| `cuvette.mutations.of`, `cuvette.mutations.seed` | a sample: one of so many changes,"
                + " chosen by the seed | %s, %s |"
                    .formatted(
                        value(pom, "cuvette.mutations.of"), value(pom, "cuvette.mutations.seed")))
        .containsPattern(
            "cuvette\\.mutations\\.seconds` .* \\| %s \\|"
                .formatted(value(pom, "cuvette.mutations.seconds")));
  }

  /** The names that a program is told to depend on, and the flag that it starts with. */
  @Test
  void installedModules_areThoseOfReadme() {
    String page = text("README.md");
    String version = value(text("pom.xml"), "version");
    assertThat(page)
        .contains("`io.cuvette:cuvette-core:" + version + "` and `cuvette-ffm`")
        .contains("mvn -B install -Dmaven.test.skip=true -pl cuvette-ffm -am")
        .contains("--enable-native-access=io.cuvette.ffm`");
    String ffm = text("cuvette-ffm/pom.xml");
    assertThat(value(ffm, "cuvette.module")).isEqualTo("io.cuvette.ffm");
    assertThat(ffm).contains("<artifactId>cuvette-core</artifactId>").doesNotContain("testkit");
    assertThat(text("pom.xml"))
        .as("the JDK that README.md asks for")
        .contains("<version>[25,26)</version>");
    assertThat(page).contains("You need a JDK 25 ");
  }

  private static String text(String path) {
    return files.getOrDefault(path, "");
  }

  private static String value(String pom, String property) {
    List<String> values =
        Pattern.compile("<%s>([^<]*)</".formatted(Pattern.quote(property)))
            .matcher(pom)
            .results()
            .map(match -> match.group(1))
            .toList();
    assertThat(values).as(property).isNotEmpty();
    return values.getFirst();
  }

  private static String most(String rules, String module) {
    int start = rules.indexOf("\"" + module + "\"");
    int max = rules.indexOf("name=\"max\" value=\"", start) + "name=\"max\" value=\"".length();
    return rules.substring(max, rules.indexOf('"', max));
  }

  private static Set<String> found(
      Pattern pattern, Predicate<String> path, Predicate<String> line) {
    Set<String> found = new TreeSet<>();
    files.forEach((name, text) -> {
      if (path.test(name)) {
        text.lines().filter(line).forEach(each -> found.addAll(found(pattern, each)));
      }
    });
    return found;
  }

  private static Set<String> found(Pattern pattern, String text) {
    return pattern
        .matcher(text)
        .results()
        .map(match -> match.group(1))
        .collect(Collectors.toCollection(TreeSet::new));
  }
}
