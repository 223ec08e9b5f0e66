package io.cuvette.testkit.tidy;

/**
 * Replaces the comments and the contents of literals of Java text by spaces, so that rules see code
 * alone. Line ends stay, and so each character keeps its line and column. Confined to one thread.
 */
final class Blanker {
  private final String text;
  private final StringBuilder out;
  private int at;

  private Blanker(String text) {
    this.text = text;
    this.out = new StringBuilder(text.length());
  }

  static String blank(String text) {
    return new Blanker(text).run();
  }

  private String run() {
    while (at < text.length()) {
      if (text.startsWith("//", at)) {
        blankTo(indexOrEnd("\n", at));
      } else if (text.startsWith("/*", at)) {
        blankTo(after("*/", at + 2));
      } else if (text.startsWith("\"\"\"", at)) {
        blankTo(afterTextBlock());
      } else if (text.charAt(at) == '"' || text.charAt(at) == '\'') {
        blankTo(afterLiteral(text.charAt(at)));
      } else {
        out.append(text.charAt(at++));
      }
    }
    return out.toString();
  }

  private void blankTo(int end) {
    for (; at < end; at++) {
      out.append(text.charAt(at) == '\n' ? '\n' : ' ');
    }
  }

  private int indexOrEnd(String what, int from) {
    int index = text.indexOf(what, from);
    return index < 0 ? text.length() : index;
  }

  private int after(String what, int from) {
    return Math.min(text.length(), indexOrEnd(what, from) + what.length());
  }

  private int afterTextBlock() {
    int end = at + 3;
    while (end < text.length() && !text.startsWith("\"\"\"", end)) {
      end += text.charAt(end) == '\\' ? 2 : 1;
    }
    return Math.min(text.length(), end + 3);
  }

  private int afterLiteral(char quote) {
    int end = at + 1;
    while (end < text.length() && text.charAt(end) != quote && text.charAt(end) != '\n') {
      end += text.charAt(end) == '\\' ? 2 : 1;
    }
    return Math.min(text.length(), end + 1);
  }
}
