package io.cuvette.ffm.linux;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.DescriptorCalls.Received;
import io.cuvette.ffm.FfmDescriptors;
import io.cuvette.ffm.OpenDescriptors;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class SocketMessagesTest {
  private static final Duration LONG = SocketPair.LONG;
  private static final int[] NONE = {};

  private final DescriptorCalls calls = new FfmDescriptors();
  private SocketPair pair;

  @BeforeEach
  void connect(@TempDir Path folder) {
    pair = SocketPair.open(folder.resolve("socket"));
  }

  @AfterEach
  void close() {
    pair.close();
  }

  private void send(int[] descriptors, int... bytes) {
    calls.send(pair.client(), bytes(bytes), descriptors, LONG);
  }

  private static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }

  private Received receive(int maxBytes) {
    return calls.receive(pair.server(), maxBytes, LONG);
  }

  private void closeAll(int[] descriptors) {
    Arrays.stream(descriptors).forEach(calls::close);
  }

  @Test
  void bytes_goBothWays() {
    send(NONE, 1, 2, 3);
    Received received = receive(100);
    assertThat(received.bytes()).containsExactly(1, 2, 3);
    assertThat(received.descriptors()).isEmpty();
    calls.send(pair.server(), bytes(4), NONE, LONG);
    assertThat(calls.receive(pair.client(), 1, LONG).bytes()).containsExactly(4);
  }

  @Test
  void receive_takesAtMostWhatItIsAskedFor() {
    send(NONE, 1, 2, 3);
    assertThat(receive(2).bytes()).containsExactly(1, 2);
    assertThat(receive(2).bytes()).containsExactly(3);
  }

  @Test
  void memory_isSharedThroughItsDescriptor() throws Exception {
    int own = calls.memoryFile("shared", 3);
    send(new int[] {own}, 9);
    Received received = receive(1);
    assertThat(received.bytes()).containsExactly(9);
    assertThat(received.descriptors()).hasSize(1).doesNotContain(own);
    int theirs = received.descriptors()[0];
    assertThat(OpenDescriptors.isClosedOnExec(theirs)).isTrue();
    try (FileChannel file =
        FileChannel.open(OpenDescriptors.file(theirs), StandardOpenOption.WRITE)) {
      file.write(ByteBuffer.wrap(bytes(5, 6, 7)));
    }
    assertThat(Files.readAllBytes(OpenDescriptors.file(own))).containsExactly(5, 6, 7);
    closeAll(new int[] {own, theirs});
  }

  @Test
  void sentDescriptors_stayTheSenders_andOutliveIt() throws Exception {
    int own = calls.memoryFile("shared", 3);
    send(new int[] {own}, 1);
    assertThat(calls.isOpen(own)).isTrue();
    calls.close(own);
    calls.close(pair.client());
    int[] received = receive(1).descriptors();
    assertThat(Files.size(OpenDescriptors.file(received[0]))).isEqualTo(3);
    closeAll(received);
  }

  @Test
  void connection_canBePassedAndUsed(@TempDir Path folder) {
    try (SocketPair passed = SocketPair.open(folder.resolve("passed"))) {
      send(new int[] {passed.server()}, 1);
      int[] received = receive(1).descriptors();
      calls.close(passed.server());
      calls.send(received[0], bytes(42), NONE, LONG);
      assertThat(calls.receive(passed.client(), 8, LONG).bytes()).containsExactly(42);
      closeAll(received);
    }
  }

  @Test
  void sixteenDescriptors_keepTheirOrder() throws Exception {
    int[] own = IntStream.range(0, 16).map(i -> calls.memoryFile("m", i)).toArray();
    send(own, 1);
    int[] received = receive(1).descriptors();
    assertThat(received).hasSize(16).doesNotHaveDuplicates();
    for (int i = 0; i < 16; i++) {
      assertThat(Files.size(OpenDescriptors.file(received[i]))).isEqualTo(i);
    }
    closeAll(own);
    closeAll(received);
  }

  @Test
  void messagesOfManyParts_arriveWhole_withTheirDescriptorsOnce() throws Exception {
    byte[] sent = new byte[3_000_001];
    long seed = 20_251_121;
    new Random(seed).nextBytes(sent);
    int own = calls.memoryFile("m", 1);
    FutureTask<Void> sending =
        new FutureTask<>(() -> calls.send(pair.client(), sent, new int[] {own, own}, LONG), null);
    Thread.ofPlatform().start(sending);
    ByteBuffer received = ByteBuffer.allocate(sent.length);
    Received first = receive(sent.length);
    received.put(first.bytes());
    while (received.hasRemaining()) {
      Received next = receive(received.remaining());
      assertThat(next.descriptors()).isEmpty();
      received.put(next.bytes());
    }
    sending.get();
    assertThat(received.array()).as("seed %d", seed).isEqualTo(sent);
    assertThat(first.descriptors()).hasSize(2);
    closeAll(first.descriptors());
    calls.close(own);
  }

  @Test
  void endOfTheConnection_isNoBytes() {
    send(NONE, 1);
    calls.close(pair.client());
    assertThat(receive(10).bytes()).containsExactly(1);
    assertThat(receive(10).bytes()).isEmpty();
    assertThat(receive(10).bytes()).isEmpty();
  }

  @Test
  void sendToOneWhoIsGone_fails() {
    calls.close(pair.server());
    assertThatThrownBy(() -> send(NONE, 1, 2))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage(
            "sendmsg(socket=%d, bytes=2, descriptors=[]), 0 bytes sent: Broken pipe (errno 32)"
                .formatted(pair.client()));
  }

  @Test
  void receiveFromOneWhoLeftBytesUnread_isTheEnd() {
    send(NONE, 1);
    calls.close(pair.server());
    for (int i = 0; i < 2; i++) {
      assertThat(calls.receive(pair.client(), 1, LONG).bytes()).isEmpty();
    }
  }

  @Test
  void receiverWhoLeavesInTheMiddle_endsTheSending() throws Exception {
    FutureTask<Void> sending =
        new FutureTask<>(() -> calls.send(pair.client(), new byte[10_000_000], NONE, LONG), null);
    Thread.ofPlatform().start(sending);
    receive(1000);
    calls.close(pair.server());
    assertThatThrownBy(sending::get)
        .cause()
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageMatching(".*, \\d+ bytes sent: .*errno (32|104)\\)");
  }

  @Test
  void receive_timesOut() throws Exception {
    OpenDescriptors.assertKept(() -> {
      for (Duration timeout : new Duration[] {Duration.ZERO, Duration.ofMillis(2)}) {
        assertThatThrownBy(() -> calls.receive(pair.server(), 7, timeout))
            .isInstanceOf(UncheckedIOException.class)
            .hasCauseInstanceOf(SocketTimeoutException.class)
            .hasMessage(
                "recvmsg(socket=%d, maxBytes=7): timed out after %s"
                    .formatted(pair.server(), timeout));
      }
    });
  }

  @Test
  void sendThatNobodyReads_timesOut_andSaysHowFarItCame() {
    assertThatThrownBy(
            () -> calls.send(pair.client(), new byte[50_000_000], NONE, Duration.ofMillis(2)))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(SocketTimeoutException.class)
        .hasMessageMatching("sendmsg.* [1-9]\\d* bytes sent: timed out after PT0.002S")
        .satisfies(e -> {
          int sent = ((InterruptedIOException) e.getCause()).bytesTransferred;
          assertThat(sent).isPositive();
          assertThat(e).hasMessageContaining(", " + sent + " bytes sent");
        });
    assertThatThrownBy(() -> calls.send(pair.client(), new byte[1 << 20], NONE, Duration.ZERO))
        .satisfies(
            e -> assertThat(((InterruptedIOException) e.getCause()).bytesTransferred).isZero());
  }

  @Test
  void wrongArguments_areRefused() {
    int client = pair.client();
    assertIllegal(() -> calls.send(client, bytes(), NONE, LONG), "bytes: 0 (expected: >= 1)");
    assertIllegal(
        () -> calls.send(client, bytes(1), new int[17], LONG), "descriptors: 17 (expected: <= 16)");
    assertIllegal(() -> calls.receive(client, 0, LONG), "maxBytes: 0 (expected: >= 1)");
    assertIllegal(
        () -> calls.receive(client, 1, Duration.ofMillis(-1)),
        "timeout: PT-0.001S (expected: >= 0)");
    assertIllegal(
        () -> calls.send(client, bytes(1), NONE, Duration.ofMillis(-1)),
        "timeout: PT-0.001S (expected: >= 0)");
  }

  private static void assertIllegal(Runnable call, String message) {
    assertThatThrownBy(call::run).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  void closedDescriptor_isNotSent() {
    assertThatThrownBy(() -> send(new int[] {1_000_000}, 1))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageEndingWith("0 bytes sent: Bad file descriptor (errno 9)");
    send(NONE, 2);
    assertThat(receive(10).bytes()).containsExactly(2);
  }

  /** Only the end of a connection is no error. */
  @Test
  void messagesOfWhatIsNoConnection_areFailures() {
    int file = calls.memoryFile("no socket", 1);
    String reason = "Socket operation on non-socket (errno 88)";
    assertThatThrownBy(() -> calls.receive(file, 1, LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage("recvmsg(socket=%d, maxBytes=1): %s".formatted(file, reason));
    assertThatThrownBy(() -> calls.send(file, bytes(1), NONE, LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("socket=" + file)
        .hasMessageEndingWith(reason);
    calls.close(file);
    int alone = Libc.SOCKET.call(UnixAddress.FAMILY, UnixSockets.STREAM, 0);
    assertThatThrownBy(() -> calls.receive(alone, 1, LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("errno");
    calls.close(alone);
  }

  @Test
  void moreDescriptorsThanFit_areAllClosed() throws Exception {
    OpenDescriptors.assertKept(() -> {
      sendMany(17);
      assertThatThrownBy(() -> receive(1))
          .isInstanceOf(UncheckedIOException.class)
          .hasMessageEndingWith(
              "descriptors are lost: more than 16 came, or this process may open no more");
      sendMany(253);
      assertThatThrownBy(() -> receive(1)).hasMessageContaining("descriptors are lost");
    });
  }

  /** Sends standard input many times, past the rules of {@code send}. */
  private void sendMany(int count) {
    long control = 16 + 4L * count;
    MemorySegment memory = Arena.ofAuto().allocate(80 + control + 8, 8);
    memory.set(JAVA_LONG, 16, memory.address() + 56);
    memory.set(JAVA_LONG, 24, 1);
    memory.set(JAVA_LONG, 32, memory.address() + 80);
    memory.set(JAVA_LONG, 40, control);
    memory.set(JAVA_LONG, 56, memory.address() + 72);
    memory.set(JAVA_LONG, 64, 1);
    memory.set(JAVA_LONG, 80, control);
    memory.set(JAVA_INT, 88, 1);
    memory.set(JAVA_INT, 92, 1);
    assertThat(Libc.SENDMSG.call(pair.client(), memory, 0)).isEqualTo(1);
  }

  @Test
  void interrupt_endsWaiting() throws Exception {
    FutureTask<Received> receiving = new FutureTask<>(() -> receive(1));
    Thread receiver = Thread.ofPlatform().start(receiving);
    receiver.interrupt();
    assertThatThrownBy(receiving::get)
        .cause()
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseExactlyInstanceOf(InterruptedIOException.class);

    FutureTask<Void> sending =
        new FutureTask<>(() -> calls.send(pair.client(), new byte[50_000_000], NONE, LONG), null);
    Thread sender = Thread.ofPlatform().start(sending);
    sender.interrupt();
    assertThatThrownBy(sending::get)
        .cause()
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseExactlyInstanceOf(InterruptedIOException.class);
  }

  @Test
  void virtualThreads_passDescriptors() throws Exception {
    FutureTask<Received> receiving = new FutureTask<>(() -> receive(1));
    Thread.ofVirtual().start(receiving);
    int own = calls.memoryFile("m", 1);
    send(new int[] {own}, 1);
    closeAll(receiving.get().descriptors());
    calls.close(own);
  }

  @Test
  void fiveHundredRounds_leaveNothingOpen(@TempDir Path folder) throws Exception {
    AtomicInteger rounds = new AtomicInteger();
    OpenDescriptors.assertKept(() -> {
      for (int i = 0; i < 250; i++) {
        round(folder.resolve("round" + rounds.getAndIncrement()));
      }
    });
  }

  private void round(Path path) {
    try (SocketPair fresh = SocketPair.open(path)) {
      int own = calls.memoryFile("m", 100);
      calls.send(fresh.client(), bytes(1), new int[] {own, own, own}, LONG);
      calls.close(own);
      closeAll(calls.receive(fresh.server(), 1, LONG).descriptors());
    }
  }

  @Test
  void callThatASignalBrokeOff_orThatWouldWait_isMadeAgain_andNoOther() {
    Deadline deadline = Deadline.after(LONG, () -> "call()");
    assertThatCode(() -> SocketMessages.requireTransient(-Errno.EINTR, deadline))
        .doesNotThrowAnyException();
    assertThatCode(() -> SocketMessages.requireTransient(-Errno.EAGAIN, deadline))
        .doesNotThrowAnyException();
    assertThatThrownBy(() -> SocketMessages.requireTransient(-Errno.EBADF, deadline))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageStartingWith("call(): ")
        .hasMessageEndingWith("(errno 9)");
  }
}
