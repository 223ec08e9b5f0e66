package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.internal.channel.Closing;
import io.cuvette.internal.channel.IpcFrame;
import io.cuvette.internal.channel.OpenSocket;
import io.cuvette.internal.channel.PoolHandle;
import java.io.EOFException;
import java.io.IOException;
import java.io.StreamCorruptedException;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Messages that come and go in parts, and what a listener meets, as the system may have it. */
class IpcPartsTest {
  private static final int HEADER_BYTES = 12;

  private final Parts descriptors = new Parts();

  /** A socket that gives bytes in the given parts and takes what a script says. */
  private static final class Parts extends FakeDescriptors {
    private final List<byte[]> coming = new ArrayList<>();
    private final List<String> asked = new ArrayList<>();
    private final List<Integer> taken = new ArrayList<>();
    private final List<String> sent = new ArrayList<>();
    private Supplier<Integer> listening = () -> memoryFile("listener", 0);
    private Runnable whileSending = () -> {};
    private boolean connects;

    @Override
    public Received receive(int socket, int maxBytes, Duration timeout) {
      asked.add(maxBytes + (timeout.isZero() ? " at once" : " in time"));
      if (coming.isEmpty()) {
        throw new UncheckedIOException(new EOFException("no more parts"));
      }
      byte[] next = coming.removeFirst();
      if (next.length == 0) {
        throw new UncheckedIOException(new SocketTimeoutException("nothing yet"));
      }
      int bytes = Math.min(maxBytes, next.length);
      if (bytes < next.length) {
        coming.addFirst(Arrays.copyOfRange(next, bytes, next.length));
      }
      return new Received(Arrays.copyOf(next, bytes), new int[0]);
    }

    @Override
    public void send(int socket, byte[] bytes, int[] descriptors, Duration timeout) {
      sent.add("%d bytes, %d descriptors".formatted(bytes.length, descriptors.length));
      whileSending.run();
      if (!taken.isEmpty()) {
        var timedOut = new SocketTimeoutException("not all");
        timedOut.bytesTransferred = taken.removeFirst();
        throw new UncheckedIOException(timedOut);
      }
    }

    @Override
    public int listen(String path) {
      return listening.get();
    }

    @Override
    public int connect(String path, Duration timeout) {
      return connects ? memoryFile("connected", 0) : super.connect(path, timeout);
    }
  }

  private IpcChannel channel() {
    return IpcChannel.of(descriptors, descriptors.memoryFile("socket", 0), "for a test");
  }

  private static byte[] message(byte... content) {
    return ByteBuffer.allocate(HEADER_BYTES + content.length)
        .putInt(0x43564950)
        .put((byte) 1)
        .put((byte) 1)
        .putShort((short) 0)
        .putInt(content.length)
        .put(content)
        .array();
  }

