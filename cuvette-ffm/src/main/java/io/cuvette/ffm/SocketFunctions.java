package io.cuvette.ffm;

import static io.cuvette.ffm.Layouts.INT;
import static io.cuvette.ffm.Layouts.POINTER;
import static io.cuvette.ffm.Layouts.SEGMENT;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Functions of the C library about sockets. Each answers what its C function does, or the negated
 * errno if that failed. Thread-safe.
 */
final class SocketFunctions {
  private static final MethodHandle SOCKET = Libc.function("socket", INT, INT, INT);
  private static final MethodHandle BIND = Libc.function("bind", INT, SEGMENT, INT);
  private static final MethodHandle LISTEN = Libc.function("listen", INT, INT);
  private static final MethodHandle ACCEPT4 = Libc.function("accept4", INT, POINTER, POINTER, INT);
  private static final MethodHandle CONNECT = Libc.function("connect", INT, SEGMENT, INT);
  private static final MethodHandle GETSOCKOPT =
      Libc.function("getsockopt", INT, INT, INT, SEGMENT, SEGMENT);
  private static final MethodHandle SENDMSG = Libc.longFunction("sendmsg", INT, SEGMENT, INT);
  private static final MethodHandle RECVMSG = Libc.longFunction("recvmsg", INT, SEGMENT, INT);

  private SocketFunctions() {}

  static int socket(int domain, int type) {
    MemorySegment state = Libc.state();
    try {
      return Libc.result((int) SOCKET.invokeExact(state, domain, type, 0), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int bind(int socket, MemorySegment address) {
    MemorySegment state = Libc.state();
    int bytes = (int) address.byteSize();
    try {
      return Libc.result((int) BIND.invokeExact(state, socket, address, bytes), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int listen(int socket, int backlog) {
    MemorySegment state = Libc.state();
    try {
      return Libc.result((int) LISTEN.invokeExact(state, socket, backlog), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /** Without the address of the other end, which has no name. */
  static int accept4(int socket, int flags) {
    MemorySegment state = Libc.state();
    try {
      return Libc.result((int) ACCEPT4.invokeExact(state, socket, 0L, 0L, flags), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int connect(int socket, MemorySegment address) {
    MemorySegment state = Libc.state();
    int bytes = (int) address.byteSize();
    try {
      return Libc.result((int) CONNECT.invokeExact(state, socket, address, bytes), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int getsockopt(
      int socket, int level, int option, MemorySegment value, MemorySegment bytes) {
    MemorySegment state = Libc.state();
    try {
      return Libc.result(
          (int) GETSOCKOPT.invokeExact(state, socket, level, option, value, bytes), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int sendmsg(int socket, MemorySegment message, int flags) {
    MemorySegment state = Libc.state();
    try {
      return Libc.result((int) (long) SENDMSG.invokeExact(state, socket, message, flags), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  static int recvmsg(int socket, MemorySegment message, int flags) {
    MemorySegment state = Libc.state();
    try {
      return Libc.result((int) (long) RECVMSG.invokeExact(state, socket, message, flags), state);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }
}
