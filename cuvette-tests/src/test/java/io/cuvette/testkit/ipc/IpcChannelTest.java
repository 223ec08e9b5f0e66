package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import java.io.EOFException;
import java.io.IOException;
import java.io.StreamCorruptedException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Messages and descriptors over a real Unix socket, with honest and with other peers. */
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class IpcChannelTest {
  private static final Duration LONG = Duration.ofSeconds(40);
  private static final Duration SHORT = Duration.ofMillis(100);
  private static final int MAGIC = 0x43564950;
  private static final int HEADER_BYTES = 12;

  @TempDir Path directory;

  private final DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
  private long before;
  private IpcListener listener;
  private IpcChannel ours;

  /** The other end, as a socket without a protocol. */
  private int theirs;

  private boolean theirsOpen;

  @BeforeEach
  void connect() {
    before = OpenFiles.count();
    Path path = directory.resolve("channel");
    listener = IpcListener.open(path);
    theirs = calls.connect(path.toString(), LONG);
    theirsOpen = true;
    ours = listener.accept(LONG);
  }

  @AfterEach
  void nothingStaysOpen() {
    ours.close();
    closeTheirs();
    listener.close();
    assertThat(OpenFiles.count()).as("descriptors").isLessThanOrEqualTo(before);
  }

  private void closeTheirs() {
    if (theirsOpen) {
      theirsOpen = false;
      calls.close(theirs);
    }
  }

  private IpcChannel theirChannel() {
    closeTheirs();
    ours.close();
    IpcChannel channel = IpcChannel.connect(listener.path(), LONG);
    ours = listener.accept(LONG);
    return channel;
  }

  private static byte[] header(int kind, int descriptors, int bytes) {
    return ByteBuffer.allocate(HEADER_BYTES)
        .putInt(MAGIC)
        .put((byte) 1)
        .put((byte) kind)
        .putShort((short) descriptors)
        .putInt(bytes)
        .array();
  }

  private void sendRaw(byte[] bytes, int... descriptors) {
    calls.send(theirs, bytes, descriptors, LONG);
  }

  private void assertCorrupt(String message) {
    assertThatThrownBy(() -> ours.receiveMessage(LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(StreamCorruptedException.class)
        .hasMessageContaining(message);
    assertBroken();
  }

  private void assertBroken() {
    assertThat(ours.isClosed()).isTrue();
    assertThatThrownBy(() -> ours.receiveMessage(LONG))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("in the middle of a message")
        .hasCauseInstanceOf(UncheckedIOException.class);
    assertThatThrownBy(() -> ours.send(new byte[1])).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void messages_arriveWholeAndInOrder() throws Exception {
    try (IpcChannel peer = theirChannel();
        var threads = Executors.newSingleThreadExecutor()) {
      Random random = new Random(5);
      List<byte[]> sent = new ArrayList<>();
      for (int size : new int[] {0, 1, 11, 12, 13, 4096, 70_000, IpcChannel.MOST_MESSAGE_BYTES}) {
        byte[] message = new byte[size];
        random.nextBytes(message);
        sent.add(message);
      }
      Future<?> sending = threads.submit(() -> sent.forEach(peer::send));
      for (byte[] message : sent) {
        try (IpcChannel.Message got = ours.receiveMessage(LONG)) {
          assertThat(got.bytes()).isEqualTo(message);
          assertThat(got.handles()).isEmpty();
        }
      }
      sending.get(40, TimeUnit.SECONDS);
    }
  }

  @Test
  void handles_arriveWithTheirUuids_asOpenDescriptorsOfTheSameFile() {
    UUID uuid = UUID.randomUUID();
    try (IpcChannel peer = theirChannel();
        AllocationHandle named = AllocationHandle.of(calls.memoryFile("one", 1), uuid);
        AllocationHandle nameless = AllocationHandle.of(calls.memoryFile("two", 2))) {
      peer.send("both".getBytes(StandardCharsets.US_ASCII), named, nameless);
      peer.send(named);
      try (IpcChannel.Message got = ours.receiveMessage(LONG);
          AllocationHandle again = ours.receiveAllocationHandle(LONG)) {
        assertThat(got.bytes()).asString().isEqualTo("both");
        assertThat(got.handles())
            .extracting(AllocationHandle::uuid)
            .containsExactly(Optional.of(uuid), Optional.empty());
        assertThat(again.uuid()).contains(uuid);
        assertThat(calls.isOpen(again.descriptor())).isTrue();
        assertThat(again.descriptor())
            .isNotIn(named.descriptor(), got.handles().getFirst().descriptor());
        assertThat(target(again)).isEqualTo(target(named)).isNotEqualTo(target(nameless));
      }
    }
  }

  private static String target(AllocationHandle handle) {
    try {
      return Files.readSymbolicLink(Path.of("/proc/self/fd/" + handle.descriptor())).toString();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void mostHandles_arrive_andOneMoreIsRefusedBeforeItIsSent() {
    try (IpcChannel peer = theirChannel();
        AllocationHandle one = AllocationHandle.of(calls.memoryFile("one", 1))) {
      AllocationHandle[] most = new AllocationHandle[IpcChannel.MOST_HANDLES];
      Arrays.fill(most, one);
      peer.send(new byte[3], most);
      try (IpcChannel.Message got = ours.receiveMessage(LONG)) {
        assertThat(got.handles()).hasSize(IpcChannel.MOST_HANDLES);
      }
      AllocationHandle[] more = Arrays.copyOf(most, most.length + 1);
      more[most.length] = one;
      assertThatThrownBy(() -> peer.send(new byte[3], more))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("17");
      assertThatThrownBy(() -> peer.send(new byte[IpcChannel.MOST_MESSAGE_BYTES + 1]))
          .isInstanceOf(IllegalArgumentException.class);
      peer.send(new byte[1]);
      ours.receiveMessage(LONG).close();
    }
  }

  @Test
  void closedHandle_isNotSent_andTheChannelGoesOn() {
    try (IpcChannel peer = theirChannel();
        AllocationHandle open = AllocationHandle.of(calls.memoryFile("one", 1))) {
      AllocationHandle closed = open.duplicate();
      closed.close();
      assertThatThrownBy(() -> peer.send(new byte[1], open, closed))
          .isInstanceOf(IllegalStateException.class);
      peer.send(new byte[] {7});
      try (IpcChannel.Message got = ours.receiveMessage(LONG)) {
        assertThat(got.bytes()).containsExactly(7);
      }
    }
  }

  @Test
  void messageOfAnotherKind_isRefusedByName_andTheNextOneComes() {
    try (IpcChannel peer = theirChannel();
        AllocationHandle handle = AllocationHandle.of(calls.memoryFile("one", 1))) {
      peer.send(handle);
      peer.send(new byte[] {1});
      assertThatThrownBy(() -> ours.receiveBufferDescriptor(LONG))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("AllocationHandle")
          .hasMessageContaining("BufferDescriptor");
      assertThatThrownBy(() -> ours.receiveAllocationHandle(LONG))
          .isInstanceOf(IllegalStateException.class);
      peer.send(new byte[] {2});
      assertThat(ours.receiveMessage(LONG).bytes()).containsExactly(2);
    }
  }

  @Test
  void timeoutBeforeAMessage_leavesTheChannelUsable() {
    assertThatThrownBy(() -> ours.receiveMessage(SHORT))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(SocketTimeoutException.class);
    assertThatThrownBy(() -> ours.receiveMessage(Duration.ZERO))
        .hasCauseInstanceOf(SocketTimeoutException.class);
    sendRaw(header(1, 0, 0));
    assertThat(ours.receiveMessage(LONG).bytes()).isEmpty();
    assertThatThrownBy(() -> ours.receiveMessage(Duration.ofSeconds(-1)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void timeoutInTheMiddle_closesTheChannelAndItsDescriptors() {
    int file = calls.memoryFile("one", 1);
    sendRaw(Arrays.copyOf(header(2, 1, 17), 5), file);
    calls.close(file);
    assertThatThrownBy(() -> ours.receiveAllocationHandle(SHORT))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(SocketTimeoutException.class);
    assertBroken();
  }

  @Test
  void peerThatCloses_isTheEnd() {
    closeTheirs();
    assertThatThrownBy(() -> ours.receiveMessage(LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(EOFException.class);
  }

  @Test
  void peerThatClosesWithoutReadingAll_isTheSameEnd_behindWhatItSent() {
    ours.send(new byte[100]);
    sendRaw(header(1, 0, 0));
    closeTheirs();
    ours.receiveMessage(LONG).close();
    assertThatThrownBy(() -> ours.receiveMessage(LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(EOFException.class);
  }

  @Test
  void peerThatClosesInTheMiddle_leavesNoDescriptor() {
    int file = calls.memoryFile("one", 1);
    sendRaw(header(2, 1, 17), file);
    calls.close(file);
    closeTheirs();
    assertThatThrownBy(() -> ours.receiveAllocationHandle(LONG))
        .hasCauseInstanceOf(EOFException.class)
        .hasMessageContaining("in the middle");
    assertBroken();
  }

  @Test
  void garbage_endsTheChannel() {
    int file = calls.memoryFile("one", 1);
    sendRaw("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII), file);
    calls.close(file);
    assertCorrupt("magic");
  }

  @Test
  void otherVersion_isRefused() {
    byte[] header = header(1, 0, 0);
    header[4] = 9;
    sendRaw(header);
    assertCorrupt("version: 9");
  }

  @Test
  void unknownKind_isRefused() {
    sendRaw(header(77, 0, 0));
    assertCorrupt("kind: 77");
  }

  @Test
  void oversizedLength_isRefusedBeforeItIsRead() {
    sendRaw(header(1, 0, IpcChannel.MOST_MESSAGE_BYTES + 1));
    assertCorrupt("bytes: 1048577");
  }

  @Test
  void negativeLength_isRefused() {
    sendRaw(header(1, 0, -1));
    assertCorrupt("bytes: -1");
  }

  @Test
  void negativeDescriptorCount_isRefused() {
    sendRaw(header(1, -1, 0));
    assertCorrupt("descriptors: -1");
  }

  @Test
  void fewerDescriptorsThanAnnounced_areRefused() {
    sendRaw(join(header(1, 1, 17), new byte[17]));
    assertCorrupt("0 descriptors came (expected: 1");
  }

  @Test
  void moreDescriptorsThanAnnounced_areRefusedAndClosed() {
    int file = calls.memoryFile("one", 1);
    sendRaw(header(1, 0, 0), file, file, file);
    calls.close(file);
    assertCorrupt("3 descriptors came (expected: 0");
  }

  @Test
  void descriptorsWithEachByte_areBounded() {
    int file = calls.memoryFile("one", 1);
    int[] many = new int[16];
    Arrays.fill(many, file);
    for (byte each : header(1, 0, 0)) {
      sendRaw(new byte[] {each}, many);
    }
    calls.close(file);
    assertCorrupt("descriptors came (expected: <= 16)");
  }

  @Test
  void malformedDescriptor_isRefused_andTheNextMessageComes() {
    sendRaw(join(header(3, 0, 124), new byte[124]));
    sendRaw(join(header(4, 0, 3), new byte[3]));
    sendRaw(join(header(1, 0, 2), new byte[2]));
    assertThatThrownBy(() -> ours.receiveBufferDescriptor(LONG))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("BufferDescriptor");
    assertThatThrownBy(() -> ours.receiveEventDescriptor(LONG))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("EventDescriptor");
    assertThat(ours.receiveMessage(LONG).bytes()).hasSize(2);
  }

  @Test
  void randomBytes_neverGiveAMessageOrLeaveADescriptor() {
    Random random = new Random(99);
    for (int round = 0; round < 200; round++) {
      byte[] bytes = round % 2 == 0 ? new byte[1 + random.nextInt(64)] : header(2, 1, 17);
      byte[] tail = new byte[random.nextInt(20)];
      random.nextBytes(tail);
      if (round % 2 == 0) {
        random.nextBytes(bytes);
      } else {
        bytes[random.nextInt(8)] ^= (byte) (1 << random.nextInt(8));
      }
      int file = calls.memoryFile("one", 1);
      sendRaw(join(bytes, tail), file, file);
      calls.close(file);
      closeTheirs();
      assertThatThrownBy(() -> ours.receiveAllocationHandle(LONG))
          .as("round %d", round)
          .isInstanceOf(UncheckedIOException.class);
      ours.close();
      theirs = calls.connect(listener.path().toString(), LONG);
      theirsOpen = true;
      ours = listener.accept(LONG);
    }
  }

  private static byte[] join(byte[] one, byte[] two) {
    byte[] both = Arrays.copyOf(one, one.length + two.length);
    System.arraycopy(two, 0, both, one.length, two.length);
    return both;
  }

  @Test
  void closing_endsAWaitForAMessage() throws Exception {
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<IpcChannel.Message> waiting = threads.submit(() -> ours.receiveMessage(LONG));
      ours.close();
      assertThatThrownBy(() -> waiting.get(40, TimeUnit.SECONDS))
          .cause()
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
  }

  @Test
  void threadsThatSendAtOnce_doNotMixTheirMessages() throws Exception {
    try (IpcChannel peer = theirChannel();
        var threads = Executors.newFixedThreadPool(4)) {
      List<Callable<Void>> senders = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        byte mark = (byte) thread;
        senders.add(() -> {
          for (int i = 0; i < 50; i++) {
            byte[] message = new byte[1 + i * 97];
            Arrays.fill(message, mark);
            peer.send(message);
          }
          return null;
        });
      }
      List<Future<Void>> sending = senders.stream().map(threads::submit).toList();
      for (int i = 0; i < 200; i++) {
        byte[] got = ours.receiveMessage(LONG).bytes();
        byte[] one = new byte[got.length];
        Arrays.fill(one, got[0]);
        assertThat(got).isEqualTo(one);
      }
      for (Future<Void> each : sending) {
        each.get(40, TimeUnit.SECONDS);
      }
    }
  }

  @Test
  void sendToAPeerThatIsGone_failsAndCloses() {
    closeTheirs();
    assertThatThrownBy(
            () -> {
              for (int i = 0; i < 100; i++) {
                ours.send(new byte[100_000]);
              }
            })
        .isInstanceOf(UncheckedIOException.class);
    assertThat(ours.isClosed()).isTrue();
  }
}
