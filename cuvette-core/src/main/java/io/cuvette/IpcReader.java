package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.channel.Closing;
import io.cuvette.internal.channel.IpcFrame;
import io.cuvette.internal.channel.OpenSocket;
import io.cuvette.internal.channel.PoolHandle;
import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.StreamCorruptedException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * Reads one message from a socket, and has the descriptors that came until they are handed over;
 * closing it closes those that were not. What it needs to note them is there before they come, so
 * that none is lost when memory is out. Used by one thread, once.
 */
final class IpcReader implements AutoCloseable {
  /** A message that has begun gets so long to end, however impatient the receiver is. */
  private static final Duration LEAST_REST = Duration.ofSeconds(1);

  private final DescriptorCalls calls;
  private final OpenSocket socket;
  private final String name;

  /**
   * The descriptors of a message, with room for one part more: what is too much is seen only then.
   */
  private int[] descriptors = new int[IpcFrame.MOST_DESCRIPTORS + DescriptorCalls.MOST_DESCRIPTORS];

  private int most = IpcFrame.MOST_DESCRIPTORS;
  private int count;
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

  /** The message, whose handles are the reader's. */
  Received read(Duration timeout) {
    try {
      return readAll(timeout);
    } catch (IOException e) {
      throw new UncheckedIOException(name + ": " + e.getMessage(), e);
    }
  }

  /** Makes something of a message that has its handles from then on. */
  <T> T handOver(Received message, Function<Received, T> maker) {
    T made = maker.apply(message);
    count = 0;
    message.handles().forEach(handle -> handle.core().own());
    return made;
  }

  private Received readAll(Duration timeout) throws IOException {
    byte[] first = new byte[IpcFrame.HEADER_BYTES];
    int have = readSome(first, 0, timeout);
    Duration rest = timeout.compareTo(LEAST_REST) < 0 ? LEAST_REST : timeout;
    long end = System.nanoTime() + OpenSocket.nanos(rest);
    readRest(first, have, end);
    IpcFrame.Header header = IpcFrame.header(first);
    if (header.descriptors() > most) {
      most = header.descriptors();
      descriptors = Arrays.copyOf(descriptors, most + DescriptorCalls.MOST_DESCRIPTORS);
    }
    byte[] following = new byte[header.bytes()];
    readRest(following, 0, end);
    IpcFrame frame = IpcFrame.of(header, following);
    if (count != header.descriptors()) {
      throw new StreamCorruptedException(
          "%d descriptors came (expected: %d, as announced)"
              .formatted(count, header.descriptors()));
    }
    complete = true;
    List<AllocationHandle> handles = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      handles.add(
          new AllocationHandle(new PoolHandle(calls, descriptors[i], frame.uuids().get(i))));
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
    System.arraycopy(part.descriptors(), 0, descriptors, count, part.descriptors().length);
    count += part.descriptors().length;
    int bytes = part.bytes().length;
    if (bytes == 0) {
      throw new EOFException(
          started ? "the peer closed in the middle of a message" : "the peer closed");
    }
    started = true;
    System.arraycopy(part.bytes(), 0, into, from, bytes);
    if (count > most) {
      throw new StreamCorruptedException(
          "%d descriptors came (expected: <= %d)".formatted(count, most));
    }
    return bytes;
  }

  /** Anything but an end of patience may have taken bytes off the socket that are lost now. */
  private DescriptorCalls.Received receive(int bytes, Duration timeout) {
    boolean lost = true;
    try {
      DescriptorCalls.Received part = calls.receive(socket.descriptor(), bytes, timeout);
      lost = false;
      return part;
    } catch (UncheckedIOException e) {
      lost = !(e.getCause() instanceof InterruptedIOException);
      throw e;
    } finally {
      started |= lost;
    }
  }

  @Override
  public void close() {
    if (count > 0) {
      Closing.close(calls, descriptors, count);
    }
  }
}
