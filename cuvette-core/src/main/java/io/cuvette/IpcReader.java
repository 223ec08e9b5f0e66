package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.StreamCorruptedException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads one message from a socket. Every descriptor that came is either in a handle of the result
 * or closed. Used by one thread, once.
 */
final class IpcReader {
  /** A message that has begun gets so long to end, however impatient the receiver is. */
  private static final Duration LEAST_REST = Duration.ofSeconds(1);

  private final DescriptorCalls calls;
  private final OpenSocket socket;
  private final String name;
  private final List<Integer> descriptors = new ArrayList<>();
  private boolean started;
  private boolean complete;

  /** A message with its handles. */
  record Received(IpcFrame frame, List<AllocationHandle> handles) {}

  IpcReader(DescriptorCalls calls, OpenSocket socket, String name) {
    this.calls = calls;
    this.socket = socket;
    this.name = name;
  }

  /** Whether a part of a message was taken off the socket and its end was not. */
  boolean isInTheMiddle() {
    return started && !complete;
  }

  Received read(Duration timeout) {
    try {
      return readAll(timeout);
    } catch (IOException e) {
      var failure = new UncheckedIOException(name + ": " + e.getMessage(), e);
      closeDescriptors(failure);
      throw failure;
    } catch (RuntimeException e) {
      closeDescriptors(e);
      throw e;
    }
  }

  private Received readAll(Duration timeout) throws IOException {
    byte[] first = new byte[IpcFrame.HEADER_BYTES];
    int have = readSome(first, 0, timeout);
    Duration rest = timeout.compareTo(LEAST_REST) < 0 ? LEAST_REST : timeout;
    long end = System.nanoTime() + OpenSocket.nanos(rest);
    readRest(first, have, end);
    IpcFrame.Header header = IpcFrame.header(first);
    byte[] following = new byte[header.bytes()];
    readRest(following, 0, end);
    IpcFrame frame = IpcFrame.of(header, following);
    if (descriptors.size() != header.descriptors()) {
      throw new StreamCorruptedException(
          "%d descriptors came (expected: %d, as announced)"
              .formatted(descriptors.size(), header.descriptors()));
    }
    complete = true;
    List<AllocationHandle> handles = new ArrayList<>();
    for (int i = 0; i < descriptors.size(); i++) {
      handles.add(new AllocationHandle(calls, descriptors.get(i), frame.uuids().get(i)));
    }
    return new Received(frame, List.copyOf(handles));
  }

  private void readRest(byte[] into, int from, long end) throws IOException {
    for (int have = from; have < into.length; ) {
      have += readSome(into, have, Duration.ofNanos(Math.max(0, end - System.nanoTime())));
    }
  }

  private int readSome(byte[] into, int from, Duration timeout) throws IOException {
    DescriptorCalls.Received part =
        socket.sliced(timeout, slice -> receive(into.length - from, slice));
    for (int descriptor : part.descriptors()) {
      descriptors.add(descriptor);
    }
    int count = part.bytes().length;
    if (count == 0) {
      throw new EOFException(
          started ? "the peer closed in the middle of a message" : "the peer closed");
    }
    started = true;
    System.arraycopy(part.bytes(), 0, into, from, count);
    if (descriptors.size() > IpcFrame.MOST_DESCRIPTORS) {
      throw new StreamCorruptedException(
          "%d descriptors came (expected: <= %d)"
              .formatted(descriptors.size(), IpcFrame.MOST_DESCRIPTORS));
    }
    return count;
  }

  /** Anything but an end of patience may have taken bytes off the socket that are lost now. */
  private DescriptorCalls.Received receive(int bytes, Duration timeout) {
    try {
      return calls.receive(socket.descriptor(), bytes, timeout);
    } catch (UncheckedIOException e) {
      started |= !(e.getCause() instanceof InterruptedIOException);
      throw e;
    }
  }

  private void closeDescriptors(RuntimeException failure) {
    descriptors.forEach(descriptor -> Descriptors.closeAfter(failure, calls, descriptor));
    descriptors.clear();
  }
}
