package io.cuvette;

import io.cuvette.internal.streamcache.FrontCache;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/** A cached block is for one of those who want it. */
@JCStressTest
@Outcome(id = "1, 0, 0", expect = Expect.ACCEPTABLE, desc = "the first thread took it")
@Outcome(id = "0, 1, 0", expect = Expect.ACCEPTABLE, desc = "the second took it")
@Outcome(id = "0, 0, 1", expect = Expect.ACCEPTABLE, desc = "it was called back to the arena")
@Outcome(expect = Expect.FORBIDDEN, desc = "it was given out twice, or lost")
@State
public class FrontCacheTakeStress {
  private final CudaStream stream = StressPool.stream();
  private final FrontCache front = StressPool.front(stream);
  private final FrontCache.Stripe stripe = front.mine();

  @Actor
  public void one(III_Result result) {
    result.r1 = stripe.take(StressPool.BYTES, StressPool.BYTES, stream.core()) == null ? 0 : 1;
  }

  @Actor
  public void two(III_Result result) {
    result.r2 = stripe.take(StressPool.BYTES, StressPool.BYTES, stream.core()) == null ? 0 : 1;
  }

  @Actor
  public void recall(III_Result result) {
    result.r3 = front.releaseAll() ? 1 : 0;
  }

  @Arbiter
  public void end(III_Result result) {
    stream.close();
  }
}
