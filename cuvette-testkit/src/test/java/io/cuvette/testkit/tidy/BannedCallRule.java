package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/** Calls that delivered code does not make, each with the places that may. Stateless. */
final class BannedCallRule implements Rule {
  private record Ban(Pattern call, Predicate<SourceFile> allowed, String instead) {
    Ban(String call, Predicate<SourceFile> allowed, String instead) {
      this(Pattern.compile(call), allowed, instead);
    }
  }

  private static final Predicate<SourceFile> NOWHERE = file -> false;

  private static final List<Ban> BANS =
      List.of(
          new Ban(
              "\\bSystem\\.(out|err)\\b",
              file ->
                  inModule(file, "cuvette-benchmarks")
                      || isCliFile(file, "Output.java", "Main.java"),
              "no printing: only the command line's Output does"),
          new Ban("\\bThread\\.sleep\\b", NOWHERE, "no sleeping: wait for the event itself"),
          new Ban(
              "\\bSystem\\.exit\\b|\\bgetRuntime\\(\\)\\.(exit|halt)\\b",
              file -> file.fileName().equals("Main.java") && !inModule(file, "cuvette-core"),
              "no exit but in a Main"),
          new Ban(
              "\\bArena\\.of(Confined|Shared)\\b",
              file -> !inModule(file, "cuvette-ffm"),
              "no arena per call: use the thread's call frame"),
          new Ban("\\bsynchronized\\b", NOWHERE, "no synchronized: use a lock"),
          new Ban("\\.printStackTrace\\(\\s*\\)", NOWHERE, "no printing of stack traces"));

  private static final Pattern RESTRICTED =
      Pattern.compile("@SuppressWarnings\\(.*\"restricted\".*");

  @Override
  public List<Finding> check(SourceFile file) {
    if (!file.isMainJava()) {
      return List.of();
    }
    List<Finding> findings = new ArrayList<>();
    List<String> code = file.codeLines();
    List<String> text = file.lines();
    for (int i = 0; i < code.size(); i++) {
      for (Ban ban : BANS) {
        if (ban.call.matcher(code.get(i)).find() && !ban.allowed.test(file)) {
          findings.add(file.finding(i + 1, ban.instead));
        }
      }
      if (RESTRICTED.matcher(text.get(i)).find() && !inModule(file, "cuvette-ffm")) {
        findings.add(file.finding(i + 1, "restricted methods belong to cuvette-ffm alone"));
      }
    }
    return findings;
  }

  private static boolean inModule(SourceFile file, String module) {
    return file.module().equals(module);
  }

  private static boolean isCliFile(SourceFile file, String... names) {
    return inModule(file, "cuvette-cli") && List.of(names).contains(file.fileName());
  }
}
