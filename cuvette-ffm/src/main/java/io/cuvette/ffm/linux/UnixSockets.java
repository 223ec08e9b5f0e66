package io.cuvette.ffm.linux;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Set;

/** Makes connections over Unix sockets; none of its sockets blocks in C. Thread-safe. */
public final class UnixSockets {
  static final int STREAM = 1;
  static final int DATAGRAM = 2;
  static final int NONBLOCK = 0x800;
  static final int CLOEXEC = 0x80000;
  private static final int BACKLOG = 128;
  static final int OWNER_ONLY = 0600;
  static final int SOL_SOCKET = 1;
  static final int SO_PEERCRED = 17;
  static final int UCRED_BYTES = 12;
  static final int UCRED_USER = 4;
  private static final int NOBODY = -1;

  private UnixSockets() {}

  /** A listening socket. */
  public static int listen(String path) {
    MemorySegment address = UnixAddress.of(path);
    Path file = Path.of(path);
    String call = "listen(path=" + path + ")";
    int socket = socket(STREAM, call);
    boolean bound = false;
    try {
      // The file gets the mode of its socket: it never exists with another.
      Errno.require(Libc.FCHMOD.call(socket, OWNER_ONLY), call);
      requireBound(Libc.BIND.call(socket, address, (int) address.byteSize()), path, call);
      bound = true;
      requireOwnerOnly(file);
      Errno.require(Libc.LISTEN.call(socket, BACKLOG), call);
      return socket;
    } catch (RuntimeException | Error e) {
      Libc.close(socket);
      if (bound) {
        delete(file, e);
      }
      throw e;
    }
  }

  private static int socket(int type, String call) {
    return Errno.require(Libc.SOCKET.call(UnixAddress.FAMILY, type | NONBLOCK | CLOEXEC, 0), call);
  }

  private static void requireBound(int result, String path, String call) {
    if (result == -Errno.EADDRINUSE) {
      throw Errno.unchecked(
          new FileAlreadyExistsException(
              path, null, call + ": " + Errno.text(-result) + "; a socket needs a new path"));
    }
    Errno.require(result, call);
  }

  /** Some kernels of sandboxes do not give the file the mode of its socket. */
  static void requireOwnerOnly(Path path) {
    try {
      Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(path);
      if (!PosixFilePermissions.fromString("rw-------").containsAll(permissions)) {
        throw new IOException(
            "socket %s: permissions %s (expected: rw-------); the system ignores fchmod of sockets"
                .formatted(path, PosixFilePermissions.toString(permissions)));
      }
    } catch (IOException e) {
      throw Errno.unchecked(e);
    }
  }

  private static void delete(Path file, Throwable cause) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      cause.addSuppressed(e);
    }
  }

  /** Waits for a connection. */
  public static int accept(int listener, Duration timeout) {
    Deadline deadline = Deadline.after(timeout, () -> "accept(listener=" + listener + ")");
    while (true) {
      deadline.await(listener, Deadline.READABLE);
      int socket = Libc.ACCEPT4.call(listener, 0L, 0L, NONBLOCK | CLOEXEC);
      if (socket >= 0) {
        return socket;
      }
      if (socket != -Errno.EAGAIN && socket != -Errno.EINTR && socket != -Errno.ECONNABORTED) {
        throw Errno.failure(-socket, deadline.call());
      }
    }
  }

  /** Connects, and waits while the listener has no room for one more. */
  public static int connect(String path, Duration timeout) {
    MemorySegment address = UnixAddress.of(path);
    Deadline deadline = Deadline.after(timeout, () -> "connect(path=" + path + ")");
    int socket = socket(STREAM, deadline.call());
    try {
      int result = Libc.CONNECT.call(socket, address, (int) address.byteSize());
      while (result == -Errno.EAGAIN || result == -Errno.EINTR) {
        deadline.pause();
        result = Libc.CONNECT.call(socket, address, (int) address.byteSize());
      }
      requireConnected(result, path, deadline.call());
      return socket;
    } catch (RuntimeException | Error e) {
      Libc.close(socket);
      throw e;
    }
  }

  /**
   * Whether a process has a socket at a path. It is found out by a socket of another type, which is
   * turned away before it would wait in a queue to be accepted.
   */
  public static boolean isBound(String path) {
    MemorySegment address = UnixAddress.of(path);
    String call = "connect(path=" + path + ")";
    int socket = socket(DATAGRAM, call);
    int result = Libc.CONNECT.call(socket, address, (int) address.byteSize());
    Libc.close(socket);
    return switch (-result) {
      case 0, Errno.EPROTOTYPE -> true;
      case Errno.ECONNREFUSED, Errno.ENOENT -> false;
      default -> throw Errno.failure(-result, call);
    };
  }

  private static void requireConnected(int result, String path, String call) {
    if (result == -Errno.ENOENT) {
      throw Errno.unchecked(new NoSuchFileException(path, null, call + ": " + Errno.text(-result)));
    }
    Errno.require(result, call);
  }

  /** The user that the other end had when it connected or began to listen. */
  public static int peerUser(int socket) {
    String call = "getsockopt(socket=" + socket + ", SO_PEERCRED)";
    MemorySegment memory = Arena.ofAuto().allocate(UCRED_BYTES + Integer.BYTES, Integer.BYTES);
    MemorySegment bytes = memory.asSlice(UCRED_BYTES);
    bytes.set(ValueLayout.JAVA_INT, 0, UCRED_BYTES);
    Errno.require(Libc.GETSOCKOPT.call(socket, SOL_SOCKET, SO_PEERCRED, memory, bytes), call);
    int user = memory.get(ValueLayout.JAVA_INT, UCRED_USER);
    if (bytes.get(ValueLayout.JAVA_INT, 0) != UCRED_BYTES || user == NOBODY) {
      throw Errno.failure(Errno.ENOTCONN, call);
    }
    return user;
  }
}
