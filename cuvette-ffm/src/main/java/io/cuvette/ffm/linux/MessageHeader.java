package io.cuvette.ffm.linux;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cuvette.driver.DescriptorCalls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * A msghdr with the one iovec, the room for descriptors and the bytes it points to, in one piece of
 * memory: what keeps the one alive keeps all. Used by one thread.
 */
final class MessageHeader {
  /** Descriptors in one message. */
  static final int MOST_DESCRIPTORS = DescriptorCalls.MOST_DESCRIPTORS;

  /** Bytes in one message; longer ones are sent in parts. */
  static final int MOST_BYTES = 1 << 16;

  static final long IOV = 16;
  static final long IOV_COUNT = 24;
  static final long CONTROL = 32;
  static final long CONTROL_BYTES = 40;
  static final long FLAGS = 48;
  static final long IOVEC = 56;
  private static final long IOVEC_BYTES = IOVEC + Long.BYTES;
  static final long CMSG = 72;
  static final long CMSG_LEVEL = 8;
  static final long CMSG_TYPE = 12;
  static final long CMSG_DATA = 16;
  static final long CMSG_SPACE = CMSG_DATA + MOST_DESCRIPTORS * (long) Integer.BYTES;
  private static final long DATA = CMSG + CMSG_SPACE;
  static final int SCM_RIGHTS = 1;
  static final int CTRUNC = 8;

  private final MemorySegment memory;
  private final int[] descriptors = new int[MOST_DESCRIPTORS];
  private final int bytes;

  /** Room for some bytes and for the most descriptors. */
  MessageHeader(int bytes) {
    this.bytes = bytes;
    this.memory = Arena.ofAuto().allocate(DATA + bytes, Long.BYTES);
    memory.set(JAVA_LONG, IOV, memory.address() + IOVEC);
    memory.set(JAVA_LONG, IOV_COUNT, 1);
    memory.set(JAVA_LONG, IOVEC, memory.address() + DATA);
    memory.set(JAVA_LONG, IOVEC_BYTES, bytes);
    reset();
  }

  /** The msghdr. */
  MemorySegment segment() {
    return memory;
  }

  /** Offers all its room again; the system has written over that. */
  void reset() {
    memory.set(JAVA_LONG, CONTROL, memory.address() + CMSG);
    memory.set(JAVA_LONG, CONTROL_BYTES, CMSG_SPACE);
    memory.set(JAVA_INT, FLAGS, 0);
  }

  /** Fills it for sending. */
  void put(byte[] source, int from, int[] descriptors) {
    MemorySegment.copy(source, from, memory, JAVA_BYTE, DATA, bytes);
    if (descriptors.length == 0) {
      memory.set(JAVA_LONG, CONTROL, 0);
      memory.set(JAVA_LONG, CONTROL_BYTES, 0);
      return;
    }
    long length = CMSG_DATA + descriptors.length * (long) Integer.BYTES;
    memory.set(JAVA_LONG, CONTROL_BYTES, aligned(length));
    memory.set(JAVA_LONG, CMSG, length);
    memory.set(JAVA_INT, CMSG + CMSG_LEVEL, UnixSockets.SOL_SOCKET);
    memory.set(JAVA_INT, CMSG + CMSG_TYPE, SCM_RIGHTS);
    MemorySegment.copy(descriptors, 0, memory, JAVA_INT, CMSG + CMSG_DATA, descriptors.length);
  }

  /** The first of the bytes that came. */
  byte[] bytes(int count) {
    return memory.asSlice(DATA, count).toArray(JAVA_BYTE);
  }

  /**
   * Notes the received descriptors of all control messages and returns how many. It needs no heap:
   * they are open already, and leak unless they are noted.
   */
  int takeDescriptors() {
    int count = 0;
    long end = CMSG + memory.get(JAVA_LONG, CONTROL_BYTES);
    long at = CMSG;
    while (at + CMSG_DATA <= end) {
      long length = memory.get(JAVA_LONG, at);
      if (length < CMSG_DATA || length > end - at) {
        break; // cut off
      }
      if (holdsDescriptors(at)) {
        for (long place = at + CMSG_DATA; place + Integer.BYTES <= at + length; place += 4) {
          descriptors[count++] = memory.get(JAVA_INT, place);
        }
      }
      at += aligned(length);
    }
    return count;
  }

  /** One that was noted. */
  int descriptor(int index) {
    return descriptors[index];
  }

  /** The first of those that were noted. */
  int[] descriptors(int count) {
    return Arrays.copyOf(descriptors, count);
  }

  private boolean holdsDescriptors(long at) {
    return memory.get(JAVA_INT, at + CMSG_LEVEL) == UnixSockets.SOL_SOCKET
        && memory.get(JAVA_INT, at + CMSG_TYPE) == SCM_RIGHTS;
  }

  /** Whether more control messages came than there was room for. */
  boolean isControlTruncated() {
    return (memory.get(JAVA_INT, FLAGS) & CTRUNC) != 0;
  }

  private static long aligned(long bytes) {
    return Math.ceilDiv(bytes, Long.BYTES) * Long.BYTES;
  }
}
