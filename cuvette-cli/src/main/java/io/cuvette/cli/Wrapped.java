package io.cuvette.cli;

import java.io.PrintStream;

/** Prints lines that fit a terminal. Stateless. */
public final class Wrapped {
  /** The columns of a terminal in its usual size. */
  static final int COLUMNS = 80;

  private Wrapped() {}

  /** Prints a label and words; what does not fit goes on below the words. */
  public static void print(PrintStream out, String label, String words) {
    String indent = " ".repeat(label.length());
    StringBuilder line = new StringBuilder(label);
    boolean empty = true;
    for (String word : words.split(" ", -1)) {
      if (!empty && line.length() + 1 + word.length() > COLUMNS) {
        out.println(line);
        line = new StringBuilder(indent);
        empty = true;
      }
      line.append(empty ? "" : " ").append(word);
      empty = false;
    }
    out.println(line.toString().stripTrailing());
  }
}
