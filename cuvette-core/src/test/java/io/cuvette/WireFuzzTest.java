package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.channel.IpcFrame;
import java.io.IOException;
import java.io.StreamCorruptedException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Bytes of a peer that are nearly right: each is what it says, or refused with what is wrong. */
class WireFuzzTest {
  private static final int ROUNDS = 100_000;
  private static final long SEED = Long.getLong("cuvette.seed", 1);

  private final SplittableRandom random = new SplittableRandom(SEED);

  private byte[] mutated(byte[] right) {
    byte[] bytes = random.nextInt(10) == 0 ? resized(right) : right.clone();
    for (int i = random.nextInt(4); i > 0 && bytes.length > 0; i--) {
      int at = random.nextInt(bytes.length);
      bytes[at] =
          switch (random.nextInt(3)) {
            case 0 -> (byte) random.nextInt();
            case 1 -> (byte) (bytes[at] ^ 1 << random.nextInt(8));
            default -> (byte) (random.nextBoolean() ? 0x80 : 0x7F);
          };
    }
    return bytes;
  }

  private byte[] resized(byte[] right) {
    return Arrays.copyOf(right, random.nextInt(right.length + 20));
  }

  private static void check(Callable<?> parser, Class<? extends Exception> refusal) {
    try {
      assertThat(parser.call()).isNotNull();
    } catch (Exception e) {
      assertThat(e)
          .as("seed=%d; rerun with -Dcuvette.seed=%d", SEED, SEED)
          .isExactlyInstanceOf(refusal);
    }
  }

  @Test
  void frames_areReadOrRefused() {
    List<byte[]> right = new ArrayList<>();
    for (IpcFrame.Kind kind : IpcFrame.Kind.values()) {
      for (int handles = 0; handles < 4; handles++) {
        List<@Nullable UUID> uuids = new ArrayList<>();
        for (int i = 0; i < handles; i++) {
          uuids.add(i % 2 == 0 ? null : new UUID(i, i));
        }
        right.add(new IpcFrame(kind, uuids, new byte[10 * handles]).toBytes());
      }
    }
    for (int i = 0; i < ROUNDS; i++) {
      byte[] bytes = mutated(right.get(random.nextInt(right.size())));
      check(() -> frame(bytes), StreamCorruptedException.class);
    }
  }

  /** As a reader does: what a header announces comes, or the connection ends before. */
  private static Object frame(byte[] bytes) throws IOException {
    if (bytes.length < IpcFrame.HEADER_BYTES) {
      return "the end";
    }
    IpcFrame.Header header = IpcFrame.header(Arrays.copyOf(bytes, IpcFrame.HEADER_BYTES));
    boolean ofPages = header.kind() == IpcFrame.Kind.PAGE_HANDLES;
    int most = ofPages ? IpcFrame.MOST_PAGES : IpcFrame.MOST_DESCRIPTORS;
    assertThat(header.descriptors()).isBetween(0, most);
    assertThat(header.bytes()).isBetween(0, IpcFrame.MOST_CONTENT_BYTES + 17 * most);
    int following = bytes.length - IpcFrame.HEADER_BYTES;
    if (header.bytes() > following) {
      return "the end";
    }
    int end = IpcFrame.HEADER_BYTES + header.bytes();
    IpcFrame frame = IpcFrame.of(header, Arrays.copyOfRange(bytes, IpcFrame.HEADER_BYTES, end));
    assertThat(frame.uuids()).hasSize(header.descriptors());
    return frame;
  }

  @Test
  void descriptors_areReadOrRefused_alsoWithARightChecksum() {
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    UUID uuid = new UUID(1, 2);
    byte[] buffer =
        new BufferDescriptor(BufferDescriptor.Kind.PLAIN, 3, 4, uuid, uuid, handle).toBytes();
    byte[] event = new EventDescriptor(true, uuid, uuid, handle).toBytes();
    for (int i = 0; i < ROUNDS; i++) {
      byte[] one = signed(mutated(buffer));
      check(() -> read(BufferDescriptor.fromBytes(one), one), IllegalArgumentException.class);
      byte[] two = signed(mutated(event));
      check(() -> EventDescriptor.fromBytes(two).toBytes(), IllegalArgumentException.class);
    }
  }

  private static Object read(BufferDescriptor descriptor, byte[] bytes) {
    assertThat(descriptor.offset()).isNotNegative();
    assertThat(descriptor.byteSize()).isPositive();
    assertThat(descriptor.offset() + descriptor.byteSize()).isPositive();
    assertThat(descriptor.toBytes()).isEqualTo(bytes);
    return descriptor;
  }

  private byte[] signed(byte[] bytes) {
    int end = bytes.length - Integer.BYTES;
    if (end > 0 && random.nextInt(10) > 0) {
      CRC32C sum = new CRC32C();
      sum.update(bytes, 0, end);
      ByteBuffer.wrap(bytes).putInt(end, (int) sum.getValue());
    }
    return bytes;
  }

  @Test
  void fieldsOfAFrame_areRefusedWithWhatTheyMayBe() throws IOException {
    List<@Nullable UUID> uuids = Arrays.asList(null, new UUID(1, 2));
    byte[] right = new IpcFrame(IpcFrame.Kind.MESSAGE, uuids, new byte[5]).toBytes();
    byte[] first = Arrays.copyOf(right, IpcFrame.HEADER_BYTES);
    byte[] rest = Arrays.copyOfRange(right, IpcFrame.HEADER_BYTES, right.length);
    IpcFrame.Header header = IpcFrame.header(first);
    assertThat(IpcFrame.of(header, rest).uuids()).isEqualTo(uuids);
    for (byte flag : new byte[] {-1, 2}) {
      byte[] wrong = rest.clone();
      wrong[17] = flag;
      assertThatThrownBy(() -> IpcFrame.of(header, wrong))
          .isInstanceOf(StreamCorruptedException.class)
          .hasMessage("UUID flag: %d (expected: 0 to 1)", flag);
    }
    byte[] newer = first.clone();
    newer[4] = 2;
    assertThatThrownBy(() -> IpcFrame.header(newer))
        .isInstanceOf(StreamCorruptedException.class)
        .hasMessage("version: 2 (expected: 1)");
  }
}
