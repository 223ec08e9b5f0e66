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

  /** {@return the calls of this machine; empty if it has none or no module provides them} */
  static Optional<DescriptorCalls> find() {
    return ServiceLoader.load(DescriptorCalls.class, DescriptorCalls.class.getClassLoader())
        .stream()
        .map(ServiceLoader.Provider::get)
        .filter(DescriptorCalls::isAvailable)
        .findFirst();
  }

  /** {@return whether these calls work on this system; if not, each is unsupported} */
  default boolean isAvailable() {
    return true;
  }

  /**
   * Creates memory as a file without a name, filled with 0 and sealed: no process can make it
   * shorter, which would unmap the memory of others, or longer (memfd_create, ftruncate, fcntl
   * F_ADD_SEALS).
   *
   * @param name a name for debuggers
   * @param bytes the size in bytes, >= 1
   * @return the descriptor of the file
   */
  int memoryFile(String name, long bytes);

  /**
   * {@return whether a file is one of {@link #memoryFile}, whichever process made it: memory in
   * pages of the usual size that never gets shorter or longer (fcntl F_GET_SEALS, fstatfs)}
   *
   * @param descriptor the descriptor
   */
  boolean isMemoryFile(int descriptor);

  /**
   * Opens the file that a path such as {@code /proc/PID/fd/N} names if it is one of {@link
   * #memoryFile}. Other files are not opened, which could block or have an effect (open, fstatfs).
   *
   * @param path the path
   * @return the descriptor of the file
   * @throws IllegalArgumentException if it is something else
   * @throws java.io.UncheckedIOException with a {@link java.nio.file.NoSuchFileException} if there
   *     is nothing
   */
  int openMemoryFile(String path);

  /** Whether two descriptors are of one file. */
  enum Sameness {
    /** One file. */
    SAME,
    /** Two files. */
    OTHER,
    /** Not reported by the system. */
    UNKNOWN
  }

  /**
   * Compares two descriptors: whether they are of the same memory, or of the same opened object of
   * a driver (fstat, kcmp).
   *
   * @param descriptor the descriptor
   * @param other the other descriptor
   * @return whether they are of one file
   */
  Sameness compare(int descriptor, int other);

  /**
   * {@return another descriptor of the same file (fcntl F_DUPFD_CLOEXEC)}
   *
   * @param descriptor the descriptor
   */
  int duplicate(int descriptor);

  /**
   * {@return whether a descriptor is open in this process (fcntl F_GETFD)}
   *
   * @param descriptor the descriptor
   */
  boolean isOpen(int descriptor);

  /**
   * Closes a descriptor (close).
   *
   * @param descriptor the descriptor
   */
  void close(int descriptor);

  /**
   * Creates a listening Unix socket at a path that must not exist yet; only this user can connect
   * to it (socket, fchmod, bind, listen).
   *
   * @param path the path of the socket, at most 107 bytes in UTF-8
   * @return the descriptor of the listening socket
   */
  int listen(String path);

  /**
   * {@return whether a process has a socket at a path, listening or not yet; without an effect on
   * that process (socket, connect)}
   *
   * @param path the path of the socket, at most 107 bytes in UTF-8
   */
  boolean isBound(String path);

  /**
   * Acquires the lock of the file at a path, held by the returned descriptor until it is closed or
   * the process ends. If there is no file, one is created for this user alone (open, flock).
   *
   * @param path the path of the file
   * @param timeout how long to wait at most, > 0
   * @return the descriptor that holds the lock
   * @throws IllegalArgumentException if the file is not an empty one of this user; it stays as it
   *     is
   */
  int lock(String path, Duration timeout);

  /**
   * Waits for a connection (poll, accept4).
   *
   * @param listener the descriptor of the listening socket
   * @param timeout how long to wait at most, > 0
   * @return the descriptor of the connection
   */
  int accept(int listener, Duration timeout);

  /**
   * Connects to a Unix socket (socket, connect).
   *
   * @param path the path of the socket, at most 107 bytes in UTF-8
   * @param timeout how long to wait at most, > 0
   * @return the descriptor of the connection
   */
  int connect(String path, Duration timeout);

  /**
   * {@return the user at the other end of a connection (getsockopt SO_PEERCRED)}
   *
   * @param socket the descriptor of a connection
   */
  int peerUser(int socket);

  /** {@return the user of this process (geteuid)} */
  int user();

  /**
   * Sends bytes and, with the first of them, descriptors, which stay the caller's to close (poll,
   * sendmsg). If sending is interrupted or times out, the {@link java.io.InterruptedIOException}
   * has the number of bytes sent in {@code bytesTransferred}.
   *
   * @param socket the descriptor of a connection
   * @param bytes the bytes to send, >= 1
   * @param descriptors at most {@link #MOST_DESCRIPTORS}
   * @param timeout how long to wait at most, > 0
   */
  void send(int socket, byte[] bytes, int[] descriptors, Duration timeout);

  /**
   * Receives up to some bytes, and the descriptors that came with them, at most {@link
   * #MOST_DESCRIPTORS} (poll, recvmsg). All descriptors are closed if this fails, for want of
   * memory too.
   *
   * @param socket the descriptor of a connection
   * @param maxBytes how many bytes to receive at most, >= 1
   * @param timeout how long to wait at most, > 0
   * @return the bytes and descriptors; no bytes at the end of the connection
   */
  Received receive(int socket, int maxBytes, Duration timeout);

  /**
   * Bytes and descriptors that {@link #receive} received.
   *
   * @param bytes empty at the end of the connection
   * @param descriptors the receiver's to close
   */
  @SuppressWarnings("ArrayRecordComponent") // passed on, never compared
  record Received(byte[] bytes, int[] descriptors) {
    /** Creates a received message; the arrays are not copied. */
    public Received {
      Objects.requireNonNull(bytes, "bytes");
      Objects.requireNonNull(descriptors, "descriptors");
    }
  }
}
