package io.cuvette.arrow;

import io.cuvette.ForeignLoan;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** One array that is out, of the arrays that were exported together. Filled by who exports it. */
final class ExportedNode {
  private static final ForeignLoan[] NONE = {};

  private ForeignLoan[] loans;
  final ExportedNode[] children;

  /** Whether nobody has released it yet. */
  final AtomicBoolean isOut = new AtomicBoolean(true);

  /** Where it was written; its consumer may have moved it. */
  ArrayStructure structure = ArrayStructure.NOWHERE;

  @Nullable ExportedWhole whole;

  /** What its consumer hands back; never that of another array. */
  long number;

  ExportedNode(ForeignLoan[] loans, ExportedNode[] children) {
    this.loans = loans;
    this.children = children;
  }

  /** How many arrays it is, with those below it. */
  int count() {
    int count = 1;
    for (ExportedNode child : children) {
      count += child.count();
    }
    return count;
  }

  ExportedWhole whole() {
    return Objects.requireNonNull(whole);
  }

  /** Gives the memory back, once; what stays of it holds nothing else. */
  void end() {
    ForeignLoan[] own = loans;
    loans = NONE;
    whole().ended();
    for (ForeignLoan loan : own) {
      loan.giveBack();
    }
  }
}
