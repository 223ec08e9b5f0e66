package io.cuvette.testkit.shortage;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What two runs of the same programs decided, each on a device of its own. Once they differ they go
 * on in different states, so that one early difference counts more than once. Immutable.
 *
 * @param allocations how many both tried
 * @param kind how many fitted on the second alone
 * @param strict how many fitted on the first alone
 * @param others how many other steps came out differently
 * @param apart the most by which free memory was apart, of the part that a program plays with
 * @param texts the first differences
 */
record RecordedRuns(
    int allocations, int kind, int strict, int others, double apart, List<String> texts) {
  private static final Pattern HEAD = Pattern.compile("seed (-?\\d+), rest (\\d+)");
  private static final Pattern STEP =
      Pattern.compile("(\\d+ (\\w+) .*): ([^:,]*)(?:, free (\\d+))?");
  private static final int MOST_TEXTS = 40;

  static RecordedRuns read(Path first, Path second) throws IOException {
    List<String> one = Files.readAllLines(first);
    List<String> other = Files.readAllLines(second);
    int[] counts = new int[4];
    double apart = 0;
    double rest = 1;
    String seed = "";
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < Math.min(one.size(), other.size()); i++) {
      Matcher head = HEAD.matcher(one.get(i));
      Matcher step = STEP.matcher(one.get(i));
      Matcher same = STEP.matcher(other.get(i));
      if (head.matches()) {
        seed = head.group(1);
        rest = Double.parseDouble(head.group(2));
      } else if (step.matches() && same.matches() && step.group(1).equals(same.group(1))) {
        boolean allocates = step.group(2).equals("ALLOCATE");
        counts[0] += allocates ? 1 : 0;
        if (!step.group(3).equals(same.group(3))) {
          counts[allocates ? same.group(3).equals("allocated") ? 1 : 2 : 3]++;
          texts.add("  seed %s: %s and %s".formatted(seed, one.get(i), same.group(3)));
        }
        if (allocates) {
          long difference = Long.parseLong(step.group(4)) - Long.parseLong(same.group(4));
          apart = Math.max(apart, Math.abs(difference) / rest);
        }
      } else {
        throw new IllegalArgumentException(
            "line %d: %s and %s (expected: the same step of the same seed)"
                .formatted(i + 1, one.get(i), other.get(i)));
      }
    }
    return new RecordedRuns(counts[0], counts[1], counts[2], counts[3], apart, texts);
  }

  private double percent(int count) {
    return 100.0 * count / Math.max(1, allocations);
  }

  boolean isGood() {
    return others == 0 && percent(kind + strict) <= 1;
  }

  @Override
  public String toString() {
    return "%d allocations: %d (%.2f %%) fit on the second alone, %d (%.2f %%) on the first alone;"
            .formatted(allocations, kind, percent(kind), strict, percent(strict))
        + " %d other steps differ; free at most %.2f %% of the rest apart%s%n%s"
            .formatted(
                others,
                100 * apart,
                isGood() ? "" : " FAILED",
                String.join("\n", texts.subList(0, Math.min(MOST_TEXTS, texts.size()))));
  }
}
