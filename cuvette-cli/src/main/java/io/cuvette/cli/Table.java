package io.cuvette.cli;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Rows in aligned columns; those after the first are aligned to the right. Not thread-safe. */
public final class Table {
  private static final String GAP = "  ";

  /** A column is not made narrower than this. */
  private static final int LEAST = 8;

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

  /**
   * Prints all rows, no line longer than {@value Wrapped#COLUMNS} columns: if they do not fit, each
   * row takes two lines, that of the columns aligned to the left and below it the others.
   */
  public void print(PrintStream out) {
    int columns = rows.getFirst().size();
    boolean fits = Arrays.stream(widths()).sum() + GAP.length() * (columns - 1) <= Wrapped.COLUMNS;
    int[] widths = fits ? widths() : narrowed(widths());
    for (List<String> row : rows) {
      if (fits) {
        out.println(line(row, widths, 0, columns).stripTrailing());
      } else {
        out.println(line(row, widths, 0, leftColumns).stripTrailing());
        out.println(GAP + line(row, widths, leftColumns, columns));
      }
    }
  }

  private String line(List<String> row, int[] widths, int from, int to) {
    StringBuilder line = new StringBuilder();
    for (int i = from; i < to; i++) {
      String cell = row.get(i);
      cell = cell.length() <= widths[i] ? cell : cell.substring(0, widths[i] - 3) + "...";
      String space = " ".repeat(widths[i] - cell.length());
      line.append(i == from ? "" : GAP).append(i < leftColumns ? cell + space : space + cell);
    }
    return line.toString();
  }

  /** Takes from the widest of the columns aligned to the left what does not fit. */
  private int[] narrowed(int[] widths) {
    int over = GAP.length() * (leftColumns - 1) - Wrapped.COLUMNS;
    int widest = 0;
    for (int i = 0; i < leftColumns; i++) {
      over += widths[i];
      widest = widths[i] > widths[widest] ? i : widest;
    }
    if (over > 0) {
      widths[widest] = Math.max(LEAST, widths[widest] - over);
    }
    return widths;
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
