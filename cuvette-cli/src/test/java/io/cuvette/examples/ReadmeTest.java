package io.cuvette.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * The table of examples in README.md has the examples, in their order and with their words; that in
 * docs/migration.md has an example for each block of code of the documents.
 */
class ReadmeTest {
  private static final Pattern ROW = Pattern.compile("(?m)^\\| `([a-z-]+)` \\| (.*) \\|$");

  private static final Pattern EXAMPLE = Pattern.compile("`cuvette example ([a-z-]+)`");

  /** The names of the documents; those of the kind example are their blocks of code. */
  private static final String NAMES =
      "cuvette-tests/src/test/resources/io/cuvette/testkit/guide/names.txt";

  @Test
  void table_hasEachExampleWithItsSummary() throws IOException {
    String root = System.getProperty("cuvette.root");
    assumeTrue(root != null, "the sources are not here");
    String text = Files.readString(Path.of(root, "README.md"), StandardCharsets.UTF_8);
    List<String> rows =
        ROW.matcher(text).results().map(row -> row.group(1) + ": " + row.group(2)).toList();

    assertThat(rows)
        .isEqualTo(Example.ALL.stream().map(one -> one.name() + ": " + one.summary()).toList());
  }

  @Test
  void eachBlockOfCodeOfTheDocuments_isAnExample() throws IOException {
    String root = System.getProperty("cuvette.root");
    assumeTrue(root != null, "the sources are not here");
    List<String> rows = Files.readAllLines(Path.of(root, "docs/migration.md"));
    List<String> blocks =
        Files.readAllLines(Path.of(root, NAMES)).stream()
            .filter(line -> line.matches("00[13] \\| example \\| .*"))
            .map(line -> line.split(" \\| ")[2])
            .toList();
    assertThat(blocks).hasSize(11);
    for (String block : blocks) {
      List<String> found =
          rows.stream().filter(row -> row.startsWith("| " + block + " |")).toList();
      assertThat(found).as(block).hasSize(1);
      List<String> named =
          EXAMPLE.matcher(found.getFirst()).results().map(match -> match.group(1)).toList();
      assertThat(named).as(block).isNotEmpty().allMatch(name -> Example.find(name).isPresent());
    }
  }
}
