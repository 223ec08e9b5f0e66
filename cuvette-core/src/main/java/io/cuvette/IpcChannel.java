package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Users;
import io.cuvette.internal.channel.Closing;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.channel.IpcFrame;
import io.cuvette.internal.channel.OpenSocket;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A connection between two processes of one user, over which descriptors of memory and events are
 * passed (Unix socket, SCM_RIGHTS). Linux only.
 *
 * <p>What is trusted: the process at the other end is this user's, which the system vouches for on
 * both sides; nothing else is. What comes is checked before it is used, and what is malformed ends
 * the connection. But memory that was shared is shared: an importer can write all of an exported
 * pool's buffers and all of a plain allocation, and the exporter sees that happen. Share with
 * processes only that may do so.
 *
 * <p>Messages are framed; each {@code receive…} takes one. A failure between two messages leaves
 * the channel usable; one in the middle of a message closes it, because its rest cannot be
 * distinguished from the next message. Thread-safe: messages of several threads do not mix. The
 * collector closes a channel that is forgotten.
 */
public final class IpcChannel implements AutoCloseable {
  /** The most bytes of a message. */
  public static final int MOST_MESSAGE_BYTES = IpcFrame.MOST_CONTENT_BYTES;

  /** The most handles of a message. */
  public static final int MOST_HANDLES = IpcFrame.MOST_DESCRIPTORS;

  private static final long TRY_AGAIN_NANOS = 5_000_000;

  private final DescriptorCalls calls;
  private final OpenSocket socket;
  private final String name;

  /** One message at a time each way; they are held across calls of the system, not the driver. */
  private final ReentrantLock sending = new ReentrantLock();

  private final ReentrantLock receiving = new ReentrantLock();
  private volatile @Nullable Throwable broken;

  /**
   * A message of bytes and handles, which are the receiver's to close.
   *
   * @param bytes the bytes of the message
   * @param handles in the sender's order
   */
  @SuppressWarnings("ArrayRecordComponent") // the bytes are the receiver's
  public record Message(byte[] bytes, List<AllocationHandle> handles) implements AutoCloseable {
    /** Creates a message. */
    public Message {
      Objects.requireNonNull(bytes, "bytes");
      Objects.requireNonNull(handles, "handles");
    }

    /** Closes the handles. */
    @Override
    public void close() {
      Failures failures = new Failures();
      handles.forEach(handle -> failures.run(handle::close));
      failures.throwFirst();
    }
  }

  private IpcChannel(DescriptorCalls calls, int socket, String name) {
    this.calls = calls;
    this.name = name;
    this.socket = new OpenSocket(calls, socket, this.name);
  }

  /** A channel over a connected socket, which is closed if the other end is another user's. */
  static IpcChannel of(DescriptorCalls calls, int socket, String how) {
    try {
      int peer = calls.peerUser(socket);
      int user = Users.own(calls);
      if (peer != user) {
        throw new SecurityException(
            "channel %s: the other process is of user %d (expected: %d, as this one)"
                .formatted(how, peer, user));
      }
      return new IpcChannel(calls, socket, "channel " + how);
    } catch (RuntimeException | Error e) {
      Closing.closeAfter(e, calls, socket);
      throw e;
    }
  }

  /**
   * Connects to an {@link IpcListener} at a path, and waits for one if there is none yet.
   *
   * @param path the path of the socket
   * @param timeout how long to wait; zero tries once
   * @return the channel
   * @throws SecurityException if the listener is another user's
   * @throws UncheckedIOException if there is no listener in time, or the system refuses
   * @throws UnsupportedOperationException where descriptors cannot be passed
   */
  public static IpcChannel connect(Path path, Duration timeout) {
    Objects.requireNonNull(path, "path");
    Objects.requireNonNull(timeout, "timeout");
    DescriptorCalls calls = Descriptors.require("IpcChannel");
    OpenSocket.checkTimeout(timeout);
    return of(calls, connected(calls, path, timeout), "connected to " + path);
  }

  private static int connected(DescriptorCalls calls, Path path, Duration timeout) {
    long end = System.nanoTime() + OpenSocket.nanos(timeout);
    while (true) {
      long left = end - System.nanoTime();
      try {
        return calls.connect(path.toString(), Duration.ofNanos(Math.max(0, left)));
      } catch (UncheckedIOException e) {
        boolean nobodyYet =
            e.getCause() instanceof NoSuchFileException || e.getCause() instanceof ConnectException;
        if (!nobodyYet || left <= 0) {
          throw !nobodyYet
              ? e
              : new UncheckedIOException(
                  "path: %s has no listener after %s (expected: an IpcListener; wait longer for it)"
                      .formatted(path, timeout),
                  e.getCause());
        }
        if (Thread.currentThread().isInterrupted()) {
          throw interrupted("connecting to " + path, e);
        }
      }
      LockSupport.parkNanos(Math.clamp(left, 1, TRY_AGAIN_NANOS));
    }
  }

