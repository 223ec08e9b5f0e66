package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.channel.IpcFrame;
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
    while (true) {
      boolean isTaken = writeSlice(bytes, descriptors);
      if (sent == bytes.length) {
        return;
      }
      if (isTaken) {
        continue;
      }
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

  /** Sends up to where the next descriptors go; false if the peer took not all of that. */
  private boolean writeSlice(byte[] bytes, int[] descriptors) {
    int most = IpcFrame.MOST_DESCRIPTORS;
    int groups = Math.max(1, (descriptors.length + most - 1) / most);
    int group = 0;
    while (group + 1 < groups && IpcFrame.beginOf(group + 1) <= sent) {
      group++;
    }
    int end = group + 1 < groups ? IpcFrame.beginOf(group + 1) : bytes.length;
    int last = Math.min((group + 1) * most, descriptors.length);
    int[] now =
        IpcFrame.beginOf(group) == sent
            ? Arrays.copyOfRange(descriptors, group * most, last)
            : NO_DESCRIPTORS;
    try {
      calls.send(socket.descriptor(), Arrays.copyOfRange(bytes, sent, end), now, SLICE);
      moved = true;
      sent = end;
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
