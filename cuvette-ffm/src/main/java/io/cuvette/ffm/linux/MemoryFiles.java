package io.cuvette.ffm.linux;

import io.cuvette.driver.DescriptorCalls.Sameness;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * Memory as files without a name, which several processes map. They are sealed, so that no process
 * can take memory from under another. Stateless.
 */
public final class MemoryFiles {
  public static final int MFD_CLOEXEC = 1;
  public static final int MFD_ALLOW_SEALING = 2;
  public static final int F_ADD_SEALS = 1033;
  static final int F_GET_SEALS = 1034;

  /** No process can change the seals, or make the file shorter or longer. */
  public static final int SEALS = 1 | 2 | 4;

  static final int O_PATH = 0x20_0000;
  static final int FILE_TYPE = 0170000;
  static final int REGULAR = 0100000;
  static final int STATFS_BYTES = 120;

  /** Not hugetlbfs, whose pages may not be there when they are touched. */
  static final long TMPFS_MAGIC = 0x0102_1994L;

  static final int KCMP_FILE = 0;

  private MemoryFiles() {}

  public static int make(String name, long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("bytes: " + bytes + " (expected: >= 0)");
    }
    String call = "memfd_create(name=" + name + ", bytes=" + bytes + ")";
    MemorySegment text = Arena.ofAuto().allocateFrom(name);
    int descriptor =
        Errno.require(Libc.MEMFD_CREATE.call(text, MFD_CLOEXEC | MFD_ALLOW_SEALING), call);
    try {
      Errno.require(Libc.FTRUNCATE.call(descriptor, bytes), call);
      Errno.require(Libc.FCNTL.call(descriptor, F_ADD_SEALS, SEALS), call);
      return descriptor;
    } catch (RuntimeException | Error e) {
      Libc.close(descriptor);
      throw e;
    }
  }

  public static boolean isOne(int descriptor) {
    int seals = Libc.FCNTL.call(descriptor, F_GET_SEALS, 0);
    if (seals < 0 && seals != -Errno.EINVAL) { // which is for files that have no seals
      throw Errno.failure(-seals, "fcntl(descriptor=" + descriptor + ", F_GET_SEALS)");
    }
    return seals >= 0 && (seals & SEALS) == SEALS && isMemory(descriptor);
  }

  private static boolean isMemory(int descriptor) {
    MemorySegment found = Arena.ofAuto().allocate(STATFS_BYTES, Long.BYTES);
    Errno.require(Libc.FSTATFS.call(descriptor, found), "fstatfs(descriptor=" + descriptor + ")");
    return found.get(ValueLayout.JAVA_LONG, 0) == TMPFS_MAGIC;
  }

  /** Finds out what it is before it opens it: whose process has it may exchange it meanwhile. */
  public static int open(String path) {
    int place = place(path);
    try {
      if (!isMemory(place) || type(place) != REGULAR) {
        throw none(path);
      }
      int descriptor = open(self(place).toString(), FileLocks.READ_WRITE | UnixSockets.NONBLOCK);
      Errno.require(descriptor, "open(path=" + path + ")");
      try {
        if (!isOne(descriptor)) {
          throw none(path);
        }
        return descriptor;
      } catch (RuntimeException | Error e) {
        Libc.close(descriptor);
        throw e;
      }
    } finally {
      Libc.close(place);
    }
  }

  /** Opens a path to identify the file without reading or writing it (O_PATH). */
  private static int place(String path) {
    int place = open(path, O_PATH);
    if (place == -Errno.ENOENT || place == -Errno.ESRCH) {
      throw Errno.unchecked(new NoSuchFileException(path));
    }
    return Errno.require(place, "open(path=" + path + ", O_PATH)");
  }

  private static int open(String path, int flags) {
    return Libc.OPEN.call(Arena.ofAuto().allocateFrom(path), flags | UnixSockets.CLOEXEC, 0);
  }

  private static IllegalArgumentException none(String path) {
    return new IllegalArgumentException(path + " (expected: sealed memory without a name)");
  }

  public static Sameness compare(int descriptor, int other) {
    if (!attribute(descriptor, "fileKey").equals(attribute(other, "fileKey"))) {
      return Sameness.OTHER;
    }
    if (type(descriptor) == REGULAR) {
      return Sameness.SAME;
    }
    // One device has many objects; not every system reports whether two descriptors are of one.
    int self = (int) ProcessHandle.current().pid();
    int result = Libc.SYSCALL.call(Libc.KCMP_NUMBER, self, self, KCMP_FILE, descriptor, other);
    return result == 0 ? Sameness.SAME : result > 0 ? Sameness.OTHER : Sameness.UNKNOWN;
  }

  private static int type(int descriptor) {
    return (Integer) attribute(descriptor, "mode") & FILE_TYPE;
  }

  private static Object attribute(int descriptor, String name) {
    try {
      return Files.getAttribute(self(descriptor), "unix:" + name);
    } catch (IOException e) {
      throw Errno.unchecked(e);
    }
  }

  private static Path self(int descriptor) {
    return Path.of("/proc/self/fd/" + descriptor);
  }
}
