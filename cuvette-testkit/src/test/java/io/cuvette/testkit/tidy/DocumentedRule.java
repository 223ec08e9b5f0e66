package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Public types of delivered code say what they are. (doclint checks what is written; whether
 * something is written is checked here, because doclint would want each parameter of each method.)
 * Stateless.
 */
final class DocumentedRule implements Rule {
  private static final Pattern PUBLIC_TYPE =
      Pattern.compile(
          "^public (?:(?:abstract|final|sealed|non-sealed|static)"
              + " )*(?:class|interface|record|enum|@interface) .*");

  @Override
  public List<Finding> check(SourceFile file) {
    if (!file.isMainJava()) {
      return List.of();
    }
    List<Finding> findings = new ArrayList<>();
    List<String> code = file.codeLines();
    List<String> text = file.lines();
    for (int i = 0; i < code.size(); i++) {
      if (PUBLIC_TYPE.matcher(code.get(i)).matches() && !documented(text, i)) {
        findings.add(file.finding(i + 1, "a public type without documentation"));
      }
    }
    return findings;
  }

  /** Whether the lines above, annotations of one or more lines aside, end in documentation. */
  private static boolean documented(List<String> text, int line) {
    int above = line - 1;
    while (above >= 0 && !text.get(above).isBlank() && !isDocumentation(text.get(above))) {
      above--;
    }
    return above >= 0 && isDocumentation(text.get(above));
  }

  private static boolean isDocumentation(String line) {
    return line.endsWith("*/") || line.startsWith("///");
  }
}
