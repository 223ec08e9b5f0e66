package io.cuvette;

import io.cuvette.internal.streamcache.PoolCensus;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Two threads free the blocks of an arena while a third allocates from it: no block is lost. */
@JCStressTest
@Outcome(id = "0, 0", expect = Expect.ACCEPTABLE, desc = "all is free, and in one piece")
@Outcome(expect = Expect.FORBIDDEN, desc = "a block was lost")
@State
public class RemoteFreeStress {
  private final CudaStream stream = StressPool.stream();
  private final Buffer[] blocks = StressPool.twoBlocks(stream);

  @Actor
  public void freeOne() {
    blocks[0].close();
  }

  @Actor
  public void freeOther() {
    blocks[1].close();
  }

  @Actor
  public void allocate() {
    StressPool.allocate(stream).close();
  }

  @Arbiter
  public void count(II_Result result) {
    PoolCensus census = StressPool.end(stream);
    result.r1 = census.usedBlocks;
    result.r2 = census.freeBlocks - census.chunks;
  }
}
