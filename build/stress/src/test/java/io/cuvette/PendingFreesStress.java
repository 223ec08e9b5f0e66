package io.cuvette;

import io.cuvette.internal.block.Block;
import io.cuvette.internal.pending.PendingFrees;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/** A pending block comes back once, whoever looks, and who waits for it has it. */
@JCStressTest
@Outcome(id = "1, 1, 0", expect = Expect.ACCEPTABLE, desc = "once, before the wait was over")
@Outcome(expect = Expect.FORBIDDEN, desc = "twice, never, later than the wait, or still counted")
@State
public class PendingFreesStress {
  private final AtomicInteger given = new AtomicInteger();
  private final PendingFrees<Block> pending = new PendingFrees<>(_ -> given.incrementAndGet());

  public PendingFreesStress() {
    pending.add(
        new Block(this, null, null, null) {
          @Override
          public long blockBytes() {
            return StressPool.BYTES;
          }

          @Override
          public String describe() {
            return "block";
          }

          @Override
          public void giveBack() {}
        });
  }

  @Actor
  public void poll() {
    pending.poll();
  }

  @Actor
  public void pollAgain() {
    pending.poll();
  }

  @Actor
  public void await(III_Result result) {
    pending.await();
    result.r1 = given.get();
  }

  @Arbiter
  public void count(III_Result result) {
    result.r2 = given.get();
    result.r3 = pending.blocks();
  }
}
