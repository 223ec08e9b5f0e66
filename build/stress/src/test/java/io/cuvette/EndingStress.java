package io.cuvette;

import io.cuvette.internal.lifetime.Ending;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Whatever uses it and however often it is closed, it is released once, and after every use. */
@JCStressTest
@Outcome(id = "1, 0", expect = Expect.ACCEPTABLE, desc = "released once, and not while in use")
@Outcome(expect = Expect.FORBIDDEN, desc = "released twice, never, or while in use")
@State
public class EndingStress {
  private final AtomicInteger releases = new AtomicInteger();
  private final AtomicInteger usedAfter = new AtomicInteger();
  private final Object thing = new Object();

  private final Ending ending =
      new Ending(thing, null, null) {
        @Override
        public String describe() {
          return "thing";
        }

        @Override
        public void release() {
          releases.incrementAndGet();
        }
      };

  @Actor
  public void use() {
    if (ending.tryHold()) {
      usedAfter.addAndGet(releases.get());
      ending.unhold();
    }
  }

  @Actor
  public void close() {
    ending.close(this);
  }

  @Actor
  public void closeAgain() {
    ending.close(this);
  }

  @Arbiter
  public void count(II_Result result) {
    result.r1 = releases.get();
    result.r2 = usedAfter.get();
  }
}
