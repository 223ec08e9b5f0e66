package io.cuvette.ffm;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;

/** Locks of files that belong to a descriptor, and end with it. Thread-safe. */
final class FileLocks {
  static final int READ_WRITE = 2;
  static final int CREATE = 0x40;
  static final int NOFOLLOW = 0x20000;
  static final int LOCK_EX = 2;
  static final int LOCK_NB = 4;

  private FileLocks() {}

  /** A descriptor that has the lock of the file at a path. */
  static int lock(String path, Duration timeout) {
    Deadline deadline = Deadline.after(timeout, () -> "lock(path=" + path + ")");
    while (true) {
      int descriptor = open(path, deadline);
      try {
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

  private static int open(String path, Deadline deadline) {
    MemorySegment name = Arena.ofAuto().allocateFrom(path);
    int flags = READ_WRITE | CREATE | NOFOLLOW | UnixSockets.CLOEXEC;
    int descriptor = Libc.open(name, flags, UnixSockets.OWNER_ONLY);
    if (descriptor < 0) {
      throw Errno.failure(-descriptor, deadline.call());
    }
    return descriptor;
  }

  /** Asks again and again: a thread that waits inside C would hear of no interrupt. */
  private static void await(int descriptor, Deadline deadline) {
    int result = Libc.flock(descriptor, LOCK_EX | LOCK_NB);
    while (result == -Errno.EAGAIN || result == -Errno.EINTR) {
      deadline.pause();
      result = Libc.flock(descriptor, LOCK_EX | LOCK_NB);
    }
    if (result < 0) {
      throw Errno.failure(-result, deadline.call());
    }
  }

  private static boolean isStillAt(String path, int descriptor) {
    try {
      Object locked = Files.getAttribute(Path.of("/proc/self/fd/" + descriptor), "unix:fileKey");
      return locked.equals(
          Files.getAttribute(Path.of(path), "unix:fileKey", LinkOption.NOFOLLOW_LINKS));
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException e) {
      throw Errno.unchecked(e);
    }
  }
}
