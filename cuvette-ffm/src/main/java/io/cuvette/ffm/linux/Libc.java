package io.cuvette.ffm.linux;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.ffm.link.NativeAccess;
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
public final class Libc {
  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final long ERRNO = STATE.byteOffset(PathElement.groupElement("errno"));
  private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");

  /** The third argument of fcntl is variadic, which some platforms pass in another way. */
  private static final MethodHandle FCNTL = variadic("fcntl", 2, INT, INT, INT, INT);

  private static final MethodHandle OPEN = variadic("open", 2, INT, SEGMENT, INT, INT);
  private static final MethodHandle FLOCK = function("flock", INT, INT, INT);
  private static final MethodHandle MEMFD_CREATE = function("memfd_create", INT, SEGMENT, INT);
  private static final MethodHandle FTRUNCATE = function("ftruncate", INT, INT, SIZE);
  private static final MethodHandle FSTATFS = function("fstatfs", INT, INT, SEGMENT);

  /** The number of kcmp among the system calls, which each processor counts in its own way. */
  static final long KCMP_NUMBER = System.getProperty("os.arch", "").equals("aarch64") ? 272 : 312;

  /** A call that the C library has no function of its own for. */
  private static final MethodHandle KCMP =
      variadic("syscall", 1, SIZE, SIZE, INT, INT, INT, SIZE, SIZE);

  private static final MethodHandle FCHMOD = function("fchmod", INT, INT, INT);
  private static final MethodHandle CLOSE = function("close", INT, INT);
  private static final MethodHandle CLOSE_UNHEARD =
      NativeAccess.function("close", FunctionDescriptor.of(INT, INT));
  private static final MethodHandle POLL = function("poll", INT, SEGMENT, SIZE, INT);
  private static final MethodHandle GETEUID = function("geteuid", INT);
  private static final MethodHandle STRERROR =
      NativeAccess.function("strerror", FunctionDescriptor.of(POINTER, INT));

  static {
    closeUnheard(-1); // what is called first needs heap to be linked
  }

  private Libc() {}

  /** A function that leaves its errno in its first argument. */
  public static MethodHandle function(
      String name, MemoryLayout result, MemoryLayout... parameters) {
    return NativeAccess.function(name, FunctionDescriptor.of(result, parameters), CAPTURE);
  }

  private static MethodHandle variadic(
      String name, int first, MemoryLayout result, MemoryLayout... parameters) {
    return NativeAccess.function(
        name,
        FunctionDescriptor.of(result, parameters),
        CAPTURE,
        Linker.Option.firstVariadicArg(first));
  }

  /** A function with its arguments. */
  @FunctionalInterface
  public interface Function {
    /** Calls the function, which leaves its errno in the state. */
    long invoke(MemorySegment state) throws Throwable;
  }

  /** Calls a function; the result, or the negated errno. */
  public static int call(Function function) {
    MemorySegment state = Arena.ofAuto().allocate(STATE);
    try {
      return result((int) function.invoke(state), state);
    } catch (Throwable e) { // what invokeExact declares
      throw NativeAccess.unexpected(e);
    }
  }

  private static int result(int result, MemorySegment state) {
    return result == -1 ? -state.get(ValueLayout.JAVA_INT, ERRNO) : result;
  }

  static int open(MemorySegment path, int flags, int mode) {
    return call(state -> (int) OPEN.invokeExact(state, path, flags, mode));
  }

  static int flock(int descriptor, int operation) {
    return call(state -> (int) FLOCK.invokeExact(state, descriptor, operation));
  }

  public static int memfdCreate(MemorySegment name, int flags) {
    return call(state -> (int) MEMFD_CREATE.invokeExact(state, name, flags));
  }

  static int ftruncate(int descriptor, long bytes) {
    return call(state -> (int) FTRUNCATE.invokeExact(state, descriptor, bytes));
  }

  static int fstatfs(int descriptor, MemorySegment result) {
    return call(state -> (int) FSTATFS.invokeExact(state, descriptor, result));
  }

  static int kcmp(int process, int other, int type, long first, long second) {
    return call(
        state -> (long) KCMP.invokeExact(state, KCMP_NUMBER, process, other, type, first, second));
  }

  static int fchmod(int descriptor, int mode) {
    return call(state -> (int) FCHMOD.invokeExact(state, descriptor, mode));
  }

  public static int fcntl(int descriptor, int command, int argument) {
    return call(state -> (int) FCNTL.invokeExact(state, descriptor, command, argument));
  }

  /** Closes also when there is no heap left; then it cannot say what failed. */
  public static int close(int descriptor) {
    try {
      MemorySegment state = Arena.ofAuto().allocate(STATE);
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
    return call(state -> (int) POLL.invokeExact(state, descriptors, count, millis));
  }

  /** Cannot fail. */
  public static int geteuid() {
    return call(state -> (int) GETEUID.invokeExact(state));
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
