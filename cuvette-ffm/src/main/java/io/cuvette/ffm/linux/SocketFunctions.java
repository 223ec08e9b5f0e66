package io.cuvette.ffm.linux;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Functions of the C library about sockets. Each answers what its C function does, or the negated
 * errno if that failed. Thread-safe.
 */
final class SocketFunctions {
  private static final MethodHandle SOCKET = Libc.function("socket", INT, INT, INT, INT);
  private static final MethodHandle BIND = Libc.function("bind", INT, INT, SEGMENT, INT);
  private static final MethodHandle LISTEN = Libc.function("listen", INT, INT, INT);
  private static final MethodHandle ACCEPT4 =
      Libc.function("accept4", INT, INT, POINTER, POINTER, INT);
  private static final MethodHandle CONNECT = Libc.function("connect", INT, INT, SEGMENT, INT);
  private static final MethodHandle GETSOCKOPT =
      Libc.function("getsockopt", INT, INT, INT, INT, SEGMENT, SEGMENT);
  private static final MethodHandle SENDMSG = Libc.function("sendmsg", SIZE, INT, SEGMENT, INT);
  private static final MethodHandle RECVMSG = Libc.function("recvmsg", SIZE, INT, SEGMENT, INT);

  private SocketFunctions() {}

  static int socket(int domain, int type) {
    return Libc.call(state -> (int) SOCKET.invokeExact(state, domain, type, 0));
  }

  static int bind(int socket, MemorySegment address) {
    int bytes = (int) address.byteSize();
    return Libc.call(state -> (int) BIND.invokeExact(state, socket, address, bytes));
  }

  static int listen(int socket, int backlog) {
    return Libc.call(state -> (int) LISTEN.invokeExact(state, socket, backlog));
  }

  /** Without the address of the other end, which has no name. */
  static int accept4(int socket, int flags) {
    return Libc.call(state -> (int) ACCEPT4.invokeExact(state, socket, 0L, 0L, flags));
  }

  static int connect(int socket, MemorySegment address) {
    int bytes = (int) address.byteSize();
    return Libc.call(state -> (int) CONNECT.invokeExact(state, socket, address, bytes));
  }

  static int getsockopt(
      int socket, int level, int option, MemorySegment value, MemorySegment size) {
    return Libc.call(
        state -> (int) GETSOCKOPT.invokeExact(state, socket, level, option, value, size));
  }

  static int sendmsg(int socket, MemorySegment message, int flags) {
    return Libc.call(state -> (long) SENDMSG.invokeExact(state, socket, message, flags));
  }

  static int recvmsg(int socket, MemorySegment message, int flags) {
    return Libc.call(state -> (long) RECVMSG.invokeExact(state, socket, message, flags));
  }
}
