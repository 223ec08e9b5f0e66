package io.cuvette.testkit.tidy;

import java.util.List;

/** What one file is held to. */
@FunctionalInterface
interface Rule {
  List<Finding> check(SourceFile file);

  /** All rules that look at one file at a time. */
  static List<Rule> all() {
    return List.of(
        new SizeRule(),
        new MethodLengthRule(),
        new DirectionRule(),
        new BannedCallRule(),
        new CatchThrowableRule(),
        new CallFrameRule(),
        new LeftoverRule(),
        new DocumentedRule());
  }
}
