package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import io.cuvette.testkit.support.PublicApi;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Executable;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * The tables of docs/migration.md: every name of the documents is in the first column, with its
 * arguments, and what is in the second is public and takes so many.
 */
class MigrationGuideTest {
  private static final int NAMES = 291;
  private static final Pattern CODE = Pattern.compile("`([^`]*)`");
  private static final Pattern CALL = Pattern.compile("([^()]*)\\((.*)\\)");

  /** What a small word before a dot stands for. */
  private static final Map<String, String> RECEIVERS =
      Map.of("cuda", "Cuda", "device", "CudaDevice", "pool", "MemoryPool", "stream", "CudaStream");

  /** The public classes by name. */
  private static final Map<String, Class<?>> TYPES = new HashMap<>();

  /** The types of the module for arrays, which is built after this one. */
  private static final Set<String> OF_ARRAYS = new HashSet<>();

  private static List<String> there = List.of();
  private static List<String> here = List.of();

  @BeforeAll
  static void readTables() {
    Path root = DocumentFiles.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    PublicApi.classesBeside(Cuda.class).forEach(type -> TYPES.put(type.getSimpleName(), type));
    DocumentFiles.files(root.resolve("cuvette-array/src/main/java/io/cuvette/array"))
        .forEach(file -> OF_ARRAYS.add(file.getFileName().toString().replace(".java", "")));
    List<String> rows =
        DocumentFiles.read(root.resolve("docs/migration.md"))
            .lines()
            .filter(line -> line.startsWith("| ") && !line.startsWith("| there"))
            .toList();
    there = rows.stream().map(row -> row.substring(2).split(" ?\\| ", 2)[0]).toList();
    here = rows.stream().map(row -> row.substring(1).split(" ?\\| ", -1)[1]).toList();
  }

  /** The names of the documents: number, kind, and how the page writes it. */
  private static List<String> names() {
    try (InputStream list = MigrationGuideTest.class.getResourceAsStream("names.txt")) {
      return new String(
              Objects.requireNonNull(list, "names.txt").readAllBytes(), StandardCharsets.UTF_8)
          .lines()
          .filter(line -> !line.startsWith("#"))
          .map(line -> line.split(" \\| ", 3)[2])
          .toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void everyNameOfTheDocuments_hasItsRow() {
    Set<String> written = new HashSet<>(codes(there));
    for (String cell : there) {
      Stream.of(cell.split(";")).map(String::strip).forEach(written::add);
      Stream.of(CODE.matcher(cell).replaceAll("").split("[;,]"))
          .map(String::strip)
          .forEach(written::add);
    }
    assertThat(names()).hasSize(NAMES);
    assertThat(written).containsAll(names());
  }

  /** The same name with other arguments would be a claim that nobody has looked up. */
  @Test
  void everyCallOfTheDocuments_hasItsArguments() {
    Set<String> known = Set.copyOf(names());
    Function<String, String> baseOf = name -> name.replaceAll("\\(.*", "");
    Set<String> bases =
        known.stream().filter(name -> name.contains("(")).map(baseOf).collect(Collectors.toSet());
    List<String> others = new ArrayList<>(codes(there));
    others.removeIf(name -> !name.contains("(") || !bases.contains(baseOf.apply(name)));
    assertThat(others).hasSizeGreaterThan(100);
    others.removeIf(known::contains);
    assertThat(others).isEmpty();
  }

  @Test
  void everyNameHere_isPublic_andTakesSoManyArguments() {
    List<String> unknown = new ArrayList<>(codes(here));
    assertThat(unknown).hasSizeGreaterThan(200);
    unknown.removeIf(MigrationGuideTest::isKnown);
    assertThat(unknown).isEmpty();
  }

  private static List<String> codes(List<String> cells) {
    return cells.stream()
        .flatMap(cell -> CODE.matcher(cell).results().map(found -> found.group(1)))
        .toList();
  }

  private static boolean isKnown(String written) {
    if (written.startsWith("CUVETTE_") || written.startsWith("cuvette example ")) {
      return true; // the environment and the command line have tests of their own
    }
    if (OF_ARRAYS.contains(written.replaceAll("[.(].*", ""))) {
      return true; // that module has a test of its own
    }
    Matcher call = CALL.matcher(written);
    boolean called = call.matches();
    String name = called ? call.group(1) : written;
    int arguments = !called ? -1 : call.group(2).isEmpty() ? 0 : call.group(2).split(",").length;
    if (name.startsWith("new ")) {
      Class<?> type = TYPES.get(name.substring("new ".length()));
      return type != null && fits(Arrays.stream(type.getConstructors()), arguments);
    }
    int dot = name.indexOf('.');
    if (dot < 0) {
      return TYPES.containsKey(name)
          || TYPES.values().stream().anyMatch(type -> has(type, name, arguments));
    }
    String before = name.substring(0, dot);
    Class<?> type = TYPES.get(RECEIVERS.getOrDefault(before, before));
    return type != null && has(type, name.substring(dot + 1), arguments);
  }

  private static boolean has(Class<?> type, String name, int arguments) {
    return fits(
            Arrays.stream(type.getMethods()).filter(method -> method.getName().equals(name)),
            arguments)
        || (arguments < 0
            && Arrays.stream(type.getFields())
                .anyMatch(field ->
                    field.getName().equals(name) && Modifier.isPublic(field.getModifiers())));
  }

  private static boolean fits(Stream<? extends Executable> calls, int arguments) {
    return calls.anyMatch(call -> arguments < 0 || call.getParameterCount() == arguments);
  }
}
