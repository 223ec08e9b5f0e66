package io.cuvette.internal.async;

import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.lifetime.Reclaim;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What is tried before stream-ordered memory is said to be out: one step after the other, asking
 * the driver again after each. Stateless.
 */
public final class OrderedShortage {
  private OrderedShortage() {}

  /**
   * Tries everything, while no pool keeps anything idle.
   *
   * @param pools the driver's pools
   * @param memory what was taken from where memory is short
   * @param trim releases what is unused there
   * @param refusals what the driver said so far
   * @param again asks the driver; null if memory is still out
   * @param failure what is thrown if it is to the end
   */
  public static <T> T run(
      DriverPools pools,
      OpenStream stream,
      OrderedMemory memory,
      Runnable trim,
      Refusals refusals,
      Supplier<@Nullable T> again,
      Supplier<? extends RuntimeException> failure) {
    return pools.whileShort(() -> inSteps(pools, stream, memory, trim, refusals, again, failure));
  }

  private static <T> T inSteps(
      DriverPools pools,
      OpenStream stream,
      OrderedMemory memory,
      Runnable trim,
      Refusals refusals,
      Supplier<@Nullable T> again,
      Supplier<? extends RuntimeException> failure) {
    Device device = stream.on();
    Session session = device.session();
    session.leaks().drain();
    pools.giveBackAll();
    await(stream);
    memory.settle();
    T found = again.get();
    if (found == null) {
      trim.run();
      stream.state.streams.relief().releaseCached(device);
      found = again.get();
    }
    if (found == null) {
      found =
          Reclaim.search(
              session.leaks(), memory::hasForgotten, () -> releaseAll(stream, trim, again));
    }
    if (found == null) {
      throw refusals.explain(failure.get());
    }
    return found;
  }

  private static <T> @Nullable T releaseAll(
      OpenStream stream, Runnable trim, Supplier<@Nullable T> again) {
    Device device = stream.on();
    stream.state.streams.relief().awaitFrees(device);
    await(stream);
    trim.run();
    stream.state.streams.relief().releaseCached(device);
    return again.get();
  }

  /** Not inside a callback, for which the stream may have to wait. */
  private static void await(OpenStream stream) {
    Session session = stream.on().session();
    if (!session.isInsideCallback()) {
      session.gate().run(stream::awaitWork);
    }
  }
}
