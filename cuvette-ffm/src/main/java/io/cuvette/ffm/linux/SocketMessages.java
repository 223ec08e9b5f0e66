package io.cuvette.ffm.linux;

import io.cuvette.driver.DescriptorCalls.Received;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Arrays;

/** Sends and receives bytes and descriptors over a connected socket. Thread-safe. */
public final class SocketMessages {
  static final int DONTWAIT = 0x40;
  static final int NOSIGNAL = 0x4000;
  static final int CMSG_CLOEXEC = 0x4000_0000;
  private static final int[] NO_DESCRIPTORS = {};

  private SocketMessages() {}

  public static void send(int socket, byte[] bytes, int[] descriptors, Duration timeout) {
    if (bytes.length == 0) {
      throw new IllegalArgumentException("bytes: 0 (expected: >= 1)");
    }
    if (descriptors.length > MessageHeader.MOST_DESCRIPTORS) {
      throw new IllegalArgumentException(
          "descriptors: %d (expected: <= %d)"
              .formatted(descriptors.length, MessageHeader.MOST_DESCRIPTORS));
    }
    int[] sent = {0};
    Deadline deadline =
        Deadline.after(
            timeout,
            () ->
                "sendmsg(socket=%d, bytes=%d, descriptors=%s), %d bytes sent"
                    .formatted(socket, bytes.length, Arrays.toString(descriptors), sent[0]));
    try {
      while (sent[0] < bytes.length) {
        int[] first = sent[0] == 0 ? descriptors : NO_DESCRIPTORS;
        sent[0] += sendSome(socket, bytes, sent[0], first, deadline);
      }
    } catch (UncheckedIOException e) {
      if (e.getCause() instanceof InterruptedIOException interrupted) {
        interrupted.bytesTransferred = sent[0];
      }
      throw e;
    }
  }

  private static int sendSome(
      int socket, byte[] bytes, int from, int[] descriptors, Deadline deadline) {
    MessageHeader header =
        new MessageHeader(Math.min(bytes.length - from, MessageHeader.MOST_BYTES));
    header.put(bytes, from, descriptors);
    while (true) {
      deadline.await(socket, Deadline.WRITABLE);
      int count = Libc.SENDMSG.call(socket, header.segment(), NOSIGNAL | DONTWAIT);
      if (count >= 0) {
        return count;
      }
      requireTransient(count, deadline);
    }
  }

  public static Received receive(int socket, int maxBytes, Duration timeout) {
    if (maxBytes < 1) {
      throw new IllegalArgumentException("maxBytes: " + maxBytes + " (expected: >= 1)");
    }
    Deadline deadline =
        Deadline.after(
            timeout, () -> "recvmsg(socket=%d, maxBytes=%d)".formatted(socket, maxBytes));
    MessageHeader header = new MessageHeader(Math.min(maxBytes, MessageHeader.MOST_BYTES));
    while (true) {
      deadline.await(socket, Deadline.READABLE);
      header.reset();
      int count = Libc.RECVMSG.call(socket, header.segment(), CMSG_CLOEXEC | DONTWAIT);
      if (count >= 0) {
        return received(header, count, deadline);
      }
      if (count == -Errno.ECONNRESET) {
        // What the end of the peer is called if it left something unread; nothing more will come.
        return new Received(new byte[0], NO_DESCRIPTORS);
      }
      requireTransient(count, deadline);
    }
  }

  /** The descriptors are this process's from here on, and whatever fails has to close them. */
  private static Received received(MessageHeader header, int count, Deadline deadline) {
    int descriptors = header.takeDescriptors();
    try {
      if (header.isControlTruncated()) {
        throw Errno.unchecked(
            new IOException(
                deadline.call()
                    + ": descriptors are lost: more than %d came, or this process may open no more"
                        .formatted(MessageHeader.MOST_DESCRIPTORS)));
      }
      return new Received(header.bytes(count), header.descriptors(descriptors));
    } catch (RuntimeException | Error e) {
      for (int i = 0; i < descriptors; i++) {
        Libc.close(header.descriptor(i));
      }
      throw e;
    }
  }

  /** Fails unless the call may just be made again. */
  static void requireTransient(int result, Deadline deadline) {
    if (result != -Errno.EAGAIN && result != -Errno.EINTR) {
      throw Errno.failure(-result, deadline.call());
    }
  }
}
