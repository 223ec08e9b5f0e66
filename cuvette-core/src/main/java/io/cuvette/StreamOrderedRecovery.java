package io.cuvette;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What is tried before stream-ordered memory is said to be out: one step after the other, asking
 * the driver again after each. Stateless.
 */
final class StreamOrderedRecovery {
  private StreamOrderedRecovery() {}

  /**
   * Tries everything, while no pool keeps anything idle.
   *
   * @param memory what was taken from where memory is short
   * @param trim has that give back what nobody uses
   * @param refusals what the driver said so far
   * @param again asks the driver; null if memory is still out
   * @param failure what is thrown if it is to the end
   */
  static <T> T run(
      CudaStream stream,
      StreamOrderedMemory memory,
      Runnable trim,
      Refusals refusals,
      Supplier<@Nullable T> again,
      Supplier<? extends RuntimeException> failure) {
    return stream
        .device()
        .cuda()
        .driverPools()
        .whileShort(() -> inSteps(stream, memory, trim, refusals, again, failure));
  }

  private static <T> T inSteps(
      CudaStream stream,
      StreamOrderedMemory memory,
      Runnable trim,
      Refusals refusals,
      Supplier<@Nullable T> again,
      Supplier<? extends RuntimeException> failure) {
    CudaDevice device = stream.device();
    Cuda cuda = device.cuda();
    cuda.leaks().drain();
    cuda.driverPools().giveBackAll();
    await(stream);
    memory.settle();
    T found = again.get();
    if (found == null) {
      trim.run();
      cuda.owned().releaseCached(device);
      found = again.get();
    }
    if (found == null) {
      found =
          Reclaim.search(cuda.leaks(), memory::hasForgotten, () -> releaseAll(stream, trim, again));
    }
    if (found == null) {
      throw refusals.explain(failure.get());
    }
    return found;
  }

  private static <T> @Nullable T releaseAll(
      CudaStream stream, Runnable trim, Supplier<@Nullable T> again) {
    CudaDevice device = stream.device();
    Cuda cuda = device.cuda();
    cuda.owned().awaitFrees(device);
    await(stream);
    trim.run();
    cuda.owned().releaseCached(device);
    return again.get();
  }

  /** Not inside a callback, for which the stream may have to wait. */
  private static void await(CudaStream stream) {
    Cuda cuda = stream.device().cuda();
    if (cuda.callback() == null) {
      cuda.owned().entrance().run(stream::awaitWork);
    }
  }
}
