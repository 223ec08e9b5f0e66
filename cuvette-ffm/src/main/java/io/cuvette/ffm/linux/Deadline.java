package io.cuvette.ffm.linux;

import java.io.InterruptedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * The time until which one operation waits for its descriptor. Used by one thread.
 *
 * <p>It waits in slices, for nothing else wakes a thread inside C: an interrupt is seen after one.
 * A virtual thread does not wait in C at all, where it would keep its carrier from the very thread
 * that it waits for: it looks, and sleeps between.
 */
final class Deadline {
  /** poll: something can be read, or a connection accepted. */
  static final short READABLE = 1;

  /** poll: something can be written. */
  static final short WRITABLE = 4;

  static final short INVALID = 32;
  private static final long NANOS_PER_MILLI = 1_000_000;
  private static final long SLICE_MILLIS = 100;
  private static final long PAUSE_NANOS = NANOS_PER_MILLI;
  private static final long SHORTEST_PAUSE_NANOS = 20_000;
  private static final long LONGEST_PAUSE_NANOS = 4 * NANOS_PER_MILLI;
  private static final Duration LONGEST = Duration.ofNanos(Long.MAX_VALUE / 2);
  static final long EVENTS = 4;
  static final long RETURNED_EVENTS = 6;
  static final long POLLFD_BYTES = 8;

  private final long end;
  private final Duration timeout;
  private final Supplier<String> call;

  private Deadline(long end, Duration timeout, Supplier<String> call) {
    this.end = end;
    this.timeout = timeout;
    this.call = call;
  }

  /**
   * Counts from now.
   *
   * @param call what waits, for messages
   * @throws IllegalArgumentException if the time is negative; any other is fine
   */
  static Deadline after(Duration timeout, Supplier<String> call) {
    if (timeout.isNegative()) {
      throw new IllegalArgumentException("timeout: " + timeout + " (expected: >= 0)");
    }
    long nanos = (timeout.compareTo(LONGEST) < 0 ? timeout : LONGEST).toNanos();
    return new Deadline(System.nanoTime() + nanos, timeout, call);
  }

  /** What waits, for messages. */
  String call() {
    return call.get();
  }

  /** Waits until a descriptor is ready, or has an error that the call will report. */
  void await(int descriptor, short events) {
    MemorySegment request = Arena.ofAuto().allocate(POLLFD_BYTES, Integer.BYTES);
    request.set(ValueLayout.JAVA_INT, 0, descriptor);
    request.set(ValueLayout.JAVA_SHORT, EVENTS, events);
    boolean virtual = Thread.currentThread().isVirtual();
    long pause = SHORTEST_PAUSE_NANOS;
    while (true) {
      checkInterrupt();
      long nanos = end - System.nanoTime();
      int ready = Libc.POLL.call(request, 1, virtual ? 0 : sliceMillis(nanos));
      if (ready > 0) {
        requireOpen(request);
        return;
      }
      if (ready < 0 && ready != -Errno.EINTR) {
        throw Errno.failure(-ready, call());
      }
      if (nanos <= 0) {
        throw timedOut();
      }
      if (virtual) {
        LockSupport.parkNanos(Math.min(nanos, pause));
        pause = Math.min(pause * 2, LONGEST_PAUSE_NANOS);
      }
    }
  }

  /** Waits a moment before another try, where success cannot be waited for. */
  void pause() {
    checkInterrupt();
    long nanos = end - System.nanoTime();
    if (nanos <= 0) {
      throw timedOut();
    }
    LockSupport.parkNanos(Math.min(nanos, PAUSE_NANOS));
  }

  private static int sliceMillis(long nanos) {
    long millis = Math.ceilDiv(Math.max(nanos, 0), NANOS_PER_MILLI);
    return (int) Math.min(millis, SLICE_MILLIS);
  }

  private void requireOpen(MemorySegment request) {
    if ((request.get(ValueLayout.JAVA_SHORT, RETURNED_EVENTS) & INVALID) != 0) {
      throw Errno.failure(Errno.EBADF, call());
    }
  }

  /** Leaves the thread's interrupt status as it is, as the channels of the JDK do. */
  private void checkInterrupt() {
    if (Thread.currentThread().isInterrupted()) {
      throw Errno.unchecked(new InterruptedIOException(call() + ": the thread is interrupted"));
    }
  }

  private RuntimeException timedOut() {
    return Errno.unchecked(new SocketTimeoutException(call() + ": timed out after " + timeout));
  }
}