  /**
   * Sends a message. The handles stay the sender's to close; the receiver gets its own.
   *
   * @param message up to {@link #MOST_MESSAGE_BYTES}; may be empty
   * @param handles up to {@link #MOST_HANDLES}
   * @throws UncheckedIOException if the peer is gone, takes nothing for 30 seconds, or has not
   *     taken all in 60; the channel is then closed. An {@link InterruptedIOException} if the
   *     thread is interrupted; if nothing was sent yet, the channel stays open
   * @throws IllegalStateException if the channel or a handle is closed, or the channel breaks
   */
  public void send(byte[] message, AllocationHandle... handles) {
    Objects.requireNonNull(message, "message");
    Objects.requireNonNull(handles, "handles");
    Checks.inRange("message bytes", message.length, 0, MOST_MESSAGE_BYTES);
    Checks.inRange("handles", handles.length, 0, MOST_HANDLES);
    send(IpcFrame.Kind.MESSAGE, message.clone(), List.of(handles));
  }

  /**
   * Sends what a memory resource is imported by; the handle stays the sender's to close.
   *
   * @param handle the handle, which stays open here
   */
  public void send(AllocationHandle handle) {
    Objects.requireNonNull(handle, "handle");
    send(IpcFrame.Kind.ALLOCATION_HANDLE, new byte[0], List.of(handle));
  }

  /**
   * Sends what a buffer is imported by.
   *
   * @param descriptor the descriptor
   */
  public void send(BufferDescriptor descriptor) {
    Objects.requireNonNull(descriptor, "descriptor");
    send(IpcFrame.Kind.BUFFER_DESCRIPTOR, descriptor.toBytes(), List.of());
  }

  /**
   * Sends what an event is imported by.
   *
   * @param descriptor the descriptor
   */
  public void send(EventDescriptor descriptor) {
    Objects.requireNonNull(descriptor, "descriptor");
    send(IpcFrame.Kind.EVENT_DESCRIPTOR, descriptor.toBytes(), List.of());
  }

  /**
   * Sends what pages of an {@link ElasticMemoryPool} are imported by, which stays the sender's to
   * close.
   *
   * @param handles the handles, which stay open here
   */
  public void send(PageHandles handles) {
    Objects.requireNonNull(handles, "handles");
    handles.checkOpen();
    send(IpcFrame.Kind.PAGE_HANDLES, handles.toBytes(), handles.handles());
  }

  private void send(IpcFrame.Kind kind, byte[] content, List<AllocationHandle> handles) {
    List<@Nullable UUID> uuids = new ArrayList<>();
    handles.forEach(handle -> uuids.add(handle.uuid().orElse(null)));
    byte[] bytes = new IpcFrame(kind, uuids, content).toBytes();
    int[] descriptors = duplicates(handles);
    try {
      sending.lock();
      try {
        inside(() -> sendNow(bytes, descriptors));
      } finally {
        leave(sending);
      }
    } finally {
      Closing.closeNow(calls, descriptors, descriptors.length);
    }
  }

  /** Own descriptors, which no other thread closes while they are sent. */
  private int[] duplicates(List<AllocationHandle> handles) {
    int[] descriptors = new int[handles.size()];
    int made = 0;
    try {
      for (AllocationHandle handle : handles) {
        descriptors[made] = handle.core().duplicateDescriptor();
        made++;
      }
      return descriptors;
    } catch (RuntimeException | Error e) {
      Closing.closeNow(calls, descriptors, made);
      throw e;
    }
  }

  private Boolean sendNow(byte[] bytes, int[] descriptors) {
    IpcWriter writer = new IpcWriter(calls, socket, name, () -> broken != null);
    try {
      writer.write(bytes, descriptors);
      return true;
    } catch (RuntimeException | Error e) {
      if (broken == null && !writer.isUntouchedBy(e)) {
        broken = e;
      }
      throw e;
    }
  }

  /**
   * Receives a message of bytes and handles.
   *
   * @param timeout how long to wait for it to begin, and then, at least a second, for its end; zero
   *     looks once
   * @return the message
   * @throws UncheckedIOException a {@link java.net.SocketTimeoutException} if nothing came in time,
   *     an {@link java.io.EOFException} if the peer closed, a {@link
   *     java.io.StreamCorruptedException} if what came is no message
   * @throws IllegalStateException if something else came, which is lost, or the channel is closed,
   *     also while waiting
   */
  public Message receiveMessage(Duration timeout) {
    Objects.requireNonNull(timeout, "timeout");
    return receive(
        IpcFrame.Kind.MESSAGE, timeout, got -> new Message(got.frame().content(), got.handles()));
  }

  /**
   * Receives the handle of a memory resource, which the receiver closes. Errors as in {@link
   * #receiveMessage}.
   *
   * @param timeout how long to wait at most, > 0
   * @return the handle
   */
  public AllocationHandle receiveAllocationHandle(Duration timeout) {
    Objects.requireNonNull(timeout, "timeout");
    return receive(IpcFrame.Kind.ALLOCATION_HANDLE, timeout, got -> got.handles().getFirst());
  }

