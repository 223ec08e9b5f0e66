package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.channel.IpcFrame;
import io.cuvette.internal.channel.OpenSocket;
import io.cuvette.internal.channel.PoolHandle;
import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What becomes of messages at a socket that takes and gives any part of them, or fails. */
class IpcEdgesTest {
  private final Peer peer = new Peer();

  /** Takes a random part of what is sent, and notes where descriptors came. */
  private static final class Peer extends FakeDescriptors {
    private final List<Byte> taken = new ArrayList<>();
    private final List<String> handedOver = new ArrayList<>();
    private final List<byte[]> coming = new ArrayList<>();
    private Random random = new Random(1);
    private int mostAtOnce = Integer.MAX_VALUE;
    private boolean takesNothing;
    private @Nullable RuntimeException refusal;
    private boolean closeFails;

    @Override
    public void send(int socket, byte[] bytes, int[] descriptors, Duration timeout) {
      if (refusal != null) {
        throw refusal;
      }
      int most = random.nextInt(3) == 0 ? bytes.length : random.nextInt(bytes.length + 1);
      int part = takesNothing ? 0 : Math.min(most, mostAtOnce);
      for (int i = 0; i < descriptors.length && part > 0; i++) {
        handedOver.add(descriptors[i] + " at " + taken.size());
      }
      for (int i = 0; i < part; i++) {
        taken.add(bytes[i]);
      }
      if (part < bytes.length) {
        var timedOut = new SocketTimeoutException("not all");
        timedOut.bytesTransferred = part;
        throw new UncheckedIOException(timedOut);
      }
    }

    @Override
    public Received receive(int socket, int maxBytes, Duration timeout) {
      if (coming.isEmpty()) {
        throw failure.get();
      }
      return new Received(coming.removeFirst(), new int[0]);
    }

    @Override
    public void close(int descriptor) {
      super.close(descriptor);
      if (closeFails) {
        throw new UncheckedIOException(new IOException("cannot be closed"));
      }
    }
  }

  private IpcChannel channel() {
    return IpcChannel.of(peer, peer.memoryFile("socket", 0), "for a test");
  }

  private IpcWriter writer(boolean broken) {
    OpenSocket socket = new OpenSocket(peer, peer.memoryFile("socket", 0), "a socket");
    return new IpcWriter(peer, socket, "a channel", () -> broken);
  }

  /** Each descriptor once, with the byte that the other end expects it with. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void messageThatIsTakenInAnyParts_comesWhole_withItsDescriptorsInPlace(long seed) {
    peer.random = new Random(seed);
    peer.mostAtOnce = seed == 1 ? 1 : Integer.MAX_VALUE; // then it stops at every byte
    for (int count : new int[] {0, 1, 15, 16, 17, 31, 32, 33, 100}) {
      peer.taken.clear();
      peer.handedOver.clear();
      byte[] bytes = new byte[IpcFrame.HEADER_BYTES + 17 * count + 300];
      peer.random.nextBytes(bytes);
      int[] descriptors = new int[count];
      List<String> expected = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        descriptors[i] = 1000 + i;
        int begin = IpcFrame.beginOf(i / IpcFrame.MOST_DESCRIPTORS);
        expected.add("%d at %d".formatted(descriptors[i], begin));
      }
      writer(false).write(bytes, descriptors);
      assertThat(peer.handedOver).isEqualTo(expected);
      byte[] all = new byte[peer.taken.size()];
      for (int i = 0; i < all.length; i++) {
        all[i] = peer.taken.get(i);
      }
      assertThat(all).isEqualTo(bytes);
    }
  }

  @Test
  void sendToAPeerThatTakesNothing_ends_onceTheChannelBroke() {
    peer.takesNothing = true;
    assertThatThrownBy(() -> writer(true).write(new byte[10], new int[0]))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("a channel broke while a message was sent");
  }

  /** Only an interrupt before the first byte leaves the connection between two messages. */
  @Test
  void sendThatFails_closesTheChannel_unlessItWasInterruptedBeforeTheFirstByte() {
    InterruptedIOException later = new InterruptedIOException("interrupted");
    later.bytesTransferred = 5;
    List<RuntimeException> failures =
        List.of(
            new UncheckedIOException(new InterruptedIOException("interrupted")),
            new UncheckedIOException(later),
            new UncheckedIOException(new IOException("broken pipe")),
            new UncheckedIOException(new EOFException("closed")),
            new IllegalStateException("no cause"),
            new IllegalStateException(new IOException("another cause")));
    for (RuntimeException failure : failures) {
      try (IpcChannel channel = channel()) {
        peer.refusal = failure;
        assertThatThrownBy(() -> channel.send(new byte[100])).hasMessage(failure.getMessage());
        assertThat(channel.isClosed()).as("%s", failure).isEqualTo(failure != failures.getFirst());
        peer.refusal = null;
      }
    }
    assertThat(peer.open()).isEmpty();
  }

