package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.instrument.DriverProxy;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The table of the seam in docs/ARCHITECTURE.md has what the sources have. */
class ArchitectureTableTest {
  private static final Pattern ROW =
      Pattern.compile("\\| `(\\w+)` \\| ([^|]*) \\| ([^|]*) \\|(?: [^|]*\\|)?");

  /** A name, with a call's parameters for messages or without, and its version. */
  private static final Pattern FUNCTION =
      Pattern.compile("\"(cu[A-Z]\\w+)(?:\\([^\"]*)?\",\\s*(\\d{4,5})");

  private static final Pattern NAME = Pattern.compile("`([A-Z][a-z]\\w+)[`.(]");
  private static final Pattern TYPE =
      Pattern.compile("(?:class|interface|record|enum) ([A-Z]\\w+)");
  private static final Pattern PACKAGE = Pattern.compile("(?m)^    (\\w+) +[^:\n]+: (.+)$");
  private static final Set<String> JDK = Set.of("ServiceLoader", "Cleaner");

  private static String text = "";
  private static final Map<String, Integer> NEWEST = new HashMap<>();

  @BeforeAll
  static void readSources() throws IOException {
    Path root = DocumentFiles.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    text = DocumentFiles.read(root.resolve("docs/ARCHITECTURE.md"));
    try (Stream<Path> sources = Files.walk(root.resolve("cuvette-ffm/src/main/java"))) {
      sources
          .filter(file -> file.toString().endsWith(".java"))
          .map(DocumentFiles::read)
          .forEach(ArchitectureTableTest::addFunctions);
    }
  }

  private static void addFunctions(String source) {
    Matcher function = FUNCTION.matcher(source);
    while (function.find()) {
      NEWEST.merge(function.group(1), Integer.parseInt(function.group(2)), Math::max);
    }
  }

  @Test
  void everyTypeOfTheText_isInTheSources() throws IOException {
    Path root = DocumentFiles.root().orElseThrow();
    Set<String> types = new HashSet<>(JDK);
    for (Path module : modules(root)) {
      try (Stream<Path> files = Files.walk(module.resolve("src"))) {
        files
            .filter(file -> file.toString().endsWith(".java"))
            .flatMap(file -> TYPE.matcher(DocumentFiles.read(file)).results())
            .forEach(found -> types.add(found.group(1)));
      }
    }
    assertThat(NAME.matcher(text).results().map(name -> name.group(1)))
        .hasSizeGreaterThan(60)
        .allMatch(types::contains);
  }

  @Test
  void everyTypeOfAPackage_isInThatPackage() {
    Path engine =
        DocumentFiles.root()
            .orElseThrow()
            .resolve("cuvette-core/src/main/java/io/cuvette/internal");
    assertThat(PACKAGE.matcher(text).results().flatMap(ArchitectureTableTest::files))
        .hasSizeGreaterThan(40)
        .allMatch(file -> Files.isRegularFile(engine.resolve(file)));
  }

  private static Stream<String> files(MatchResult row) {
    return Arrays.stream(row.group(2).split(", "))
        .map(name -> "%s/%s.java".formatted(row.group(1), name));
  }

  private static List<Path> modules(Path root) throws IOException {
    try (Stream<Path> folders = Files.list(root)) {
      return folders.filter(folder -> Files.isDirectory(folder.resolve("src"))).toList();
    }
  }

  @Test
  void everyPart_hasARowForEachOfItsMethods() {
    List<Class<?>> parts =
        DriverProxy.methods().stream()
            .<Class<?>>map(Method::getDeclaringClass)
            .filter(type -> type != CudaDriver.class)
            .distinct()
            .toList();
    assertThat(parts).hasSizeGreaterThanOrEqualTo(10);
    for (Class<?> part : parts) {
      assertThat(rows(part)).as(part.getSimpleName()).isEqualTo(methods(part));
    }
    assertThat(rows(DescriptorCalls.class))
        .isEqualTo(
            methods(DescriptorCalls.class).stream()
                .filter(name -> !name.equals("isAvailable"))
                .toList());
  }

  private static List<String> methods(Class<?> group) {
    return Arrays.stream(group.getDeclaredMethods())
        .filter(method -> !Modifier.isStatic(method.getModifiers()) && !method.isSynthetic())
        .map(Method::getName)
        .sorted()
        .toList();
  }

  private static List<String> rows(Class<?> group) {
    String section = text.split("`" + group.getSimpleName() + "`(?:\\*\\* \\|.*)?\n", -1)[1];
    return section
        .split("\n(?:###|\\| \\*\\*)")[0]
        .lines()
        .filter(line -> line.startsWith("| `"))
        .map(line -> line.substring(3, line.indexOf('`', 3)))
        .sorted()
        .toList();
  }

  @Test
  void everyFunction_isThatOfTheDriver_withItsVersion() {
    Matcher row = ROW.matcher(text);
    TreeSet<String> seen = new TreeSet<>();
    while (row.find()) {
      String[] functions = row.group(2).split(", ");
      String[] versions = row.group(3).split("; ");
      for (int i = 0; i < functions.length; i++) {
        if (functions[i].matches("cu[A-Z]\\w+")) {
          assertThat(newest(versions[i])).as(functions[i]).isEqualTo(NEWEST.get(functions[i]));
          seen.add(functions[i]);
        }
      }
    }
    assertThat(seen).hasSizeGreaterThan(75);
  }

  /** The last of some versions, as the driver writes it. */
  private static int newest(String versions) {
    String[] parts = versions.substring(versions.lastIndexOf(' ') + 1).split("\\.");
    return 1000 * Integer.parseInt(parts[0]) + 10 * Integer.parseInt(parts[1]);
  }
}
