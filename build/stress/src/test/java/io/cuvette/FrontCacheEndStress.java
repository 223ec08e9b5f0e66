package io.cuvette;

import io.cuvette.internal.streamcache.FrontCache;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** What is taken is listed for the end of the pool, or is not given out any more. */
@JCStressTest
@Outcome(id = "1, 1", expect = Expect.ACCEPTABLE, desc = "taken, and ended with the pool")
@Outcome(id = "0, 0", expect = Expect.ACCEPTABLE, desc = "refused: the pool has ended")
@Outcome(expect = Expect.FORBIDDEN, desc = "in use, and unknown to who ends the pool")
@State
public class FrontCacheEndStress {
  private final CudaStream stream = StressPool.stream();
  private final FrontCache front = StressPool.front(stream);
  private final FrontCache.Stripe stripe = front.mine();

  @Actor
  public void take(II_Result result) {
    try {
      result.r1 = stripe.take(StressPool.BYTES, StressPool.BYTES, stream.core()) == null ? 0 : 1;
    } catch (IllegalStateException e) {
      result.r1 = 0;
    }
  }

  @Actor
  public void end(II_Result result) {
    result.r2 = front.endAll().size();
  }

  @Arbiter
  public void close(II_Result result) {
    stream.close();
  }
}
