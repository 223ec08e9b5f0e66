package io.cuvette.ffm.linux;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;

/** Locks of files that belong to a descriptor, and end with it. Thread-safe. */
public final class FileLocks {
  static final int READ_WRITE = 2;
  static final int CREATE = 0x40;
  static final int NOCTTY = 0x100;
  static final int NOFOLLOW = 0x20000;
  static final int LOCK_EX = 2;
  static final int LOCK_NB = 4;

  private FileLocks() {}

  /** A descriptor that has the lock of the file at a path. */
  public static int lock(String path, Duration timeout) {
    Deadline deadline = Deadline.after(timeout, () -> "lock(path=" + path + ")");
    while (true) {
      checkPlain(path, Path.of(path), LinkOption.NOFOLLOW_LINKS); // opening alone can do things
      int descriptor = open(path, deadline);
      try {
        checkPlain(path, opened(descriptor));
        await(descriptor, deadline);
        if (isStillAt(path, descriptor)) {
          return descriptor;
        }
      } catch (RuntimeException | Error e) {
        Libc.close(descriptor);
        throw e;
      }
      Libc.close(descriptor); // who had it deleted the file: others lock a new one now
      deadline.pause();
    }
  }

  /** Does not wait for what is no plain file, and makes no terminal this process's. */
  private static int open(String path, Deadline deadline) {
    MemorySegment name = Arena.ofAuto().allocateFrom(path);
    int flags =
        READ_WRITE | CREATE | NOFOLLOW | NOCTTY | UnixSockets.NONBLOCK | UnixSockets.CLOEXEC;
    return Errno.require(Libc.OPEN.call(name, flags, UnixSockets.OWNER_ONLY), deadline.call());
  }

  /** Polls: a thread that waits inside C would not notice an interrupt. */
  private static void await(int descriptor, Deadline deadline) {
    int result = Libc.FLOCK.call(descriptor, LOCK_EX | LOCK_NB);
    while (result == -Errno.EAGAIN || result == -Errno.EINTR) {
      deadline.pause();
      result = Libc.FLOCK.call(descriptor, LOCK_EX | LOCK_NB);
    }
    Errno.require(result, deadline.call());
  }

  /** The file is deleted with its lock, so it must be none that anybody misses. */
  private static void checkPlain(String path, Path file, LinkOption... links) {
    Map<String, Object> found;
    try {
      found = Files.readAttributes(file, "unix:mode,uid,size", links);
    } catch (NoSuchFileException e) {
      return;
    } catch (IOException e) {
      throw Errno.unchecked(e);
    }
    int mode = (Integer) Objects.requireNonNull(found.get("mode"));
    Integer user = Libc.GETEUID.call();
    boolean empty = user.equals(found.get("uid")) && Long.valueOf(0).equals(found.get("size"));
    if ((mode & MemoryFiles.FILE_TYPE) != MemoryFiles.REGULAR || !empty) {
      throw new IllegalArgumentException(
          "lock of a socket: %s has the type and mode 0%s, user %s and %s bytes"
                  .formatted(path, Integer.toOctalString(mode), found.get("uid"), found.get("size"))
              + " (expected: no file, or an empty one of user %d)".formatted(user));
    }
  }

  private static Path opened(int descriptor) {
    return Path.of("/proc/self/fd/" + descriptor);
  }

  private static boolean isStillAt(String path, int descriptor) {
    try {
      Object locked = Files.getAttribute(opened(descriptor), "unix:fileKey");
      return locked.equals(
          Files.getAttribute(Path.of(path), "unix:fileKey", LinkOption.NOFOLLOW_LINKS));
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException e) {
      throw Errno.unchecked(e);
    }
  }
}
