package io.cuvette.ffm;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.ffm.linux.Errno;
import io.cuvette.ffm.linux.FileLocks;
import io.cuvette.ffm.linux.Libc;
import io.cuvette.ffm.linux.MemoryFiles;
import io.cuvette.ffm.linux.SocketMessages;
import io.cuvette.ffm.linux.UnixSockets;
import java.time.Duration;

/**
 * Descriptors and Unix sockets through the C library of Linux. Thread-safe.
 *
 * <p>Calls that wait do so inside C, but on a virtual thread they poll every few milliseconds, so
 * that it does not keep its carrier. They check every 100 ms at least whether the thread was
 * interrupted, and then fail with an {@link java.io.InterruptedIOException} inside an {@link
 * java.io.UncheckedIOException}; the thread stays interrupted. One that has waited its time fails
 * with a {@link java.net.SocketTimeoutException} in the same way; a time of 0 does not wait. After
 * a failure in the middle of a message the connection is of no further use.
 */
public final class FfmDescriptors implements DescriptorCalls {
  public static final int F_GETFD = 1;
  public static final int F_DUPFD_CLOEXEC = 1030;

  /** For the service loader; binds nothing. */
  public FfmDescriptors() {}

  @Override
  public boolean isAvailable() {
    return "Linux".equalsIgnoreCase(System.getProperty("os.name")); // closing needs no heap
  }

  private void requireAvailable() {
    if (!isAvailable()) {
      throw new UnsupportedOperationException(
          "descriptors cannot be passed on %s (expected: Linux)"
              .formatted(System.getProperty("os.name")));
    }
  }

  @Override
  public int memoryFile(String name, long bytes) {
    requireAvailable();
    return MemoryFiles.make(name, bytes);
  }

  @Override
  public boolean isMemoryFile(int descriptor) {
    requireAvailable();
    return MemoryFiles.isOne(descriptor);
  }

  @Override
  public int openMemoryFile(String path) {
    requireAvailable();
    return MemoryFiles.open(path);
  }

  @Override
  public Sameness compare(int descriptor, int other) {
    requireAvailable();
    return MemoryFiles.compare(descriptor, other);
  }

  @Override
  public int duplicate(int descriptor) {
    requireAvailable();
    return Errno.require(
        Libc.FCNTL.call(descriptor, F_DUPFD_CLOEXEC, 0),
        "fcntl(descriptor=" + descriptor + ", F_DUPFD_CLOEXEC)");
  }

  @Override
  public boolean isOpen(int descriptor) {
    requireAvailable();
    int flags = Libc.FCNTL.call(descriptor, F_GETFD, 0);
    if (flags < 0 && flags != -Errno.EBADF) {
      throw Errno.failure(-flags, "fcntl(descriptor=" + descriptor + ", F_GETFD)");
    }
    return flags >= 0;
  }

  @Override
  public void close(int descriptor) {
    requireAvailable();
    int result = Libc.close(descriptor);
    // Linux has closed it when it reports EINTR: closing again could close a descriptor of another
    // thread.
    if (result < 0 && result != -Errno.EINTR) {
      throw Errno.failure(-result, "close(descriptor=" + descriptor + ")");
    }
  }

  @Override
  public int listen(String path) {
    requireAvailable();
    return UnixSockets.listen(path);
  }

  @Override
  public boolean isBound(String path) {
    requireAvailable();
    return UnixSockets.isBound(path);
  }

  @Override
  public int lock(String path, Duration timeout) {
    requireAvailable();
    return FileLocks.lock(path, timeout);
  }

  @Override
  public int accept(int listener, Duration timeout) {
    requireAvailable();
    return UnixSockets.accept(listener, timeout);
  }

  @Override
  public int connect(String path, Duration timeout) {
    requireAvailable();
    return UnixSockets.connect(path, timeout);
  }

  @Override
  public int peerUser(int socket) {
    requireAvailable();
    return UnixSockets.peerUser(socket);
  }

  @Override
  public int user() {
    requireAvailable();
    return Libc.GETEUID.call();
  }

  @Override
  public void send(int socket, byte[] bytes, int[] descriptors, Duration timeout) {
    requireAvailable();
    SocketMessages.send(socket, bytes, descriptors, timeout);
  }

  @Override
  public Received receive(int socket, int maxBytes, Duration timeout) {
    requireAvailable();
    return SocketMessages.receive(socket, maxBytes, timeout);
  }
}
