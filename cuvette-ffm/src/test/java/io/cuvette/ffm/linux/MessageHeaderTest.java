package io.cuvette.ffm.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Descriptors in control messages as the system writes them, and as it never should. */
class MessageHeaderTest {
  private static final int RIGHTS = 1;
  private static final int SOCKET = 1;
  private static final long ROOM = MessageHeader.CMSG_SPACE;

  private final MessageHeader header = new MessageHeader(1);
  private final MemorySegment memory = header.segment();
  private long at;
  private int next;

  /** One more control message; the numbers in it follow those before. */
  private List<Integer> add(int level, int type, long length) {
    List<Integer> numbers = new ArrayList<>();
    long place = MessageHeader.CMSG + at;
    memory.set(JAVA_LONG, place, length);
    memory.set(JAVA_INT, place + MessageHeader.CMSG_LEVEL, level);
    memory.set(JAVA_INT, place + MessageHeader.CMSG_TYPE, type);
    for (long i = MessageHeader.CMSG_DATA; i + 4 <= length && at + i + 4 <= ROOM; i += 4) {
      numbers.add(++next);
      memory.set(JAVA_INT, place + i, next);
    }
    at += Math.ceilDiv(length, 8L) * 8;
    return numbers;
  }

  private void begin() {
    header.reset();
    at = 0;
    next = 100;
  }

  private List<Integer> taken(long bytes) {
    memory.set(JAVA_LONG, MessageHeader.CONTROL_BYTES, bytes);
    List<Integer> taken = new ArrayList<>();
    int count = header.takeDescriptors();
    for (int i = 0; i < count; i++) {
      taken.add(header.descriptor(i));
    }
    assertThat(header.descriptors(count)).containsExactly(taken.toArray(Integer[]::new));
    return taken;
  }

  @Test
  void descriptors_areThoseOfEachMessageThatHasSome() {
    Random random = new Random(8);
    for (int round = 0; round < 2_000; round++) {
      begin();
      List<Integer> expected = new ArrayList<>();
      while (random.nextInt(4) > 0) {
        long length = MessageHeader.CMSG_DATA + random.nextInt(7) * 4L;
        if (at + length > ROOM) {
          break;
        }
        int level = random.nextInt(4) > 0 ? SOCKET : 2;
        int type = random.nextInt(4) > 0 ? RIGHTS : 2;
        List<Integer> numbers = add(level, type, length);
        if (level == SOCKET && type == RIGHTS) {
          expected.addAll(numbers);
        }
      }
      assertThat(taken(Math.min(at, ROOM))).isEqualTo(expected);
    }
  }

  /** Nothing is read from beyond the end, nor from a message that cannot be. */
  @Test
  void messageThatIsCutOff_endsTheOthers() {
    for (long length : new long[] {8, 15, 0, -8, Long.MIN_VALUE, 33, 65, Long.MAX_VALUE}) {
      begin();
      List<Integer> first = add(SOCKET, RIGHTS, MessageHeader.CMSG_DATA + 8);
      add(SOCKET, RIGHTS, MessageHeader.CMSG_DATA + 16);
      memory.set(JAVA_LONG, MessageHeader.CMSG + 24, length);
      assertThat(taken(24 + 32)).as("length %d", length).isEqualTo(first);
    }
    begin();
    List<Integer> all = add(SOCKET, RIGHTS, MessageHeader.CMSG_DATA + 8);
    all.addAll(add(SOCKET, RIGHTS, MessageHeader.CMSG_DATA + 16));
    assertThat(taken(24 + 32)).isEqualTo(all);
    for (long end = 24; end < 24 + 32; end += 4) {
      assertThat(taken(end)).as("end %d", end).isEqualTo(all.subList(0, 2));
    }
    assertThat(taken(0)).isEmpty();
  }

  /** Of all that the system may say of a message this is the one that matters. */
  @Test
  void descriptorsAreLost_whereTheSystemSaysThat_andNothingElse() {
    for (int bit = 0; bit < Integer.SIZE; bit++) {
      memory.set(JAVA_INT, MessageHeader.FLAGS, 1 << bit);
      assertThat(header.isControlTruncated())
          .as("%#x", 1 << bit)
          .isEqualTo(1 << bit == MessageHeader.CTRUNC);
    }
    header.reset();
    assertThat(header.isControlTruncated()).isFalse();
  }
}
