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

/** The table of examples in README.md has the examples, in their order and with their words. */
class ReadmeTest {
  private static final Pattern ROW = Pattern.compile("(?m)^\\| `([a-z-]+)` \\| (.*) \\|$");

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
}
