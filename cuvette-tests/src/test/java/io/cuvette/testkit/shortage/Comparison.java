package io.cuvette.testkit.shortage;

import io.cuvette.testkit.shortage.BrimStep.Action;
import java.util.ArrayList;
import java.util.List;

/**
 * What came of a {@link BrimProgram} on two devices that did each step together. Where an
 * allocation fits on one alone, the other has to manage with 1 % of the program's memory more, or 6
 * MiB; then it counts as refused on both, so that they go on in the same state. Confined to one
 * thread.
 */
final class Comparison {
  private static final int MOST_TEXTS = 8;

  private final BrimProgram program;
  private final BrimSide one;
  private final BrimSide other;
  private final List<String> texts = new ArrayList<>();
  private final String start;
  private final long totalBytes;
  private int allocations;
  private int refused;
  private int near;
  private int far;
  private int different;
  private int streams;
  private long apart;

  private Comparison(BrimProgram program, BrimSide one, BrimSide other) {
    this.program = program;
    this.one = one;
    this.other = other;
    this.totalBytes = one.total();
    this.start =
        "before: total %,d and %,d, free in a new context %,d and %,d; with ballast %,d and %,d"
            .formatted(
                one.total(),
                other.total(),
                one.freeAtFirst(),
                other.freeAtFirst(),
                one.free(),
                other.free());
  }

  static Comparison of(BrimProgram program, List<String> devices) {
    try (BrimSide one = new BrimSide(devices.get(0), program, options -> options);
        BrimSide other = new BrimSide(devices.get(1), program, options -> options)) {
      Comparison comparison = new Comparison(program, one, other);
      int number = 0;
      for (BrimStep step : program.steps()) {
        comparison.step(number++, step);
      }
      return comparison;
    }
  }

  private void step(int number, BrimStep step) {
    String outcome = one.run(step);
    String others = other.run(step);
    boolean allocates = step.action() == Action.ALLOCATE;
    if (!outcome.equals(others)) {
      if (allocates) {
        settle(number, step, outcome.equals("allocated"));
      } else if (step.action() == Action.STREAM) {
        streams++;
      } else {
        different++;
        text(number, step, outcome + " and " + others);
      }
    }
    if (outcome.contains("expected")) {
      different++;
      text(number, step, outcome);
    }
    if (allocates) {
      allocations++;
      refused += outcome.equals("out of memory") && others.equals(outcome) ? 1 : 0;
      apart = Math.max(apart, Math.abs(one.free() - other.free()));
    }
  }

  private void settle(int number, BrimStep step, boolean fitsOnOne) {
    BrimSide fits = fitsOnOne ? one : other;
    BrimSide lacks = fitsOnOne ? other : one;
    fits.undo();
    boolean nearly = lacks.isNearly(step);
    // As the other one did: what a pool keeps decides what it can split later.
    fits.trim();
    near += nearly ? 1 : 0;
    far += nearly ? 0 : 1;
    text(
        number,
        step,
        "fits on %s alone%s; free %,d and %,d"
            .formatted(
                fits.device,
                nearly ? ", with the margin on both" : ", BY FAR",
                one.free(),
                other.free()));
  }

  private void text(int number, BrimStep step, String what) {
    if (texts.size() < MOST_TEXTS || what.contains("BY FAR")) {
      texts.add(
          "  step %d %s %s %,d bytes: %s"
              .formatted(number, step.action(), one.source(step), step.bytes(), what));
    }
  }

  boolean isGood() {
    return far == 0 && different == 0 && 100 * apart <= totalBytes;
  }

  @Override
  public String toString() {
    String head =
        "seed %d: rest %,d, kinds %d, %d allocations, %d refused on both, %d on one within 1 %%, %d"
            + " on one by far; %d different results, %d streams on one; free at most %,d apart"
            + " (%.3f %% of the rest)%s";
    String line =
        head.formatted(
            program.seed(),
            program.restBytes(),
            program.kinds(),
            allocations,
            refused,
            near,
            far,
            different,
            streams,
            apart,
            100.0 * apart / program.restBytes(),
            isGood() ? "" : " FAILED");
    return line + "\n  " + start + (texts.isEmpty() ? "" : "\n" + String.join("\n", texts));
  }
}
