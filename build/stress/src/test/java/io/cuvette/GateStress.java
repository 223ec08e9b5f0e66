package io.cuvette;

import io.cuvette.internal.lifetime.Gate;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/** Nobody is inside a gate once who shut it goes on, and what those inside wrote is seen then. */
@JCStressTest
@Outcome(id = "0, 0, 0", expect = Expect.ACCEPTABLE, desc = "shut before both came")
@Outcome(id = "1, 0, 1", expect = Expect.ACCEPTABLE, desc = "one was inside, and waited for")
@Outcome(id = "0, 1, 1", expect = Expect.ACCEPTABLE, desc = "the other was inside")
@Outcome(id = "1, 1, 2", expect = Expect.ACCEPTABLE, desc = "both were")
@Outcome(expect = Expect.FORBIDDEN, desc = "who shut it went on while somebody was inside")
@State
public class GateStress {
  private final Gate gate = new Gate();
  private int one;
  private int two;

  @Actor
  public void one(III_Result result) {
    if (gate.enter()) {
      one = 1;
      result.r1 = 1;
      gate.leave();
    }
  }

  @Actor
  public void two(III_Result result) {
    if (gate.enter()) {
      two = 1;
      result.r2 = 1;
      gate.leave();
    }
  }

  @Actor
  public void shut(III_Result result) {
    gate.shut();
    result.r3 = one + two;
  }
}
