package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Waits for other processes of this user at a Unix socket. Only this user can connect to the file,
 * and each connection's user is asked of the system besides. Linux only. Thread-safe; several
 * threads can accept, and closing ends their waits.
 */
public final class IpcListener implements AutoCloseable {
  private static final Duration TEST = Duration.ofSeconds(1);
  private static final long MOMENT_NANOS = 20_000_000;

  private final DescriptorCalls calls;
  private final Path path;
  private final OpenSocket socket;
  private final @Nullable Object fileKey;

  private IpcListener(DescriptorCalls calls, Path path, int socket) {
    this.calls = calls;
    this.path = path;
    this.socket = new OpenSocket(calls, socket, "listener at " + path);
    this.fileKey = fileKey(path);
  }

  /**
   * Listens at a path. A socket that a process left behind when it ended is replaced; any other
   * file there is left alone.
   *
   * @param path at most 107 bytes; its directory must exist, and should be this user's alone
   * @throws IllegalArgumentException if a file that is no socket is there, or the path is too long
   * @throws IllegalStateException if another process listens there
   * @throws UncheckedIOException if the system refuses
   * @throws UnsupportedOperationException where descriptors cannot be passed
   */
  public static IpcListener open(Path path) {
    return open(Descriptors.require("IpcListener"), path);
  }

  static IpcListener open(DescriptorCalls calls, Path path) {
    removeStale(calls, path);
    int socket = listen(calls, path);
    try {
      return new IpcListener(calls, path, socket);
    } catch (RuntimeException e) {
      Descriptors.closeAfter(e, calls, socket);
      throw e;
    }
  }

  private static int listen(DescriptorCalls calls, Path path) {
    try {
      return calls.listen(path.toString());
    } catch (UncheckedIOException e) {
      throw e.getCause() instanceof FileAlreadyExistsException ? taken(path, e) : e;
    }
  }

  private static void removeStale(DescriptorCalls calls, Path path) {
    Object found = fileKey(path);
    if (found == null) {
      return;
    }
    if (!isSocket(path)) {
      throw new IllegalArgumentException(
          "path: %s is a file or directory (expected: a new path, or a socket left behind)"
              .formatted(path));
    }
    if (isListenedAt(calls, path)) {
      throw taken(path, null);
    }
    LockSupport.parkNanos(MOMENT_NANOS); // one that was just made may not be listened at yet
    if (isListenedAt(calls, path)) {
      throw taken(path, null);
    }
    try {
      removeIfStill(found, path);
    } catch (NoSuchFileException e) {
      return; // another process has removed it
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Renames before it looks, for another process may replace the file at any moment. */
  private static void removeIfStill(Object found, Path path) throws IOException {
    Path aside = path.resolveSibling(path.getFileName() + "." + UUID.randomUUID());
    Files.move(path, aside, StandardCopyOption.ATOMIC_MOVE);
    if (found.equals(fileKey(aside))) {
      Files.delete(aside);
      return;
    }
    try {
      Files.move(aside, path);
    } catch (FileAlreadyExistsException e) {
      Files.delete(aside);
    }
    throw taken(path, null);
  }

  private static boolean isListenedAt(DescriptorCalls calls, Path path) {
    try {
      calls.close(calls.connect(path.toString(), TEST));
      return true;
    } catch (UncheckedIOException e) {
      if (e.getCause() instanceof ConnectException || e.getCause() instanceof NoSuchFileException) {
        return false; // nobody listens: whoever made it is gone
      }
      if (e.getCause() instanceof SocketTimeoutException) {
        return true; // more wait there than it has room for
      }
      throw e;
    }
  }

  private static IllegalStateException taken(Path path, @Nullable Throwable cause) {
    return new IllegalStateException("path: another process listens at " + path, cause);
  }

  private static boolean isSocket(Path path) {
    try {
      int mode = (Integer) Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS);
      return (mode & 0170000) == 0140000; // S_IFMT, S_IFSOCK
    } catch (NoSuchFileException e) {
      return true; // another process has just removed it
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** What tells a file from another one made later at the same path; null if there is none. */
  private static @Nullable Object fileKey(Path path) {
    try {
      var file = Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
      Object key = file.fileKey();
      // The numbers of files are soon used again.
      return key == null ? null : List.of(key, file.lastModifiedTime());
    } catch (IOException e) {
      return null;
    }
  }

  private static void delete(Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Waits for a process to connect.
   *
   * @param timeout how long to wait; zero looks once
   * @throws SecurityException if the process is another user's; it is disconnected, and the
   *     listener goes on
   * @throws UncheckedIOException a {@link java.net.SocketTimeoutException} if nobody came in time
   * @throws IllegalStateException if the listener is closed, also while waiting
   */
  public IpcChannel accept(Duration timeout) {
    return socket.use(open -> {
      int accepted = open.sliced(timeout, slice -> calls.accept(open.descriptor(), slice));
      return IpcChannel.of(calls, accepted, "accepted at " + path);
    });
  }

  /** Where it listens. */
  public Path path() {
    return path;
  }

  /** Whether the listener was closed. */
  public boolean isClosed() {
    return socket.isClosed();
  }

  /**
   * Stops listening and deletes the socket's file. Channels that were accepted stay open. Does
   * nothing the second time.
   */
  @Override
  public void close() {
    if (!socket.close()) {
      return;
    }
    Object now = fileKey(path);
    if (fileKey != null && fileKey.equals(now)) {
      delete(path);
    }
  }

  @Override
  public String toString() {
    return "IpcListener[%s]%s".formatted(path, isClosed() ? " (closed)" : "");
  }
}
