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
 * Functions of the C library about descriptors and sockets. Thread-safe.
 *
 * <p>Arguments are given as an array: a system call costs more than boxing them, and one of a wrong
 * type is refused before the function is called.
 */
public final class Libc {
  private static final StructLayout STATE = Linker.Option.captureStateLayout();
  private static final long ERRNO = STATE.byteOffset(PathElement.groupElement("errno"));
  private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");

  /** The third argument is variadic, which some platforms pass in another way. */
  public static final Function FCNTL = variadic("fcntl", 2, INT, INT, INT, INT);

  static final Function OPEN = variadic("open", 2, INT, SEGMENT, INT, INT);
  static final Function FLOCK = function("flock", INT, INT, INT);
  public static final Function MEMFD_CREATE = function("memfd_create", INT, SEGMENT, INT);
  static final Function FTRUNCATE = function("ftruncate", INT, INT, SIZE);
  static final Function FSTATFS = function("fstatfs", INT, INT, SEGMENT);

  /** The number of kcmp among the system calls, which each processor counts in its own way. */
  static final long KCMP_NUMBER = System.getProperty("os.arch", "").equals("aarch64") ? 272 : 312;

  /** For kcmp, which the C library has no function of its own for. */
  static final Function SYSCALL = variadic("syscall", 1, SIZE, SIZE, INT, INT, INT, SIZE, SIZE);

  static final Function FCHMOD = function("fchmod", INT, INT, INT);
  static final Function POLL = function("poll", INT, SEGMENT, SIZE, INT);

  /** Cannot fail. */
  public static final Function GETEUID = function("geteuid", INT);

  static final Function SOCKET = function("socket", INT, INT, INT, INT);
  static final Function BIND = function("bind", INT, INT, SEGMENT, INT);
  static final Function LISTEN = function("listen", INT, INT, INT);
  static final Function ACCEPT4 = function("accept4", INT, INT, POINTER, POINTER, INT);
  static final Function CONNECT = function("connect", INT, INT, SEGMENT, INT);
  static final Function GETSOCKOPT = function("getsockopt", INT, INT, INT, INT, SEGMENT, SEGMENT);
  static final Function SENDMSG = function("sendmsg", SIZE, INT, SEGMENT, INT);
  static final Function RECVMSG = function("recvmsg", SIZE, INT, SEGMENT, INT);

  private static final MethodHandle CLOSE =
      NativeAccess.function("close", FunctionDescriptor.of(INT, INT), CAPTURE);
  private static final MethodHandle CLOSE_UNHEARD =
      NativeAccess.function("close", FunctionDescriptor.of(INT, INT));
  private static final MethodHandle STRERROR =
      NativeAccess.function("strerror", FunctionDescriptor.of(POINTER, INT));

  static {
    closeUnheard(-1); // what is called first needs heap to be linked
  }

  private Libc() {}

  /** A function of the C library. */
  public static Function function(String name, MemoryLayout result, MemoryLayout... parameters) {
    return new Function(
        NativeAccess.function(name, FunctionDescriptor.of(result, parameters), CAPTURE));
  }

  private static Function variadic(
      String name, int first, MemoryLayout result, MemoryLayout... parameters) {
    return new Function(
        NativeAccess.function(
            name,
            FunctionDescriptor.of(result, parameters),
            CAPTURE,
            Linker.Option.firstVariadicArg(first)));
  }

  /** A function that leaves its errno in its first argument. */
  public static final class Function {
    private final MethodHandle handle;

    private Function(MethodHandle function) {
      int count = function.type().parameterCount() - 1;
      this.handle =
          function
              .asType(function.type().changeReturnType(long.class))
              .asSpreader(Object[].class, count);
    }

    /** Calls the function; the result, or the negated errno, as the kernel itself does it. */
    public int call(Object... arguments) {
      MemorySegment state = Arena.ofAuto().allocate(STATE);
      try {
        return result((int) (long) handle.invokeExact(state, arguments), state);
      } catch (Throwable e) { // what invokeExact declares
        throw NativeAccess.unexpected(e);
      }
    }
  }

  private static int result(int result, MemorySegment state) {
    return result == -1 ? -state.get(ValueLayout.JAVA_INT, ERRNO) : result;
  }

  /** Closes also when there is no heap left; then it cannot report what failed. */
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

  /** The address of the text; of unknown numbers it lasts until the next call of the thread. */
  static long strerror(int errno) {
    try {
      return (long) STRERROR.invokeExact(errno);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }
}
