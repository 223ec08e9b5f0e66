package io.cuvette.ffm;

import io.cuvette.driver.DescriptorCalls;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.Locale;

/**
 * Descriptors and Unix sockets through the C library of Linux. Thread-safe.
 *
 * <p>Calls that wait do so inside C, but on a virtual thread they look every few milliseconds, so
 * that it does not keep its carrier. They look every 100 ms at least whether the thread was
 * interrupted, and then fail with an {@link java.io.InterruptedIOException} inside an {@link
 * java.io.UncheckedIOException}; the thread stays interrupted. One that has waited its time fails
 * with a {@link java.net.SocketTimeoutException} in the same way; a time of 0 does not wait. After
 * a failure in the middle of a message the connection is of no further use.
 */
public final class FfmDescriptors implements DescriptorCalls {
  static final int MFD_CLOEXEC = 1;
  static final int MFD_ALLOW_SEALING = 2;
  static final int F_ADD_SEALS = 1033;
  static final int F_GET_SEALS = 1034;

  /** Nobody can change the seals. */
  static final int F_SEAL_SEAL = 1;

  static final int F_SEAL_SHRINK = 2;
  static final int F_GETFD = 1;
  static final int F_DUPFD_CLOEXEC = 1030;

  /** For the service loader; binds nothing. */
  public FfmDescriptors() {}

  @Override
  public boolean isAvailable() {
    return System.getProperty("os.name", "").toLowerCase(Locale.ROOT).equals("linux");
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
    if (bytes < 0) {
      throw new IllegalArgumentException("bytes: " + bytes + " (expected: >= 0)");
    }
    String call = "memfd_create(name=" + name + ", bytes=" + bytes + ")";
    int descriptor =
        Libc.memfdCreate(Arena.ofAuto().allocateFrom(name), MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) {
      throw Errno.failure(-descriptor, call);
    }
    int result = Libc.ftruncate(descriptor, bytes);
    if (result >= 0) {
      result = Libc.fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
    }
    if (result < 0) {
      Libc.close(descriptor);
      throw Errno.failure(-result, call);
    }
    return descriptor;
  }

  @Override
  public boolean neverShrinks(int descriptor) {
    requireAvailable();
    int seals = Libc.fcntl(descriptor, F_GET_SEALS, 0);
    if (seals < 0 && seals != -Errno.EINVAL) { // which is for files that have no seals
      throw Errno.failure(-seals, "fcntl(descriptor=" + descriptor + ", F_GET_SEALS)");
    }
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  }

  @Override
  public int duplicate(int descriptor) {
    requireAvailable();
    int duplicate = Libc.fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) {
      throw Errno.failure(-duplicate, "fcntl(descriptor=" + descriptor + ", F_DUPFD_CLOEXEC)");
    }
    return duplicate;
  }

  @Override
  public boolean isOpen(int descriptor) {
    requireAvailable();
    int flags = Libc.fcntl(descriptor, F_GETFD, 0);
    if (flags < 0 && flags != -Errno.EBADF) {
      throw Errno.failure(-flags, "fcntl(descriptor=" + descriptor + ", F_GETFD)");
    }
    return flags >= 0;
  }

  @Override
  public void close(int descriptor) {
    requireAvailable();
    int result = Libc.close(descriptor);
    // Linux has closed it when it reports EINTR: closing again could hit somebody else's.
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
    return Libc.geteuid();
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
