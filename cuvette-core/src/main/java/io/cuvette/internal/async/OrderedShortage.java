package io.cuvette.internal.async;

import io.cuvette.RecoveryStep;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.fence.Relief;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.pool.Shortage;
import io.cuvette.internal.session.Session;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What is done about a stream-ordered allocation that the driver has no memory for. Threads do not
 * take turns: what the driver gets back goes to whoever allocates next.
 */
public final class OrderedShortage extends Shortage<Face> {
  private final DriverPools pools;
  private final OpenStream stream;
  private final OrderedMemory memory;
  private final Runnable trim;
  private final Refusals refusals;
  private final Supplier<@Nullable Face> again;
  private final Supplier<? extends RuntimeException> failure;
  private final Session session;
  private final Relief relief;

  /**
   * Creates the steps of one allocation.
   *
   * @param pools the driver's pools
   * @param memory what was taken from where memory is short
   * @param trim releases what is unused there
   * @param refusals the driver's refusals so far
   * @param again tries to allocate; null if memory is still short
   * @param failure what is thrown if memory is short to the end
   */
  public OrderedShortage(
      DriverPools pools,
      OpenStream stream,
      OrderedMemory memory,
      Runnable trim,
      Refusals refusals,
      Supplier<@Nullable Face> again,
      Supplier<? extends RuntimeException> failure) {
    super(stream.on().session().leaks(), refusals);
    this.pools = pools;
    this.stream = stream;
    this.memory = memory;
    this.trim = trim;
    this.refusals = refusals;
    this.again = again;
    this.failure = failure;
    this.session = stream.on().session();
    this.relief = stream.state.streams.relief();
  }

  /** Meanwhile no pool keeps anything idle, and what is idle goes to the driver first. */
  @Override
  public Face inTurn(Supplier<Face> steps) {
    return pools.whileShort(() -> {
      session.leaks().drain();
      pools.giveBackAll();
      awaitWork();
      memory.settle();
      return steps.get();
    });
  }

  @Override
  public boolean isBeyondLimit() {
    return false;
  }

  @Override
  public @Nullable Face search() {
    return again.get();
  }

  @Override
  public long releaseCached() {
    trim.run();
    return relief.releaseCached(stream.on());
  }

  @Override
  public @Nullable Face awaitOnce() {
    relief.awaitFrees(stream.on());
    awaitWork();
    releaseCached();
    return search();
  }

  /** Not reported by the driver. */
  @Override
  public boolean mayHave() {
    return false;
  }

  @Override
  public long takes() {
    return 0;
  }

  @Override
  public boolean hasForgotten() {
    return memory.hasForgotten();
  }

  @Override
  public RuntimeException outOfMemory(RecoveryStep step) {
    return refusals.explain(failure.get());
  }

  /** Not inside a callback, for which the stream may have to wait, nor in a capture. */
  private void awaitWork() {
    if (!session.isInsideCallback() && !stream.state.isCapturing()) {
      session.gate().run(stream::awaitWork);
    }
  }
}
