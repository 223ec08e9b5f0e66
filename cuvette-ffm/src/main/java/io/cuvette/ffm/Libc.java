package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SEGMENT;
import static io.cuvette.ffm.Layouts.SIZE;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Functions of the C library about descriptors. Each answers what its C function does, or the
 * negated errno if that failed, as the kernel itself does it. Thread-safe.
 */
final class Libc {
  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final long ERRNO = STATE.byteOffset(PathElement.groupElement("errno"));
  private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");

  /** The third argument of fcntl is variadic, which some platforms pass in another way. */
  private static final MethodHandle FCNTL =
      NativeAccess.function(
          "fcntl",
          FunctionDescriptor.of(INT, INT, INT, INT),
          CAPTURE,
          Linker.Option.firstVariadicArg(2));

  private static final MethodHandle OPEN =
      NativeAccess.function(
          "open",
          FunctionDescriptor.of(INT, SEGMENT, INT, INT),
          CAPTURE,
          Linker.Option.firstVariadicArg(2));

  private static final MethodHandle FLOCK = function("flock", INT, INT);
  private static final MethodHandle MEMFD_CREATE = function("memfd_create", SEGMENT, INT);
  private static final MethodHandle FTRUNCATE = function("ftruncate", INT, SIZE);
  private static final MethodHandle FSTATFS = function("fstatfs", INT, SEGMENT);

  /** The number of kcmp among the system calls, which each processor counts in its own way. */
  static final long KCMP_NUMBER = System.getProperty("os.arch", "").equals("aarch64") ? 272 : 312;

  private static final MethodHandle KCMP =
      NativeAccess.function(
          "syscall",
          FunctionDescriptor.of(SIZE, SIZE, INT, INT, INT, SIZE, SIZE),
          CAPTURE,
          Linker.Option.firstVariadicArg(1));
  private static final MethodHandle FCHMOD = function("fchmod", INT, INT);
  private static final MethodHandle CLOSE = function("close", INT);
  private static final MethodHandle CLOSE_UNHEARD =
      NativeAccess.function("close", FunctionDescriptor.of(INT, INT));
  private static final MethodHandle POLL = function("poll", SEGMENT, SIZE, INT);
  private static final MethodHandle GETEUID =
      NativeAccess.function("geteuid", FunctionDescriptor.of(INT));
  private static final MethodHandle STRERROR =
      NativeAccess.function("strerror", FunctionDescriptor.of(POINTER, INT));

  static {
    closeUnheard(-1); // what is called first needs heap to be linked
  }

  private Libc() {}

  /** A function with an int as result. */
  static MethodHandle function(String name, MemoryLayout... parameters) {
    return NativeAccess.function(name, FunctionDescriptor.of(INT, parameters), CAPTURE);
  }

  /** A function with a long as result. */
  static MethodHandle longFunction(String name, MemoryLayout... parameters) {
    return NativeAccess.function(name, FunctionDescriptor.of(SIZE, parameters), CAPTURE);
  }

  /** Where a call leaves its errno. */
  static MemorySegment state() {
    return Arena.ofAuto().allocate(STATE);
  }

  /** The result of a call, or its negated errno. */
  static int result(int result, MemorySegment state) {
    return result == -1 ? -state.get(ValueLayout.JAVA_INT, ERRNO) : result;
  }

  static int open(MemorySegment path, int flags, int mode) {
    MemorySegment state = state();
    try {
      return result((int) OPEN.invokeExact(state, path, flags, mode), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int flock(int descriptor, int operation) {
    MemorySegment state = state();
    try {
      return result((int) FLOCK.invokeExact(state, descriptor, operation), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int memfdCreate(MemorySegment name, int flags) {
    MemorySegment state = state();
    try {
      return result((int) MEMFD_CREATE.invokeExact(state, name, flags), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int ftruncate(int descriptor, long bytes) {
    MemorySegment state = state();
    try {
      return result((int) FTRUNCATE.invokeExact(state, descriptor, bytes), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int fstatfs(int descriptor, MemorySegment result) {
    MemorySegment state = state();
    try {
      return result((int) FSTATFS.invokeExact(state, descriptor, result), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** A call that the C library has no function of its own for. */
  static int kcmp(int process, int other, int type, long first, long second) {
    MemorySegment state = state();
    try {
      return result(
          (int) (long) KCMP.invokeExact(state, KCMP_NUMBER, process, other, type, first, second),
          state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int fchmod(int descriptor, int mode) {
    MemorySegment state = state();
    try {
      return result((int) FCHMOD.invokeExact(state, descriptor, mode), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int fcntl(int descriptor, int command, int argument) {
    MemorySegment state = state();
    try {
      return result((int) FCNTL.invokeExact(state, descriptor, command, argument), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** Closes also when there is no heap left; then it cannot say what failed. */
  static int close(int descriptor) {
    try {
      MemorySegment state = state();
      return result((int) CLOSE.invokeExact(state, descriptor), state);
    } catch (OutOfMemoryError e) { // before the call: only its arguments need heap
      return closeUnheard(descriptor);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  private static int closeUnheard(int descriptor) {
    try {
      return Math.max(0, (int) CLOSE_UNHEARD.invokeExact(descriptor));
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int poll(MemorySegment descriptors, long count, int millis) {
    MemorySegment state = state();
    try {
      return result((int) POLL.invokeExact(state, descriptors, count, millis), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** Cannot fail. */
  static int geteuid() {
    try {
      return (int) GETEUID.invokeExact();
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** The address of the text; of unknown numbers it lasts until the thread asks again. */
  static long strerror(int errno) {
    try {
      return (long) STRERROR.invokeExact(errno);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }
}
