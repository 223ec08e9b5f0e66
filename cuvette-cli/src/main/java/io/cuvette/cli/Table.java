package io.cuvette.cli;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/** Rows in aligned columns; those after the first are aligned to the right. Not thread-safe. */
public final class Table {
  private static final String GAP = "  ";

  private final List<List<String>> rows = new ArrayList<>();
  private final int leftColumns;

  /** A table with a header; the first {@code leftColumns} are aligned to the left. */
  public Table(int leftColumns, String... header) {
    this.leftColumns = leftColumns;
    rows.add(List.of(header));
  }

  /** Adds a row of as many cells as the header has. */
  public void add(String... cells) {
    if (cells.length != rows.getFirst().size()) {
      throw new IllegalArgumentException(
          "cells: %d (expected: %d)".formatted(cells.length, rows.getFirst().size()));
    }
    rows.add(List.of(cells));
  }

  /** Whether there is nothing but the header. */
  public boolean isEmpty() {
    return rows.size() == 1;
  }

  /** Prints all rows. */
  public void print(PrintStream out) {
    int[] widths = widths();
    for (List<String> row : rows) {
      StringBuilder line = new StringBuilder();
      for (int i = 0; i < widths.length; i++) {
        String cell = row.get(i);
        String space = " ".repeat(widths[i] - cell.length());
        line.append(i == 0 ? "" : GAP).append(i < leftColumns ? cell + space : space + cell);
      }
      out.println(line.toString().stripTrailing());
    }
  }

  private int[] widths() {
    int[] widths = new int[rows.getFirst().size()];
    for (List<String> row : rows) {
      for (int i = 0; i < widths.length; i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    return widths;
  }
}
