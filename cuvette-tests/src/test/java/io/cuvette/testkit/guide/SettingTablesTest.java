package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.MemoryLimit;
import io.cuvette.sim.SimulatedOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The tables of settings in the guide are what the parsers do. */
class SettingTablesTest {
  private static final Pattern ROW =
      Pattern.compile("(?m)^\\| `([^`]*)` \\| (\\d+|no limit|refused) \\|.*\\|$");

  /** A row of the table of the simulator's settings. */
  private static final Pattern SETTING =
      Pattern.compile("(?m)^\\| `([a-zA-Z]+)` \\| .+ \\| (`[^|]+|[^|]+) \\|$");

  private static final long DEVICE_BYTES = 80L << 30;

  /** What the simulator takes as memory of a device. */
  private static final long LEAST = 1L << 20;

  private static final long MOST = 8L << 40;

  private static List<MatchResult> rows = List.of();

  private static String simulatorSettings = "";

  @BeforeAll
  static void readTable() {
    Path root = DocumentFiles.root().orElse(null);
    assumeTrue(root != null, "the sources are not here");
    String page = DocumentFiles.read(root.resolve("docs/guide/limits.md"));
    String simulatorPage = DocumentFiles.read(root.resolve("docs/guide/simulated-device.md"));
    int table = simulatorPage.indexOf("| setting | value | default |");
    simulatorSettings = simulatorPage.substring(table, simulatorPage.indexOf("\n\n", table));
    rows = ROW.matcher(page).results().toList();
  }

  @Test
  void everyRow_isTrue() {
    assertThat(rows).hasSizeGreaterThan(50);
    for (MatchResult row : rows) {
      String text = row.group(1);
      if (row.group(2).equals("refused")) {
        assertThatThrownBy(() -> MemoryLimit.parse("LIMIT", text))
            .as(text)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageStartingWith("LIMIT: '" + text + "' (expected: ");
      } else {
        assertThat(MemoryLimit.parse("LIMIT", text).bytesOf(DEVICE_BYTES))
            .as(text)
            .isEqualTo(bytes(row));
      }
    }
  }

  /** The setting of the simulator has the same meaning, but for percentages and no limit. */
  @Test
  void everyRow_isTheSameForTheSimulatedDevice() {
    for (MatchResult row : rows) {
      String text = row.group(1);
      boolean isMemory =
          row.group(2).matches("\\d+")
              && !text.contains("%")
              && LEAST <= bytes(row)
              && bytes(row) <= MOST;
      if (isMemory) {
        assertThat(SimulatedOptions.parse("memory=" + text).memoryBytes())
            .as(text)
            .isEqualTo(bytes(row));
      } else {
        assertThatThrownBy(() -> SimulatedOptions.parse("memory=" + text))
            .as(text)
            .isInstanceOf(IllegalArgumentException.class);
      }
    }
  }

  @Test
  void everySettingOfTheSimulatedDevice_isInItsTable() {
    assertThatThrownBy(() -> SimulatedOptions.parse("colour=red"))
        .satisfies(refused -> {
          String message = String.valueOf(refused.getMessage());
          String keys = message.substring(message.indexOf("expected: ") + 10);
          assertThat(SETTING.matcher(simulatorSettings).results().map(row -> row.group(1)))
              .containsExactly(keys.replace(")", "").split(", "));
        });
  }

  /** Defaults that depend on something are told in words. */
  @Test
  void everyDefaultInTheTableOfTheSimulatedDevice_isOne() {
    List<String> defaults =
        SETTING
            .matcher(simulatorSettings)
            .results()
            .filter(row -> row.group(2).startsWith("`") && !row.group(1).equals("seed"))
            .map(row -> row.group(1) + "=" + row.group(2).replace("`", ""))
            .toList();
    assertThat(defaults).hasSizeGreaterThan(8);
    assertThat(SimulatedOptions.parse(String.join(",", defaults) + ",seed=0"))
        .isEqualTo(SimulatedOptions.DEFAULTS);
  }

  /** Each component of the options can be set by text, and has a method that changes it. */
  @Test
  void everyOptionOfTheSimulatedDevice_isASetting() {
    long settings = SETTING.matcher(simulatorSettings).results().count();
    assertThat(SimulatedOptions.class.getRecordComponents()).hasSize((int) settings);
    assertThat(SimulatedOptions.class.getMethods())
        .filteredOn(method -> method.getName().startsWith("with"))
        .hasSize((int) settings);
  }

  /** A blank line ends a table: what follows it is no row any more. */
  @Test
  void everyTableOfThePages_beginsWithItsHeader() throws IOException {
    for (Path page : DocumentFiles.pages(DocumentFiles.root().orElseThrow())) {
      List<String> lines = DocumentFiles.read(page).lines().toList();
      for (int i = 1; i < lines.size(); i++) {
        if (lines.get(i).startsWith("|") && !lines.get(i - 1).startsWith("|")) {
          assertThat(lines.subList(i, lines.size()))
              .as("%s, line %d", page, i + 1)
              .hasSizeGreaterThan(1)
              .element(1)
              .asString()
              .startsWith("|--");
        }
      }
    }
  }

  private static long bytes(MatchResult row) {
    return row.group(2).equals("no limit") ? Long.MAX_VALUE : Long.parseLong(row.group(2));
  }
}
