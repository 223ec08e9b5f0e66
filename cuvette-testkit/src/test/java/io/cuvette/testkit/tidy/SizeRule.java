package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Files of at most 500 lines, Java of at most 100 columns and scripts of at most 120. Stateless.
 */
final class SizeRule implements Rule {
  static final int MOST_LINES = 500;
  static final int MOST_COLUMNS = 120;

  // The formatter leaves them long too.
  private static final Pattern UNBREAKABLE = Pattern.compile("^(import|package) .*|.*https?://.*");

  @Override
  public List<Finding> check(SourceFile file) {
    boolean script = file.path().endsWith(".sh") || file.path().endsWith(".py");
    if (!file.isJava() && !script) {
      return List.of();
    }
    List<Finding> findings = new ArrayList<>();
    List<String> lines = file.lines();
    if (lines.size() > MOST_LINES) {
      findings.add(file.finding(1, lines.size() + " lines (expected: <= " + MOST_LINES + ")"));
    }
    for (int i = 0; i < lines.size(); i++) {
      int columns = lines.get(i).codePointCount(0, lines.get(i).length());
      if (columns > MOST_COLUMNS && !UNBREAKABLE.matcher(lines.get(i)).matches()) {
        findings.add(file.finding(i + 1, columns + " columns (expected: <= " + MOST_COLUMNS + ")"));
      }
    }
    return findings;
  }
}