  @Test
  void peerThatCloses_isNamed_withTheMomentOfIt() {
    for (boolean begun : new boolean[] {false, true}) {
      try (IpcChannel channel = channel()) {
        if (begun) {
          peer.coming.add(new byte[5]);
        }
        peer.coming.add(new byte[0]);
        assertThatThrownBy(() -> channel.receiveMessage(Duration.ofSeconds(40)))
            .isInstanceOf(UncheckedIOException.class)
            .hasCauseInstanceOf(EOFException.class)
            .hasMessage(
                "channel for a test: the peer closed"
                    + (begun ? " in the middle of a message" : ""));
      }
    }
  }

  @Test
  void handlesOfAMessage_areAllClosed_andWhatFailedIsSaid() {
    List<AllocationHandle> handles = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      handles.add(new AllocationHandle(new PoolHandle(peer, peer.memoryFile("pool", 0), null)));
    }
    handles.forEach(handle -> handle.core().own());
    IpcChannel.Message message = new IpcChannel.Message(new byte[0], handles);
    peer.closeFails = true;
    assertThatThrownBy(message::close).hasMessageContaining("cannot be closed");
    assertThat(peer.open()).isEmpty();
    assertThat(handles).allMatch(AllocationHandle::isClosed);
  }

  @Test
  void root_isNoSocket() {
    assertThatThrownBy(() -> IpcListener.open(peer, Path.of("/")))
        .isInstanceOf(RuntimeException.class)
        .isNotInstanceOf(NullPointerException.class)
        .hasMessageContaining("path: /");
    assertThat(peer.open()).isEmpty();
  }

  /** Whoever waits for another that receives has what is left of its time then. */
  @Test
  void secondReceiver_waitsForTheFirst_andThenForItsMessage() throws Exception {
    byte[] message = new IpcFrame(IpcFrame.Kind.MESSAGE, List.of(), new byte[] {7}).toBytes();
    CountDownLatch received = new CountDownLatch(1);
    CountDownLatch goesOn = new CountDownLatch(1);
    List<Duration> patience = Collections.synchronizedList(new ArrayList<>());
    var slow =
        new FakeDescriptors() {
          private int given;

          @Override
          public Received receive(int socket, int maxBytes, Duration timeout) {
            patience.add(timeout);
            received.countDown();
            Latches.await(goesOn);
            int from = given % message.length;
            int bytes = Math.min(maxBytes, message.length - from);
            given += bytes;
            return new Received(Arrays.copyOfRange(message, from, from + bytes), new int[0]);
          }
        };
    IpcChannel channel = IpcChannel.of(slow, slow.memoryFile("socket", 0), "for a test");
    FutureTask<byte[]> first = receiver(channel);
    Thread.ofPlatform().daemon().start(first);
    Latches.await(received);
    FutureTask<byte[]> second = receiver(channel);
    Thread waiting = Thread.ofPlatform().daemon().start(second);
    while (waiting.getState() != Thread.State.TIMED_WAITING && waiting.isAlive()) {
      Thread.onSpinWait();
    }
    goesOn.countDown();
    assertThat(first.get(40, TimeUnit.SECONDS)).containsExactly(7);
    assertThat(second.get(40, TimeUnit.SECONDS)).containsExactly(7);
    assertThat(patience).allMatch(Duration::isPositive);
    channel.close();
  }

  private static FutureTask<byte[]> receiver(IpcChannel channel) {
    return new FutureTask<>(() -> channel.receiveMessage(Duration.ofSeconds(40)).bytes());
  }
}
