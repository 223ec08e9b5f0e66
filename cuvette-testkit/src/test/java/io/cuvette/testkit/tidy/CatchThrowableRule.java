package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * {@code catch (Throwable …)} stands around {@code invokeExact}, which declares it. Around anything
 * else, such as code of the user, a comment on its line says why. Stateless.
 */
final class CatchThrowableRule implements Rule {
  private static final Pattern CATCH =
      Pattern.compile("\\bcatch\\s*\\(\\s*(final\\s+)?Throwable\\b");
  private static final Pattern REASON = Pattern.compile("catch .*// \\w+");

  @Override
  public List<Finding> check(SourceFile file) {
    if (!file.isMainJava()) {
      return List.of();
    }
    List<Finding> findings = new ArrayList<>();
    Matcher matcher = CATCH.matcher(file.code());
    while (matcher.find()) {
      int line = file.lineAt(matcher.start());
      if (!guardedBlock(file.code(), matcher.start()).contains("invokeExact")
          && !hasReason(file, line)) {
        findings.add(
            file.finding(
                line, "catch (Throwable) is for invokeExact; beside any other a comment says why"));
      }
    }
    return findings;
  }

  /** The text between the try's brace and the brace before the catch, other catches included. */
  private static String guardedBlock(String code, int catchStart) {
    int end = code.lastIndexOf('}', catchStart);
    int depth = 0;
    for (int at = end; at >= 0; at--) {
      char c = code.charAt(at);
      depth += c == '}' ? 1 : c == '{' ? -1 : 0;
      if (c == '{' && depth == 0 && !isCatchBlock(code, at)) {
        return code.substring(at, end);
      }
    }
    return "";
  }

  private static boolean isCatchBlock(String code, int brace) {
    String before = code.substring(Math.max(0, brace - 120), brace);
    return before.matches("(?s).*\\bcatch\\s*\\([^(){}]*\\)\\s*");
  }

  private static boolean hasReason(SourceFile file, int line) {
    return REASON.matcher(file.lines().get(line - 1)).find();
  }
}
