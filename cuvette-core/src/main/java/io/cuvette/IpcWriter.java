package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.channel.OpenSocket;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.Arrays;
import java.util.function.BooleanSupplier;

/**
 * Writes one message to a socket, slice by slice, so that it ends soon when the channel broke. Used
 * by one thread, once.
 */
final class IpcWriter {
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final Duration LONGEST = Duration.ofSeconds(60);
  private static final Duration SLICE = Duration.ofMillis(50);
  private static final int[] NO_DESCRIPTORS = {};

  private final DescriptorCalls calls;
  private final OpenSocket socket;
  private final String name;
  private final BooleanSupplier isBroken;
  private int sent;

  /** Whether the last slice took anything. */
  private boolean moved;

  /**
   * @param isBroken whether the channel failed elsewhere, so that going on makes no sense
   */
  IpcWriter(DescriptorCalls calls, OpenSocket socket, String name, BooleanSupplier isBroken) {
    this.calls = calls;
    this.socket = socket;
    this.name = name;
    this.isBroken = isBroken;
  }

  void write(byte[] bytes, int[] descriptors) {
    long start = System.nanoTime();
    long last = start;
    while (!writeSlice(bytes, sent == 0 ? descriptors : NO_DESCRIPTORS)) {
      long now = System.nanoTime();
      if (moved) {
        last = now;
      } else if (now - last >= PATIENCE.toNanos()) {
        throw timedOut("nothing in " + PATIENCE, bytes.length);
      }
      if (now - start >= LONGEST.toNanos()) {
        throw timedOut("not all in " + LONGEST, bytes.length);
      }
      if (isBroken.getAsBoolean()) {
        throw new IllegalStateException(name + " broke while a message was sent");
      }
      if (socket.isOver()) {
        throw new IllegalStateException(name + " was closed while a message was sent");
      }
    }
  }

  private boolean writeSlice(byte[] bytes, int[] descriptors) {
    byte[] rest = sent == 0 ? bytes : Arrays.copyOfRange(bytes, sent, bytes.length);
    try {
      calls.send(socket.descriptor(), rest, descriptors, SLICE);
      return true;
    } catch (UncheckedIOException e) {
      int count = e.getCause() instanceof InterruptedIOException part ? part.bytesTransferred : 0;
      sent += count;
      moved = count > 0;
      if (e.getCause() instanceof SocketTimeoutException) {
        return false;
      }
      throw e;
    }
  }

  /** Whether a failure left the connection between two messages: nothing was sent of this one. */
  boolean isUntouchedBy(Throwable failure) {
    return sent == 0
        && failure.getCause() instanceof InterruptedIOException cause
        && !(cause instanceof SocketTimeoutException);
  }

  private UncheckedIOException timedOut(String what, int bytes) {
    var timedOut =
        new SocketTimeoutException(
            "%s: the peer took %s, %d of %d bytes are sent".formatted(name, what, sent, bytes));
    return new UncheckedIOException(timedOut.getMessage(), timedOut);
  }
}