  /** Also the rest of one that was begun in the last moment is waited for. */
  @Test
  void messageInParts_isReadToItsEndAndNoFurther() {
    byte[] first = message((byte) 1, (byte) 2, (byte) 3);
    for (int cut = 1; cut < first.length; cut++) {
      descriptors.coming.add(Arrays.copyOf(first, cut));
      descriptors.coming.add(new byte[0]);
      byte[] rest = Arrays.copyOfRange(first, cut, first.length);
      byte[] both = Arrays.copyOf(rest, rest.length + HEADER_BYTES + 1);
      System.arraycopy(message((byte) 4), 0, both, rest.length, HEADER_BYTES + 1);
      descriptors.coming.add(both); // the next message comes with the end of the first
      try (IpcChannel channel = channel()) {
        descriptors.asked.clear();
        assertThat(channel.receiveMessage(Duration.ZERO).bytes()).containsExactly(1, 2, 3);
        assertThat(descriptors.asked).first().isEqualTo("12 at once");
        assertThat(descriptors.asked.subList(1, descriptors.asked.size()))
            .as("cut at %d", cut)
            .allMatch(asked -> asked.endsWith("in time"));
        assertThat(channel.receiveMessage(Duration.ZERO).bytes()).containsExactly(4);
      }
    }
    assertThat(descriptors.coming).isEmpty();
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void descriptors_areSentOnce_withTheFirstByteThatIsTaken() {
    try (IpcChannel channel = channel();
        AllocationHandle handle =
            new AllocationHandle(
                new PoolHandle(descriptors, descriptors.memoryFile("pool", 0), null))) {
      descriptors.taken.addAll(List.of(0, 5, 0, 3));
      channel.send(new byte[100], handle);
      int all = HEADER_BYTES + 17 + 100;
      assertThat(descriptors.sent)
          .containsExactly(
              all + " bytes, 1 descriptors",
              all + " bytes, 1 descriptors",
              all - 5 + " bytes, 0 descriptors",
              all - 5 + " bytes, 0 descriptors",
              all - 8 + " bytes, 0 descriptors");
      assertThat(channel.isClosed()).isFalse();
    }
    assertThat(descriptors.open()).isEmpty();
  }

  /** The next ones are told what broke it first, not what followed from that. */
  @Test
  void channelThatBreaksWhileItSends_endsThat_andKeepsItsFirstFailure() throws Exception {
    IpcChannel channel = channel();
    descriptors.taken.add(5);
    descriptors.coming.add(new byte[100]); // no message
    FutureTask<Throwable> failure =
        new FutureTask<>(() -> catchThrowable(() -> channel.receiveMessage(Duration.ZERO)));
    descriptors.whileSending =
        () -> {
          Thread.ofPlatform().daemon().start(failure);
          while (!channel.isClosed()) {
            Thread.onSpinWait();
          }
        };
    assertThatThrownBy(() -> channel.send(new byte[100]))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("channel for a test broke while a message was sent");
    Throwable first = failure.get(60, TimeUnit.SECONDS);
    assertThat(first).hasCauseInstanceOf(StreamCorruptedException.class);
    for (ThrowingCallable use :
        List.<ThrowingCallable>of(
            () -> channel.send(new byte[1]), () -> channel.receiveMessage(Duration.ZERO))) {
      assertThatThrownBy(use)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("channel for a test is closed: it failed in the middle of a message")
          .hasCause(first);
    }
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void negativePatience_isRefused_byEachThatWaits(@TempDir Path directory) throws IOException {
    Duration negative = Duration.ofMillis(-1500);
    descriptors.user = (Integer) Files.getAttribute(directory, "unix:uid");
    descriptors.peerUser = descriptors.user;
    try (IpcChannel channel = channel();
        IpcListener listener = IpcListener.open(descriptors, directory.resolve("socket"))) {
      for (Consumer<Duration> wait :
          List.<Consumer<Duration>>of(
              channel::receiveMessage,
              channel::receiveAllocationHandle,
              channel::receiveBufferDescriptor,
              channel::receivePageHandles,
              channel::receiveEventDescriptor,
              listener::accept)) {
        assertThatThrownBy(() -> wait.accept(negative))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage("timeout: PT-1.5S (expected: >= 0)");
      }
      assertThat(channel.isClosed()).isFalse();
    }
    assertThat(descriptors.asked).isEmpty();
  }

  /** Whatever else is wrong, and also while another receives. */
  @Test
  void negativePatience_isRefused_alsoByAChannelThatIsClosed() {
    IpcChannel channel = channel();
    channel.close();
    assertThatThrownBy(() -> channel.receiveMessage(Duration.ofNanos(-1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("timeout: PT-0.000000001S (expected: >= 0)");
    assertThatThrownBy(() -> channel.receiveMessage(Duration.ofSeconds(Long.MIN_VALUE)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("timeout: PT-");
  }

  @Test
  void channel_saysWhichItIs_andThatItIsClosed() {
    IpcChannel channel = channel();
    assertThat(channel).hasToString("IpcChannel[channel for a test]");
    channel.close();
    assertThat(channel).hasToString("IpcChannel[channel for a test] (closed)");
    for (ThrowingCallable use :
        List.<ThrowingCallable>of(
            () -> channel.send(new byte[1]), () -> channel.receiveMessage(Duration.ZERO))) {
      assertThatThrownBy(use)
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("channel for a test is closed");
    }
    assertThat(descriptors.asked).isEmpty();
    assertThat(descriptors.sent).isEmpty();
  }

  /** Root's directories are as good as the own ones. */
  @Test
  void directoryOfRootOrOfThisUser_isTaken(@TempDir Path directory) throws IOException {
    int owner = (Integer) Files.getAttribute(directory, "unix:uid");
    descriptors.user = owner == 0 ? 4711 : owner;
    IpcListener.open(descriptors, directory.resolve("socket")).close();
    if (owner == 0) {
      Files.setAttribute(directory, "unix:uid", descriptors.user);
      IpcListener.open(descriptors, directory.resolve("socket")).close();
    }
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void directoryThatIsNone_cannotBeLookedAt(@TempDir Path directory) throws IOException {
    Path loop = directory.resolve("loop");
    Files.createSymbolicLink(loop, loop);
    assertThatThrownBy(() -> IpcListener.open(descriptors, loop.resolve("socket")))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("socket cannot be looked at: ");
    assertThat(descriptors.open()).isEmpty();
  }

  /** Some kernels of sandboxes do not say so before. */
  @Test
  void socketThatTakesAConnection_hasAListener(@TempDir Path directory) throws IOException {
    Path path = directory.resolve("socket");
    IpcPeerTest.leaveSocket(path);
    descriptors.user = (Integer) Files.getAttribute(directory, "unix:uid");
    descriptors.connects = true;
    assertThatThrownBy(() -> IpcListener.open(descriptors, path))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("has a listener");
    assertThat(path).exists();
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void pathThatIsTakenAtTheLastMoment_hasAListener_andOtherFailuresStay(@TempDir Path directory)
      throws IOException {
    Path path = directory.resolve("socket");
    descriptors.user = (Integer) Files.getAttribute(directory, "unix:uid");
    descriptors.listening =
        () -> {
          throw new UncheckedIOException(new FileAlreadyExistsException("taken"));
        };
    assertThatThrownBy(() -> IpcListener.open(descriptors, path))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("has a listener")
        .hasRootCauseInstanceOf(FileAlreadyExistsException.class);
    descriptors.listening =
        () -> {
          throw new UncheckedIOException(new IOException("no sockets today"));
        };
    assertThatThrownBy(() -> IpcListener.open(descriptors, path))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("no sockets today");
    assertThat(directory).isEmptyDirectory();
    assertThat(descriptors.open()).isEmpty();
  }

  /** The system gives its number to the next file that is opened. */
  @Test
  void closedSocket_isUsedByNobody_andEndsOnce() {
    for (boolean fails : new boolean[] {false, true}) {
      int number = descriptors.memoryFile("socket", 0);
      OpenSocket socket = new OpenSocket(descriptors, number, "a socket");
      assertThat(socket.<Integer>use(OpenSocket::descriptor)).isEqualTo(number);
      assertThat(socket.<Integer>sliced(Duration.ZERO, _ -> 7)).isEqualTo(7);
      AtomicInteger ended = new AtomicInteger();
      Runnable before =
          () -> {
            ended.incrementAndGet();
            assertThat(socket.isClosed()).isTrue();
            assertThat(descriptors.isOpen(number)).isTrue();
            assertThat(socket.<Integer>use(OpenSocket::descriptor)).isEqualTo(number);
            if (fails) {
              throw new UncheckedIOException(new IOException("on purpose"));
            }
          };
      if (fails) {
        assertThatThrownBy(() -> socket.close(before)).hasMessageContaining("on purpose");
      } else {
        socket.close(before);
      }
      assertThat(descriptors.open()).doesNotContain(number);
      socket.close(before);
      socket.close();
      assertThat(ended).hasValue(1);
      for (ThrowingCallable use :
          List.<ThrowingCallable>of(
              () -> socket.use(OpenSocket::descriptor),
              () -> socket.sliced(Duration.ofDays(1), _ -> ended.incrementAndGet()),
              () -> socket.sliced(Duration.ZERO, _ -> ended.incrementAndGet()))) {
        assertThatThrownBy(use)
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("a socket is closed");
      }
      assertThat(ended).hasValue(1);
    }
  }

  /** Sums with the clock do not overflow, nor does what is no number of nanoseconds. */
  @Test
  void timeoutOfCenturies_isAsGoodAsOneWithoutEnd() {
    long most = Long.MAX_VALUE / 2;
    for (long nanos : new long[] {0, 1, 1_000_000_000, most - 1, most}) {
      assertThat(OpenSocket.nanos(Duration.ofNanos(nanos))).isEqualTo(nanos);
    }
    OpenSocket socket =
        new OpenSocket(descriptors, descriptors.memoryFile("socket", 0), "a socket");
    for (Duration timeout :
        List.of(
            Duration.ofNanos(most + 1),
            Duration.ofNanos(Long.MAX_VALUE),
            Duration.ofNanos(Long.MAX_VALUE).plusNanos(1),
            Duration.ofSeconds(Long.MAX_VALUE, 999_999_999))) {
      assertThat(OpenSocket.nanos(timeout)).as("%s", timeout).isEqualTo(most);
      AtomicInteger asked = new AtomicInteger();
      int given =
          socket.sliced(
              timeout,
              slice -> {
                assertThat(slice).isPositive();
                if (asked.incrementAndGet() < 3) {
                  throw new UncheckedIOException(new SocketTimeoutException("nothing yet"));
                }
                return 7;
              });
      assertThat(given).isEqualTo(7);
    }
    socket.close();
  }

  /** What the other end expects them with. */
  @Test
  void groupOfDescriptors_goesWithTheEntryOfItsFirst() {
    assertThat(IpcFrame.beginOf(0)).isZero();
    for (int group = 1; group < IpcFrame.MOST_PAGES / IpcFrame.MOST_DESCRIPTORS; group++) {
      int before = group * IpcFrame.MOST_DESCRIPTORS;
      List<UUID> uuids = new ArrayList<>(Collections.nCopies(before, null));
      byte[] bytes = new IpcFrame(IpcFrame.Kind.PAGE_HANDLES, uuids, new byte[0]).toBytes();
      assertThat(IpcFrame.beginOf(group)).as("group %d", group).isEqualTo(bytes.length);
    }
  }

  /** That may take long, and a program that is over does not wait for it. */
  @Test
  void threadThatCloses_keepsNoProgramFromItsEnd() throws InterruptedException {
    BlockingQueue<Thread> closing = new LinkedBlockingQueue<>();
    var calls =
        new FakeDescriptors() {
          @Override
          public void close(int descriptor) {
            closing.add(Thread.currentThread());
          }
        };
    Thread own = Thread.ofPlatform().daemon(false).start(() -> Closing.close(calls, 5));
    own.join();
    Thread its = closing.poll(60, TimeUnit.SECONDS);
    assertThat(its).isNotNull().isNotSameAs(own);
    assertThat(its.isDaemon()).isTrue();
  }

  /** As one of a library that is missing: what is left is closed all the same. */
  @Test
  void errorOfAClose_keepsNoDescriptorOpen() {
    List<Integer> closed = Collections.synchronizedList(new ArrayList<>());
    var calls =
        new FakeDescriptors() {
          @Override
          public void close(int descriptor) {
            closed.add(descriptor);
            if (descriptor == 1) {
              throw new LinkageError("close");
            }
          }
        };
    long begun = System.nanoTime();
    Closing.close(calls, new int[] {1, 2, 3, 4}, 3);
    if (System.nanoTime() - begun < 200_000_000) { // else the thread that closes is not waited for
      assertThat(closed).containsExactly(1, 2, 3);
    }
  }
}