  /**
   * Receives the descriptor of a buffer. Errors as in {@link #receiveMessage}.
   *
   * @param timeout how long to wait at most, > 0
   * @return the descriptor
   * @throws IllegalArgumentException if the descriptor is malformed
   */
  public BufferDescriptor receiveBufferDescriptor(Duration timeout) {
    Objects.requireNonNull(timeout, "timeout");
    return receive(
        IpcFrame.Kind.BUFFER_DESCRIPTOR,
        timeout,
        got -> BufferDescriptor.fromBytes(got.frame().content()));
  }

  /**
   * Receives what pages of an {@link ElasticMemoryPool} are imported by, which the receiver closes.
   * Errors as in {@link #receiveMessage}.
   *
   * @param timeout how long to wait at most, > 0
   * @return the handles
   * @throws IllegalArgumentException if what came is malformed
   */
  public PageHandles receivePageHandles(Duration timeout) {
    Objects.requireNonNull(timeout, "timeout");
    return receive(
        IpcFrame.Kind.PAGE_HANDLES,
        timeout,
        got -> PageHandles.of(got.frame().content(), got.handles()));
  }

  /**
   * Receives the descriptor of an event. Errors as in {@link #receiveMessage}.
   *
   * @param timeout how long to wait at most, > 0
   * @return the descriptor
   * @throws IllegalArgumentException if the descriptor is malformed
   */
  public EventDescriptor receiveEventDescriptor(Duration timeout) {
    Objects.requireNonNull(timeout, "timeout");
    return receive(
        IpcFrame.Kind.EVENT_DESCRIPTOR,
        timeout,
        got -> EventDescriptor.fromBytes(got.frame().content()));
  }

  private <T> T receive(
      IpcFrame.Kind expected, Duration timeout, Function<IpcReader.Received, T> maker) {
    try (IpcReader reader = new IpcReader(calls, socket, name)) {
      IpcReader.Received got = receive(reader, timeout);
      IpcFrame.Kind kind = got.frame().kind();
      if (kind != expected) {
        throw new IllegalStateException(
            "%s: received %s (expected: %s)".formatted(name, kind.text, expected.text));
      }
      return reader.handOver(got, maker);
    }
  }

  private IpcReader.Received receive(IpcReader reader, Duration timeout) {
    long left = awaitTurn(timeout);
    try {
      return inside(() -> receiveNow(reader, Duration.ofNanos(left)));
    } finally {
      leave(receiving);
    }
  }

  /** Takes the lock of receivers, for which others are waited for too; what is left of the time. */
  private long awaitTurn(Duration timeout) {
    OpenSocket.checkTimeout(timeout);
    long most = OpenSocket.nanos(timeout);
    if (receiving.tryLock()) {
      return most;
    }
    long start = System.nanoTime();
    try {
      if (receiving.tryLock(most, TimeUnit.NANOSECONDS)) {
        return Math.max(0, most - (System.nanoTime() - start));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw interrupted(name, e);
    }
    throw socket.timedOut(timeout);
  }

  private static UncheckedIOException interrupted(String what, Exception cause) {
    var interrupted = new InterruptedIOException(what + ": the thread is interrupted");
    interrupted.initCause(cause);
    return new UncheckedIOException(interrupted.getMessage(), interrupted);
  }

  private IpcReader.Received receiveNow(IpcReader reader, Duration timeout) {
    try {
      return reader.read(timeout);
    } catch (RuntimeException | Error e) {
      if (reader.isInTheMiddle()) {
        broken = e;
      }
      throw e;
    }
  }

  private <T> T inside(Supplier<T> work) {
    checkOpen();
    return socket.use(open -> work.get());
  }

  /** Gives a lock back; a channel that broke is closed behind that. */
  private void leave(ReentrantLock held) {
    held.unlock();
    if (broken != null) {
      socket.close();
    }
  }

  private void checkOpen() {
    Throwable why = broken;
    if (why != null) {
      throw new IllegalStateException(
          name + " is closed: it failed in the middle of a message", why);
    }
    if (socket.isClosed()) {
      throw socket.isClosedNow();
    }
  }

  /** {@return whether the channel is closed, or failed in the middle of a message} */
  public boolean isClosed() {
    return socket.isClosed();
  }

  /**
   * Closes the connection, within a second whatever the peer does; what the peer has not received
   * yet, it still can. A wait for a message ends. A send under way may go on for 300 ms and then
   * ends with an {@link IllegalStateException}: the peer gets a part of its message. Does nothing
   * the second time.
   */
  @Override
  public void close() {
    socket.close();
  }

  @Override
  public String toString() {
    return "IpcChannel[%s]%s".formatted(name, isClosed() ? " (closed)" : "");
  }
}
