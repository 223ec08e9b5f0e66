package io.cuvette.internal.channel;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.lifetime.Gate;
import java.io.UncheckedIOException;
import java.lang.ref.Reference;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;

/**
 * A socket that is closed only when nobody is waiting in a call for it: the system gives its number
 * to the next file that is opened. A socket that is forgotten is closed by the collector. Waits are
 * cut into slices, so that closing is soon noticed. Thread-safe.
 */
public final class OpenSocket {
  private static final long SLICE_NANOS = 50_000_000;
  private static final long GRACE_NANOS = 300_000_000;

  private final OwnedDescriptor descriptor;
  private final String name;
  private final Gate gate = new Gate();
  private final AtomicBoolean closed = new AtomicBoolean();

  /** Tried again by the next who closes if there was no heap for it. */
  private final Once ending = new Once();

  private volatile boolean released;

  /** Once the socket is closed: what is under way then may go on until this moment. */
  private volatile long lastChanceNanos;

  public OpenSocket(DescriptorCalls calls, int descriptor, String name) {
    this.name = name;
    this.descriptor = new OwnedDescriptor(this, calls, descriptor);
    this.descriptor.own();
  }

  /** Only inside {@link #use}. */
  public int descriptor() {
    return descriptor.number();
  }

  public boolean isClosed() {
    return closed.get();
  }

  /** Does something with the open socket; {@link #close} waits for it. */
  public <T> T use(Function<OpenSocket, T> work) {
    if (!gate.enter()) {
      throw isClosedNow();
    }
    try {
      return work.apply(this);
    } finally {
      gate.leave();
      Reference.reachabilityFence(this);
    }
  }

  /** Waits in a call, slice by slice, until it gives something, fails, or the time is over. */
  public <T> T sliced(Duration timeout, Function<Duration, T> call) {
    checkTimeout(timeout);
    long end = System.nanoTime() + nanos(timeout);
    while (true) {
      // Each time: a peer that sends bit by bit must not keep it open.
      if (closed.get()) {
        throw isClosedNow();
      }
      long left = end - System.nanoTime();
      try {
        return call.apply(Duration.ofNanos(Math.clamp(left, 0, SLICE_NANOS)));
      } catch (UncheckedIOException e) {
        if (!(e.getCause() instanceof SocketTimeoutException)) {
          throw e;
        }
        if (left <= 0) {
          throw timedOut(timeout);
        }
      }
    }
  }

  /** Whether who is in the middle of something has to give it up, since the socket is closing. */
  public boolean isOver() {
    return closed.get() && System.nanoTime() - lastChanceNanos >= 0;
  }

  /** Closes the socket once nobody is inside, which all are soon. */
  public void close() {
    close(() -> {});
  }

  /**
   * Closes the socket once nobody is inside.
   *
   * @param before done once, while the socket is still open
   */
  public void close(Runnable before) {
    if (!closed.get()) {
      lastChanceNanos = System.nanoTime() + GRACE_NANOS;
      closed.set(true);
    }
    ending.run(() -> end(before));
  }

  private void end(Runnable before) {
    if (released) {
      return;
    }
    try {
      before.run();
    } finally {
      gate.shut();
      released = true;
      descriptor.close();
    }
  }

  public IllegalStateException isClosedNow() {
    return new IllegalStateException(name + " is closed");
  }

  /** Half the range at most, so that sums do not overflow. */
  public static long nanos(Duration timeout) {
    Duration longest = Duration.ofNanos(Long.MAX_VALUE / 2);
    return (timeout.compareTo(longest) < 0 ? timeout : longest).toNanos();
  }

  public static void checkTimeout(Duration timeout) {
    if (timeout.isNegative()) {
      throw new IllegalArgumentException("timeout: %s (expected: >= 0)".formatted(timeout));
    }
  }

  public UncheckedIOException timedOut(Duration timeout) {
    var timedOut = new SocketTimeoutException("%s: nothing came in %s".formatted(name, timeout));
    return new UncheckedIOException(timedOut.getMessage(), timedOut);
  }
}
