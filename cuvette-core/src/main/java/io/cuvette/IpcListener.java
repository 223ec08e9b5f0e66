package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.base.Users;
import io.cuvette.internal.channel.Closing;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.channel.OpenSocket;
import io.cuvette.internal.channel.SocketLock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Waits for other processes of this user at a Unix socket. Only this user can connect to the file,
 * and each connection's user is queried from the system besides. Linux only. Thread-safe; several
 * threads can accept, and closing ends their waits. The collector closes the socket of a listener
 * that is forgotten, and leaves the file.
 */
public final class IpcListener implements AutoCloseable {
  private static final int ROOT = 0;
  private static final int OTHERS_WRITE = 0002;
  private static final int STICKY = 01000;
  private static final int PERMISSIONS = 07777;

  private final DescriptorCalls calls;
  private final Path path;
  private final OpenSocket socket;

  /** The file that the socket made, whose number no other file gets while the socket is open. */
  private final @Nullable Object fileKey;

  private IpcListener(DescriptorCalls calls, Path path, int socket) {
    this.calls = calls;
    this.path = path;
    this.fileKey = attributes(path).get("fileKey");
    this.socket = new OpenSocket(calls, socket, "listener at " + path);
  }

  /**
   * Listens at a path. Of all that try at once, one does. A socket that a process left behind when
   * it ended is replaced; any other file there is left alone.
   *
   * <p>While the socket is made there is a second file beside it, {@code .NAME.cuvette-lock}. It is
   * locked, and the system ends the lock with the process: one that is killed at that moment leaves
   * an empty file, which locks no process out and goes when a process listens there again.
   *
   * @param path at most 107 bytes; its directory must be this user's or root's, one that everybody
   *     can write only if it is sticky as {@code /tmp}, and should be this user's alone
   * @return the listener
   * @throws IllegalArgumentException if a file that is no socket of this user is there, or one that
   *     is no empty file of this user in the place of the lock, the directory is another user's or
   *     everybody's, or the path is too long
   * @throws SecurityException if this process's user has no number in its user namespace
   * @throws IllegalStateException if a process listens there, this one or another
   * @throws UncheckedIOException if there is no such directory, or the system refuses
   * @throws UnsupportedOperationException where descriptors cannot be passed
   */
  public static IpcListener open(Path path) {
    Objects.requireNonNull(path, "path");
    return open(Descriptors.require("IpcListener"), path);
  }

  static IpcListener open(DescriptorCalls calls, Path path) {
    int user = Users.own(calls);
    checkDirectory(user, path);
    leftBehind(calls, user, path); // says no without leaving a trace
    try (SocketLock _ = SocketLock.take(calls, path)) {
      Map<String, Object> old = leftBehind(calls, user, path);
      if (!old.isEmpty()) {
        replace(old, calls, path);
      }
      return listen(calls, path);
    }
  }

  /** In a directory of others, they decide which file a path is. */
  private static void checkDirectory(int user, Path path) {
    Path directory = path.toAbsolutePath().getParent();
    if (directory == null) {
      return; // the root, which is no socket
    }
    try {
      Map<String, Object> found = Files.readAttributes(directory, "unix:uid,mode");
      Object owner = found.get("uid");
      if (!Objects.equals(owner, ROOT) && !Objects.equals(owner, user)) {
        throw new IllegalArgumentException(
            "path: %s is in a directory of user %s (expected: one of user %d, as this process, or root)"
                .formatted(path, owner, user));
      }
      if ((mode(found) & (OTHERS_WRITE | STICKY)) == OTHERS_WRITE) {
        throw new IllegalArgumentException(
            "path: %s is in a directory with the mode 0%s, where every user can replace files"
                    .formatted(path, Integer.toOctalString(mode(found) & PERMISSIONS))
                + " (expected: one that others cannot write, or a sticky one)");
      }
    } catch (NoSuchFileException e) {
      throw new UncheckedIOException(
          "path: %s is in a directory that does not exist".formatted(path), e);
    } catch (IOException e) {
      throw unreadable(path, e);
    }
  }

  private static UncheckedIOException unreadable(Path path, IOException e) {
    return new UncheckedIOException("path: %s cannot be looked at: %s".formatted(path, e), e);
  }

