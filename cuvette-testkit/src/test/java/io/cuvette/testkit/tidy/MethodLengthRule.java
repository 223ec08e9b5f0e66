package io.cuvette.testkit.tidy;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Methods and constructors of at most 60 lines, from the line of their name to their closing brace.
 * Found by braces: a block is a method when what stands before it, back to the last statement, is a
 * declaration. Stateless.
 */
final class MethodLengthRule implements Rule {
  static final int MOST_LINES = 60;

  private static final Pattern DECLARATION =
      Pattern.compile("(?s).*\\b[\\w]+\\s*\\([^{}]*\\)\\s*(throws [\\w\\s.,]+)?", Pattern.DOTALL);
  private static final Pattern NOT_A_METHOD =
      Pattern.compile(
          "(?s)(.*\\b(if|for|while|switch|try|catch|synchronized|new|record|return|case|class|else"
              + "|throw|assert|yield)\\b.*)|.*(->|=).*");

  private record Block(String name, int line) {}

  @Override
  public List<Finding> check(SourceFile file) {
    if (!file.isJava()) {
      return List.of();
    }
    List<Finding> findings = new ArrayList<>();
    Deque<Block> open = new ArrayDeque<>();
    String code = file.code();
    int line = 1;
    int start = 0;
    for (int at = 0; at < code.length(); at++) {
      switch (code.charAt(at)) {
        case '\n' -> line++;
        case ';' -> start = at + 1;
        case '{' -> {
          open.push(block(code.substring(start, at), line));
          start = at + 1;
        }
        case '}' -> {
          if (!open.isEmpty()) {
            close(file, open.pop(), line, findings);
          }
          start = at + 1;
        }
        default -> {}
      }
    }
    return findings;
  }

  private static void close(SourceFile file, Block block, int line, List<Finding> findings) {
    int lines = line - block.line + 1;
    if (!block.name.isEmpty() && lines > MOST_LINES) {
      findings.add(
          file.finding(
              block.line, block.name + ": " + lines + " lines (expected: <= " + MOST_LINES + ")"));
    }
  }

  /** The name of the method that the block is the body of, else the empty name. */
  private static Block block(String before, int line) {
    String header = withoutAnnotations(before).strip();
    boolean method =
        DECLARATION.matcher(header).matches() && !NOT_A_METHOD.matcher(header).matches();
    if (!method) {
      return new Block("", line);
    }
    String upToName = header.substring(0, header.indexOf('(')).strip();
    String name = upToName.substring(upToName.lastIndexOf(' ') + 1);
    int headerLines = (int) header.chars().filter(c -> c == '\n').count();
    return new Block(name, line - headerLines);
  }

  private static String withoutAnnotations(String text) {
    return text.replaceAll("@[\\w.]+(\\([^()]*\\))?", "");
  }
}
