package io.cuvette.testkit.tidy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * Nothing left over from work: notes to do, folders of one machine, hosts of registries. Stateless.
 */
final class LeftoverRule implements Rule {
  // Each pattern is written so that it does not find itself.
  private static final Map<Pattern, String> LEFTOVERS =
      Map.of(
          Pattern.compile("\\b(TOD[O]|FIXM[E]|XX[X])\\b"), "a note of something to do",
          Pattern.compile("(?<![\\w.}*-])/(work|root|tmp|home/\\w+)/[\\w.]"),
              "a folder of one machine",
          Pattern.compile(
                  "repo1?[.](maven|apache)|maven[.]org/maven2|pypi[.]org|pythonhosted[.]org"
                      + "|registry[.]npmjs|crates[.]io|proxy[.]golang"),
              "the host of a registry");

  @Override
  public List<Finding> check(SourceFile file) {
    List<Finding> findings = new ArrayList<>();
    List<String> lines = file.lines();
    for (int i = 0; i < lines.size(); i++) {
      String line = lines.get(i);
      int number = i + 1;
      LEFTOVERS.forEach((pattern, what) -> {
        if (pattern.matcher(line).find()) {
          findings.add(file.finding(number, what + ": " + line.strip()));
        }
      });
    }
    return findings;
  }
}
