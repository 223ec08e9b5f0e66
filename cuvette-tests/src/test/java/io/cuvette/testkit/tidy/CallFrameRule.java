package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Between the start of a call of the driver and its end stands the call alone, where it is written
 * out and in the function of a {@code Call}. Whatever else is called there might park a virtual
 * thread, which goes on in another thread: without the context of the call, and with the capture
 * mode of the one that it left. Stateless.
 */
final class CallFrameRule {
  private static final Pattern NO_CODE =
      Pattern.compile("//[^\n]*|/\\*.*?\\*/|\"(?:\\\\.|[^\"\\\\\n])*\"", Pattern.DOTALL);
  private static final Pattern WRITTEN_OUT =
      Pattern.compile(
          "CallFrame frame = [^;]*;((?:(?!return frame;).)*?)\\bframe\\.leave\\(\\)",
          Pattern.DOTALL);
  private static final Pattern FUNCTION = Pattern.compile("(?<=[(:?]\\s{0,40})(?:frame|_)\\s*->");
  private static final Pattern INVOKED = Pattern.compile("(?<!\\bframe\\.)\\b(\\w+)\\s*\\(");

  /** What cannot wait. */
  private static final Set<String> ALLOWED =
      Set.of(
          "catch",
          "while",
          "if",
          "invokeExact",
          "address",
          "byteSize",
          "toUnsignedInt",
          "reachabilityFence");

  private CallFrameRule() {}

  /** What is called inside calls of the driver and should not be. */
  static List<String> findings(String java) {
    String code = NO_CODE.matcher(java).replaceAll("");
    List<String> findings = new ArrayList<>();
    Matcher call = WRITTEN_OUT.matcher(code);
    while (call.find()) {
      check(code.substring(call.start(1), call.end(1)), findings);
    }
    Matcher function = FUNCTION.matcher(code);
    for (int at = 0; function.find(at); ) {
      at = endOfArgument(code, function.end());
      check(code.substring(function.end(), at), findings);
    }
    return findings;
  }

  private static void check(String inside, List<String> findings) {
    Matcher invoked = INVOKED.matcher(inside);
    while (invoked.find()) {
      if (!ALLOWED.contains(invoked.group(1))) {
        findings.add(invoked.group(1) + " inside a call of the driver, in:" + inside);
      }
    }
  }

  /** The place of the comma or bracket after an argument. */
  private static int endOfArgument(String code, int start) {
    int depth = 0;
    for (int at = start; at < code.length(); at++) {
      char c = code.charAt(at);
      if (depth == 0 && (c == ',' || c == ')')) {
        return at;
      }
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    return code.length();
  }
}
