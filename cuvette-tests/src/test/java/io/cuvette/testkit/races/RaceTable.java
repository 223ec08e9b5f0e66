package io.cuvette.testkit.races;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;

/**
 * The matrix as a table of Markdown: a row for each operation, a column for each closer. Stateless.
 */
final class RaceTable {
  private RaceTable() {}

  /** What completed and what found something closed in each cell, one row a line. */
  static String of(List<Cell> cells) {
    Map<String, Map<Closer, String>> rows = new LinkedHashMap<>();
    for (Cell cell : cells) {
      rows.computeIfAbsent(cell.operation.toString(), _ -> new LinkedHashMap<>())
          .put(cell.closer, cell.outcomes.toString());
    }
    StringBuilder text = new StringBuilder(header());
    rows.forEach((operation, row) -> {
      StringJoiner line = new StringJoiner(" | ", "| ", " |\n");
      line.add("`" + operation + "`");
      for (Closer closer : Closer.values()) {
        line.add(row.getOrDefault(closer, ""));
      }
      text.append(line);
    });
    return text.toString();
  }

  private static String header() {
    StringJoiner titles = new StringJoiner(" | ", "| ", " |\n").add("operation");
    StringJoiner rule = new StringJoiner("|", "|", "|\n").add("---");
    for (Closer closer : Closer.values()) {
      titles.add(closer.title());
      rule.add("---");
    }
    return titles + rule.toString();
  }
}
