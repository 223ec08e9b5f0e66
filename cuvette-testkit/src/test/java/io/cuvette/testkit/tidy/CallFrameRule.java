package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Between the start of a call of the driver and its end stands the call alone. Whatever else is
 * called there might park a virtual thread, which goes on in another thread: without the context of
 * the call, and with the capture mode of the one that it left. Stateless.
 */
final class CallFrameRule implements Rule {
  private static final Pattern CALL =
      Pattern.compile("CallFrame frame = [^;]*;(.*?)\\bframe\\.leave\\(\\)", Pattern.DOTALL);
  private static final Pattern INVOKED = Pattern.compile("(?<!\\bframe\\.)\\b(\\w+)\\s*\\(");

  /** What cannot wait. */
  private static final List<String> ALLOWED =
      List.of(
          "catch",
          "while",
          "if",
          "invokeExact",
          "address",
          "byteSize",
          "toUnsignedInt",
          "query",
          "reachabilityFence");

  @Override
  public List<Finding> check(SourceFile file) {
    if (!file.isMainJava() || !file.module().equals("cuvette-ffm")) {
      return List.of();
    }
    List<Finding> findings = new ArrayList<>();
    Matcher call = CALL.matcher(file.code());
    while (call.find()) {
      Matcher invoked = INVOKED.matcher(file.code()).region(call.start(1), call.end(1));
      while (invoked.find()) {
        if (!ALLOWED.contains(invoked.group(1))) {
          findings.add(
              file.finding(
                  file.lineAt(invoked.start()),
                  invoked.group(1) + " inside a call of the driver: before the frame, or after"));
        }
      }
    }
    return findings;
  }
}
