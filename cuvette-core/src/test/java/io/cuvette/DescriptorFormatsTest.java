package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.BufferDescriptor.Kind;
import io.cuvette.driver.IpcCalls;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.zip.CRC32C;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** The bytes of descriptors: what goes in comes out, and nothing else comes in. */
class DescriptorFormatsTest {
  private static final int BUFFER_BYTES = 124;
  private static final int EVENT_BYTES = 108;
  private static final UUID PROCESS = new UUID(1, 2);
  private static final UUID DEVICE = new UUID(3, 4);

  private final Random random = new Random(17);

  private BufferDescriptor buffer(Kind kind, long offset, long bytes) {
    return new BufferDescriptor(kind, offset, bytes, PROCESS, DEVICE, handle());
  }

  private byte[] handle() {
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    random.nextBytes(handle);
    return handle;
  }

  /** Makes changed bytes look whole, as a forger does. */
  private static byte[] sealed(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, 0, bytes.length - 4);
    ByteBuffer.wrap(bytes).putInt(bytes.length - 4, (int) crc.getValue());
    return bytes;
  }

  @Test
  void bufferDescriptor_comesBackFromItsBytes() {
    for (Kind kind : Kind.values()) {
      BufferDescriptor made = buffer(kind, 512, Long.MAX_VALUE - 512);
      byte[] bytes = made.toBytes();
      assertThat(bytes).hasSize(BUFFER_BYTES);
      BufferDescriptor back = BufferDescriptor.fromBytes(bytes);
      assertThat(back).isEqualTo(made).hasSameHashCodeAs(made);
      assertThat(back.kind()).isEqualTo(kind);
      assertThat(back.offset()).isEqualTo(512);
      assertThat(back.byteSize()).isEqualTo(Long.MAX_VALUE - 512);
      assertThat(back.deviceUuid()).isEqualTo(DEVICE);
      assertThat(back.process()).isEqualTo(PROCESS);
      assertThat(back.handle()).isEqualTo(made.handle());
      assertThat(back.toBytes()).isEqualTo(bytes);
    }
  }

  @Test
  void eventDescriptor_comesBackFromItsBytes() {
    for (boolean blocking : new boolean[] {false, true}) {
      EventDescriptor made = new EventDescriptor(blocking, PROCESS, DEVICE, handle());
      assertThat(made.toBytes()).hasSize(EVENT_BYTES);
      EventDescriptor back = EventDescriptor.fromBytes(made.toBytes());
      assertThat(back).isEqualTo(made).hasSameHashCodeAs(made);
      assertThat(back.blockingSync()).isEqualTo(blocking);
      assertThat(back.deviceUuid()).isEqualTo(DEVICE);
    }
  }

  /** What is taken is what would be written: no byte is passed over. */
  @Test
  void eachByte_isRefused_orIsPartOfTheDescriptor() {
    byte[] buffer = buffer(Kind.PLAIN, 512, 1024).toBytes();
    byte[] event = new EventDescriptor(false, PROCESS, DEVICE, handle()).toBytes();
    int refused = 0;
    for (byte[] bytes : new byte[][] {buffer, event}) {
      for (int at = 0; at < bytes.length - 4; at++) {
        for (int bit = 0; bit < 8; bit++) {
          byte[] forged = bytes.clone();
          forged[at] ^= (byte) (1 << bit);
          sealed(forged);
          try {
            byte[] back =
                bytes == buffer
                    ? BufferDescriptor.fromBytes(forged).toBytes()
                    : EventDescriptor.fromBytes(forged).toBytes();
            assertThat(back).as("byte %d, bit %d", at, bit).isEqualTo(forged);
          } catch (IllegalArgumentException e) {
            refused++;
          }
        }
      }
    }
    assertThat(refused).isGreaterThan(50);
  }

  @Test
  void descriptorsThatDifferInAnything_areNotEqual() {
    byte[] handle = handle();
    Kind kind = Kind.PLAIN;
    BufferDescriptor one = new BufferDescriptor(kind, 1, 2, PROCESS, DEVICE, handle);
    assertThat(one).isEqualTo(new BufferDescriptor(kind, 1, 2, PROCESS, DEVICE, handle.clone()));
    assertThat(one)
        .isNotEqualTo(new BufferDescriptor(Kind.HOST_POOL, 1, 2, PROCESS, DEVICE, handle))
        .isNotEqualTo(new BufferDescriptor(kind, 0, 2, PROCESS, DEVICE, handle))
        .isNotEqualTo(new BufferDescriptor(kind, 1, 3, PROCESS, DEVICE, handle))
        .isNotEqualTo(new BufferDescriptor(kind, 1, 2, DEVICE, DEVICE, handle))
        .isNotEqualTo(new BufferDescriptor(kind, 1, 2, PROCESS, PROCESS, handle))
        .isNotEqualTo(new BufferDescriptor(kind, 1, 2, PROCESS, DEVICE, handle()));
    EventDescriptor event = new EventDescriptor(true, PROCESS, DEVICE, handle);
    assertThat(event)
        .isEqualTo(new EventDescriptor(true, PROCESS, DEVICE, handle.clone()))
        .isNotEqualTo(new EventDescriptor(false, PROCESS, DEVICE, handle))
        .isNotEqualTo(new EventDescriptor(true, DEVICE, DEVICE, handle))
        .isNotEqualTo(new EventDescriptor(true, PROCESS, PROCESS, handle))
        .isNotEqualTo(new EventDescriptor(true, PROCESS, DEVICE, handle()));
    assertThat(event)
        .hasSameHashCodeAs(new EventDescriptor(true, PROCESS, DEVICE, handle.clone()))
        .doesNotHaveSameHashCodeAs(new EventDescriptor(false, PROCESS, DEVICE, handle))
        .doesNotHaveSameHashCodeAs(new EventDescriptor(true, DEVICE, DEVICE, handle));
  }

  @Test
  void textOfAnEventDescriptor_tellsTheStartOfItsHandle() {
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    handle[0] = (byte) 0xab;
    handle[7] = 0x0c;
    handle[8] = 0x77;
    assertThat(new EventDescriptor(true, PROCESS, DEVICE, handle))
        .hasToString("EventDescriptor[blockingSync=true, handle=ab0000000000000c…]");
  }

  @Test
  void bytesOfADescriptor_areNotItsOwn() {
    BufferDescriptor made = buffer(Kind.PLAIN, 0, 1);
    byte[] before = made.toBytes();
    made.toBytes()[60] ^= 1;
    made.handle()[0] ^= 1;
    assertThat(made.toBytes()).isEqualTo(before);
  }

  @Test
  void anyChangedBit_isRefused() {
    byte[] whole = buffer(Kind.DEVICE_POOL, 0, 64).toBytes();
    byte[] event = new EventDescriptor(true, PROCESS, DEVICE, handle()).toBytes();
    for (int bit = 0; bit < whole.length * 8; bit++) {
      byte[] changed = whole.clone();
      changed[bit / 8] ^= (byte) (1 << bit % 8);
      assertThatThrownBy(() -> BufferDescriptor.fromBytes(changed))
          .isInstanceOf(IllegalArgumentException.class);
    }
    for (int bit = 0; bit < event.length * 8; bit++) {
      byte[] changed = event.clone();
      changed[bit / 8] ^= (byte) (1 << bit % 8);
      assertThatThrownBy(() -> EventDescriptor.fromBytes(changed))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void anyOtherLength_isRefusedAndNamed() {
    byte[] whole = buffer(Kind.DEVICE_POOL, 0, 64).toBytes();
    for (int length = 0; length < 2 * whole.length; length++) {
      if (length != whole.length) {
        byte[] other = java.util.Arrays.copyOf(whole, length);
        assertThatThrownBy(() -> BufferDescriptor.fromBytes(other))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(String.valueOf(length))
            .hasMessageContaining("124");
      }
    }
    assertThatThrownBy(() -> EventDescriptor.fromBytes(whole))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("108");
  }

  @Test
  void randomBytes_areRefused() {
    for (int round = 0; round < 20_000; round++) {
      byte[] bytes = new byte[round % 2 == 0 ? BUFFER_BYTES : random.nextInt(300)];
      random.nextBytes(bytes);
      assertThatThrownBy(() -> BufferDescriptor.fromBytes(bytes))
          .isInstanceOf(IllegalArgumentException.class);
      byte[] event = new byte[EVENT_BYTES];
      random.nextBytes(event);
      assertThatThrownBy(() -> EventDescriptor.fromBytes(event))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  /** With a right checksum: what a peer can make up on purpose. */
  @Test
  void forgedFields_areRefusedOrHarmless() {
    byte[] whole = buffer(Kind.DEVICE_POOL, 0, 64).toBytes();
    for (int round = 0; round < 20_000; round++) {
      byte[] forged = whole.clone();
      for (int change = 0; change <= round % 4; change++) {
        forged[random.nextInt(24)] = (byte) random.nextInt(256);
      }
      try {
        BufferDescriptor read = BufferDescriptor.fromBytes(sealed(forged));
        assertThat(read.offset()).isNotNegative();
        assertThat(read.byteSize()).isPositive();
        assertThat(read.offset() + read.byteSize()).as("no overflow").isPositive();
      } catch (IllegalArgumentException e) {
        assertThat(e).hasMessageMatching("(?s).*(expected: .*).*");
      }
    }
  }

  @Test
  void versionKindOffsetAndSize_areNamedWhenWrong() {
    byte[] whole = buffer(Kind.DEVICE_POOL, 0, 64).toBytes();
    refused(put(whole, 4, (short) 2), "version: 2");
    refused(putByte(whole, 6, 0), "kind: 0");
    refused(putByte(whole, 6, 5), "kind: 5");
    refused(putByte(whole, 7, 1), "unused byte: 1");
    refused(putLong(whole, 8, -1), "offset: -1");
    refused(putLong(whole, 16, -64), "byteSize: -64");
    refused(putLong(whole, 16, 0), "byteSize: 0");
    refused(putLong(putLong(whole, 8, Long.MAX_VALUE), 16, 1), "byteSize: 1");
    byte[] event = new EventDescriptor(true, PROCESS, DEVICE, handle()).toBytes();
    for (int flags : new int[] {2, 3, 126}) {
      assertThatThrownBy(() -> EventDescriptor.fromBytes(sealed(putByte(event, 6, flags))))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("flags: %d (expected: %d)", flags, flags % 2);
    }
    assertThatThrownBy(() -> EventDescriptor.fromBytes(sealed(putByte(event, 7, 1))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("unused byte: 1 (expected: 0)");
  }

  private static void refused(byte[] bytes, String message) {
    assertThatThrownBy(() -> BufferDescriptor.fromBytes(sealed(bytes)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  private static byte[] put(byte[] of, int at, short value) {
    byte[] copy = of.clone();
    ByteBuffer.wrap(copy).putShort(at, value);
    return copy;
  }

  private static byte[] putByte(byte[] of, int at, int value) {
    byte[] copy = of.clone();
    copy[at] = (byte) value;
    return copy;
  }

  private static byte[] putLong(byte[] of, int at, long value) {
    byte[] copy = of.clone();
    ByteBuffer.wrap(copy).putLong(at, value);
    return copy;
  }

  /** A driver would read what follows in memory. */
  @Test
  void handleOfAnotherLength_isRefused_andNoHandleIsSharedWithWhoGaveIt() {
    for (int length = 0; length <= 2 * IpcCalls.HANDLE_BYTES; length++) {
      byte[] handle = new byte[length];
      ThrowingCallable buffer =
          () -> new BufferDescriptor(Kind.PLAIN, 0, 1, PROCESS, DEVICE, handle);
      ThrowingCallable event = () -> new EventDescriptor(true, PROCESS, DEVICE, handle);
      for (ThrowingCallable make : List.of(buffer, event)) {
        if (length == IpcCalls.HANDLE_BYTES) {
          assertThatCode(make).doesNotThrowAnyException();
        } else {
          assertThatThrownBy(make)
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("handle bytes: %d (expected: 64)", length);
        }
      }
    }
    byte[] mine = handle();
    EventDescriptor event = new EventDescriptor(true, PROCESS, DEVICE, mine);
    BufferDescriptor buffer = new BufferDescriptor(Kind.PLAIN, 0, 1, PROCESS, DEVICE, mine);
    byte[] before = event.toBytes();
    byte[] handle = mine.clone();
    mine[0] ^= 1;
    assertThat(event.toBytes()).isEqualTo(before);
    assertThat(buffer.handle()).isEqualTo(handle);
  }
}