  /**
   * The file of a process that is gone, empty if there is none.
   *
   * @throws RuntimeException if there is anything else
   */
  private static Map<String, Object> leftBehind(DescriptorCalls calls, int user, Path path) {
    Map<String, Object> found = attributes(path);
    if (!found.isEmpty() && !isOwnSocket(found, user)) {
      throw new IllegalArgumentException(
          "path: %s is a file of user %s with the type and mode 0%s"
                  .formatted(path, found.get("uid"), Integer.toOctalString(mode(found)))
              + " (expected: a new path, or a socket of user %d)".formatted(user));
    }
    if (calls.isBound(path.toString())) {
      throw taken(path, null);
    }
    return found;
  }

  private static boolean isOwnSocket(Map<String, Object> file, int user) {
    boolean isSocket = (mode(file) & 0170000) == 0140000; // S_IFMT, S_IFSOCK
    return isSocket && Objects.equals(file.get("uid"), user);
  }

  private static int mode(Map<String, Object> file) {
    return (Integer) file.getOrDefault("mode", 0);
  }

  /** Only with the lock: no other listener makes the path its own meanwhile. */
  private static void replace(Map<String, Object> old, DescriptorCalls calls, Path path) {
    // Numbers of files are soon used again, so the times are compared too.
    if (isListenedAt(calls, path) || !old.equals(attributes(path))) {
      throw taken(path, null);
    }
    delete(path);
  }

  /** Some kernels of sandboxes do not report what is bound before a real connection. */
  private static boolean isListenedAt(DescriptorCalls calls, Path path) {
    try {
      calls.close(calls.connect(path.toString(), Duration.ZERO));
      return true;
    } catch (UncheckedIOException e) {
      if (e.getCause() instanceof ConnectException || e.getCause() instanceof NoSuchFileException) {
        return false;
      }
      if (e.getCause() instanceof SocketTimeoutException) {
        return true; // more wait there than it has room for
      }
      throw e;
    }
  }

  private static IpcListener listen(DescriptorCalls calls, Path path) {
    int socket;
    try {
      socket = calls.listen(path.toString());
    } catch (UncheckedIOException e) {
      throw e.getCause() instanceof FileAlreadyExistsException ? taken(path, e) : e;
    }
    try {
      return new IpcListener(calls, path, socket);
    } catch (RuntimeException | Error e) {
      Closing.closeAfter(e, calls, socket);
      throw e;
    }
  }

  private static IllegalStateException taken(Path path, @Nullable Throwable cause) {
    return new IllegalStateException(
        "path: %s has a listener (expected: a path where nobody listens)".formatted(path), cause);
  }

  /** Of the file itself, not of what it points to; empty if there is none. */
  private static Map<String, Object> attributes(Path path) {
    try {
      return Files.readAttributes(
          path, "unix:fileKey,mode,uid,lastModifiedTime,ctime", LinkOption.NOFOLLOW_LINKS);
    } catch (IOException e) {
      return Map.of();
    }
  }

  private static void delete(Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new UncheckedIOException(
          "path: %s is left by a process that ended and cannot be deleted: %s".formatted(path, e),
          e);
    }
  }

  /**
   * Waits for a process to connect.
   *
   * @param timeout how long to wait; zero looks once
   * @return the channel
   * @throws SecurityException if the process is another user's; it is disconnected, and the
   *     listener goes on
   * @throws UncheckedIOException a {@link java.net.SocketTimeoutException} if no process connected
   *     in time
   * @throws IllegalStateException if the listener is closed, also while waiting
   */
  public IpcChannel accept(Duration timeout) {
    Objects.requireNonNull(timeout, "timeout");
    String how = "accepted at " + path;
    int[] accepted = {-1}; // there before the connection is, which needs a place at once
    return socket.use(open -> {
      boolean _ =
          open.sliced(
              timeout,
              slice -> {
                accepted[0] = calls.accept(open.descriptor(), slice);
                return true;
              });
      return IpcChannel.of(calls, accepted[0], how);
    });
  }

  /** {@return the path it listens at} */
  public Path path() {
    return path;
  }

  /** {@return whether the listener is closed} */
  public boolean isClosed() {
    return socket.isClosed();
  }

  /**
   * Stops listening and deletes the socket's file, unless another is there now, within a second
   * whatever others do. Waits of {@link #accept} end, and processes that were not accepted are
   * disconnected; channels that were accepted stay open. Does nothing the second time.
   */
  @Override
  public void close() {
    // The file goes first: as long as the socket is open, no other listener takes the path over.
    socket.close(() -> {
      if (fileKey != null && fileKey.equals(attributes(path).get("fileKey"))) {
        delete(path);
      }
    });
  }

  @Override
  public String toString() {
    return "IpcListener[%s]%s".formatted(path, isClosed() ? " (closed)" : "");
  }
}
