package io.cuvette.driver;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * Calls of the operating system about descriptors and the Unix sockets they are passed over, which
 * the JDK does not have. A descriptor that a method returns is the caller's to close, and no child
 * process inherits it. Failures are {@link java.io.UncheckedIOException} with the call, its
 * arguments and the system's reason. Found with {@link ServiceLoader}; Linux only. Thread-safe.
 */
public interface DescriptorCalls {

  /** Descriptors in one message at most. */
  int MOST_DESCRIPTORS = 16;

  /** The calls of this machine; empty where there are none, or no module that has them. */
  static Optional<DescriptorCalls> find() {
    return ServiceLoader.load(DescriptorCalls.class, DescriptorCalls.class.getClassLoader())
        .stream()
        .map(ServiceLoader.Provider::get)
        .filter(DescriptorCalls::isAvailable)
        .findFirst();
  }

  /** Whether these calls work on this system; where not, each is unsupported. */
  default boolean isAvailable() {
    return true;
  }

  /**
   * Memory of a size as a file without a name, at first all 0. It is sealed: nobody who has it can
   * make it shorter, which would take the memory from under the others, or longer (memfd_create,
   * ftruncate, fcntl F_ADD_SEALS).
   */
  int memoryFile(String name, long bytes);

  /**
   * Whether a file is one of {@link #memoryFile}, by whomever: memory in pages of the usual size,
   * that never gets shorter or longer (fcntl F_GET_SEALS, fstatfs).
   */
  boolean isMemoryFile(int descriptor);

  /**
   * Opens what a path such as {@code /proc/PID/fd/N} stands for if it is a file of {@link
   * #memoryFile}. Nothing else is opened, which could wait or do something (open, fstatfs).
   *
   * @throws IllegalArgumentException if it is something else
   * @throws java.io.UncheckedIOException with a {@link java.nio.file.NoSuchFileException} if there
   *     is nothing
   */
  int openMemoryFile(String path);

  /** Whether two descriptors are of one file, and the answer if the system does not tell. */
  enum Sameness {
    SAME,
    OTHER,
    UNKNOWN
  }

  /**
   * Compares two descriptors: whether they are of the same memory, or of the same opened object of
   * a driver (fstat, kcmp).
   */
  Sameness compare(int descriptor, int other);

  /** Another descriptor of the same file (fcntl F_DUPFD_CLOEXEC). */
  int duplicate(int descriptor);

  /** Whether a descriptor is open in this process (fcntl F_GETFD). */
  boolean isOpen(int descriptor);

  /** Closes a descriptor (close). */
  void close(int descriptor);

  /**
   * A listening Unix socket at a path that must not exist yet, which only this user can connect to
   * (socket, fchmod, bind, listen).
   */
  int listen(String path);

  /**
   * Whether a process has a socket at a path, listening or not yet; that process notices nothing
   * (socket, connect).
   */
  boolean isBound(String path);

  /**
   * Waits for the lock of the file at a path, which this descriptor alone has until it is closed or
   * the process ends. The file is made, for this user alone, if there is none (open, flock).
   *
   * @throws IllegalArgumentException if what is there is anything but an empty file of this user;
   *     it is left alone
   */
  int lock(String path, Duration timeout);

  /** Waits for a connection (poll, accept4). */
  int accept(int listener, Duration timeout);

  /** Connects to a Unix socket (socket, connect). */
  int connect(String path, Duration timeout);

  /** The user at the other end of a connection (getsockopt SO_PEERCRED). */
  int peerUser(int socket);

  /** The user of this process (geteuid). */
  int user();

  /**
   * Sends bytes and, with the first of them, descriptors, which stay the caller's to close (poll,
   * sendmsg). A failure that is an {@link java.io.InterruptedIOException}, as that of time is too,
   * says in its {@code bytesTransferred} how many were sent.
   *
   * @param bytes at least 1
   * @param descriptors at most {@link #MOST_DESCRIPTORS}
   */
  void send(int socket, byte[] bytes, int[] descriptors, Duration timeout);

  /**
   * Receives up to some bytes, and the descriptors that came with them, at most {@link
   * #MOST_DESCRIPTORS} (poll, recvmsg). All descriptors are closed if this fails, for want of
   * memory too.
   */
  Received receive(int socket, int maxBytes, Duration timeout);

  /**
   * What {@link #receive} got.
   *
   * @param bytes empty at the end of the connection
   * @param descriptors the receiver's to close
   */
  @SuppressWarnings("ArrayRecordComponent") // carried, never compared
  record Received(byte[] bytes, int[] descriptors) {
    public Received {
      Objects.requireNonNull(bytes, "bytes");
      Objects.requireNonNull(descriptors, "descriptors");
    }
  }
}
