package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Each sentence of the promise names tests that there are. */
class PromiseGuideTest {
  private static final Pattern ROW = Pattern.compile("(?m)^\\| (?!sentence|---).*\\| (.*) \\|$");
  private static final Pattern NAME = Pattern.compile("`(\\w+Test)`");

  @Test
  void everySentence_namesTestsThatExist() throws IOException {
    Path root = DocumentFiles.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    Set<String> tests = tests(root);
    String page = DocumentFiles.read(root.resolve("docs/guide/promise.md"));
    var rows = ROW.matcher(page).results().map(row -> row.group(1)).toList();
    assertThat(rows).hasSizeGreaterThan(8);
    assertThat(rows)
        .allSatisfy(row -> {
          var names = NAME.matcher(row).results().map(name -> name.group(1)).toList();
          assertThat(names).isNotEmpty().isSubsetOf(tests);
        });
  }

  private static Set<String> tests(Path root) throws IOException {
    try (Stream<Path> files = Files.walk(root)) {
      return files
          .map(file -> file.getFileName().toString())
          .filter(name -> name.endsWith("Test.java"))
          .map(name -> name.substring(0, name.length() - ".java".length()))
          .collect(Collectors.toSet());
    }
  }
}
