package io.cuvette.testkit.crowd;

import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A thread of a {@link Crowd}, with a stream of its own. Confined to that thread. */
final class CrowdMember {
  private static final int SMALLEST_BITS = 4;
  private static final int LARGEST_BITS = 20;
  private static final int PATIENCE_SECONDS = 30;

  final Crowd crowd;
  final SplittableRandom random;

  /** Captured, waited with and closed by this thread alone. */
  final CudaStream own;

  CrowdMember(Crowd crowd, SplittableRandom random) {
    this.crowd = crowd;
    this.random = random;
    this.own = crowd.device.createStream(StreamOptions.NON_BLOCKING);
  }

  /** True once in so many times. */
  boolean onceIn(int times) {
    return random.nextInt(times) == 0;
  }

  /** Sizes of all magnitudes up to a MiB. */
  long size() {
    return 1 + random.nextLong(1L << random.nextInt(SMALLEST_BITS, LARGEST_BITS));
  }

  /** A stream that others may close or capture at any moment. */
  CudaStream stream() {
    CudaStream shared = crowd.streams.any(random);
    return shared == null ? own : shared;
  }

  /** A stream that nobody closes or captures meanwhile. */
  CudaStream quietStream() {
    return onceIn(3) ? own : crowd.quiet.get(random.nextInt(crowd.quiet.size()));
  }

  <T> @Nullable T any(Bag<T> bag) {
    return bag.any(random);
  }

  <T> @Nullable T take(Bag<T> bag) {
    return bag.take(random);
  }

  /** What a completion gives, in time; it fails with what the completion failed with. */
  static void get(CompletableFuture<?> done) throws Exception {
    try {
      done.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception cause ? cause : e;
    }
  }

  void end() {
    if (own.isCapturing()) {
      own.endCapture().close();
    }
    own.close();
  }
}
