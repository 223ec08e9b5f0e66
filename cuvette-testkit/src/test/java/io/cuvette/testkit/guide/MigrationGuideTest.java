package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The names in docs/migration.md are names of the public API. */
class MigrationGuideTest {
  private static final Pattern NAME = Pattern.compile("`([^`]*)`");
  private static final Pattern ARGUMENTS = Pattern.compile("\\(.*\\)");

  /** What a small word before a dot stands for. */
  private static final Map<String, String> RECEIVERS =
      Map.of(
          "cuda", "Cuda",
          "device", "CudaDevice",
          "pool", "MemoryPool",
          "stream", "CudaStream");

  /** By class the names of its public members. */
  private static final Map<String, Set<String>> MEMBERS = new HashMap<>();

  private static List<String> here = List.of();

  @BeforeAll
  static void readNames() throws IOException {
    Path root = DocumentFiles.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    try (Stream<Path> sources = Files.list(root.resolve("cuvette-core/src/main/java/io/cuvette"))) {
      sources.map(file -> file.getFileName().toString()).forEach(MigrationGuideTest::addClass);
    }
    here =
        DocumentFiles.read(root.resolve("docs/migration.md"))
            .lines()
            .filter(line -> line.startsWith("| ") && !line.startsWith("| there"))
            .map(line -> line.split(" \\| ", -1)[1])
            .flatMap(cell -> NAME.matcher(cell).results().map(found -> found.group(1)))
            .toList();
  }

  private static void addClass(String file) {
    if (!file.endsWith(".java") || file.endsWith("-info.java")) {
      return;
    }
    String name = file.substring(0, file.length() - ".java".length());
    try {
      Class<?> type = Class.forName(Cuda.class.getPackageName() + "." + name);
      if (Modifier.isPublic(type.getModifiers())) {
        Set<String> members = new HashSet<>();
        Arrays.stream(type.getMethods()).map(Method::getName).forEach(members::add);
        Arrays.stream(type.getFields()).map(Field::getName).forEach(members::add);
        MEMBERS.put(name, members);
      }
    } catch (ClassNotFoundException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void everyNameOfTheTables_isPublic() {
    List<String> unknown = new ArrayList<>(here);
    unknown.removeIf(MigrationGuideTest::isKnown);
    assertThat(unknown).isEmpty();
    assertThat(here).hasSizeGreaterThan(150);
  }

  private static boolean isKnown(String written) {
    Matcher arguments = ARGUMENTS.matcher(written);
    String name = arguments.replaceFirst("");
    if (name.startsWith("new ")) {
      return MEMBERS.containsKey(name.substring("new ".length()));
    }
    int dot = name.indexOf('.');
    if (dot < 0) {
      return MEMBERS.containsKey(name)
          || name.startsWith("CUVETTE_") // a variable of the environment
          || MEMBERS.values().stream().anyMatch(members -> members.contains(name));
    }
    String before = name.substring(0, dot);
    String type = RECEIVERS.getOrDefault(before, before);
    return MEMBERS.getOrDefault(type, Set.of()).contains(name.substring(dot + 1));
  }
}
