package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.internal.channel.PoolHandle;
import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who may be at the other end of a channel. */
class IpcPeerTest {
  private final FakeDescriptors descriptors = new FakeDescriptors();

  @Test
  void processOfAnotherUser_isDisconnected() {
    int socket = descriptors.memoryFile("socket", 0);
    for (int stranger : new int[] {0, 1001, -1}) {
      descriptors.open().add(socket);
      descriptors.peerUser = stranger;
      assertThatThrownBy(() -> IpcChannel.of(descriptors, socket, "for a test"))
          .isInstanceOf(SecurityException.class)
          .hasMessageContaining(Integer.toString(stranger))
          .hasMessageContaining(Integer.toString(FakeDescriptors.USER));
      assertThat(descriptors.open()).isEmpty();
    }
  }

  @Test
  void processOfThisUser_isAChannel() {
    int socket = descriptors.memoryFile("socket", 0);
    IpcChannel channel = IpcChannel.of(descriptors, socket, "for a test");
    assertThat(channel.isClosed()).isFalse();
    channel.close();
    channel.close();
    assertThat(channel.isClosed()).isTrue();
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void sendThatFails_closesTheDuplicatesAndTheChannel() {
    int socket = descriptors.memoryFile("socket", 0);
    IpcChannel channel = IpcChannel.of(descriptors, socket, "for a test");
    try (AllocationHandle handle =
        new AllocationHandle(
            new PoolHandle(descriptors, descriptors.memoryFile("pool", 0), new UUID(0, 1)))) {
      assertThatThrownBy(() -> channel.send(handle))
          .isInstanceOf(UnsupportedOperationException.class);
      assertThat(descriptors.open()).containsExactly(handle.descriptor());
      assertThat(channel.isClosed()).isTrue();
      assertThatThrownBy(() -> channel.send(handle))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("in the middle of a message");
    }
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void bytesThatWereTakenAndLost_closeTheChannel() {
    int socket = descriptors.memoryFile("socket", 0);
    IpcChannel channel = IpcChannel.of(descriptors, socket, "for a test");
    descriptors.failure = () -> new UncheckedIOException(new SocketTimeoutException("a test"));
    assertThatThrownBy(() -> channel.receiveMessage(Duration.ZERO))
        .hasCauseInstanceOf(SocketTimeoutException.class);
    assertThat(channel.isClosed()).isFalse();
    descriptors.failure = () -> new UncheckedIOException(new IOException("descriptors are lost"));
    assertThatThrownBy(() -> channel.receiveMessage(Duration.ZERO))
        .hasMessageContaining("descriptors are lost");
    assertThat(channel.isClosed()).isTrue();
    assertThat(descriptors.open()).isEmpty();
  }

  @Test
  void receiverBehindAnother_waitsNoLongerThanItSaid() throws Exception {
    int socket = descriptors.memoryFile("socket", 0);
    IpcChannel channel = IpcChannel.of(descriptors, socket, "for a test");
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    descriptors.failure =
        () -> {
          inside.countDown();
          try {
            assertThat(end.await(40, TimeUnit.SECONDS)).as("the second did not wait").isTrue();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
          return new UncheckedIOException(new EOFException("the first"));
        };
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<?> first = threads.submit(() -> channel.receiveMessage(Duration.ofDays(1)));
      inside.await();
      for (Duration patience : List.of(Duration.ZERO, Duration.ofMillis(5))) {
        assertThatThrownBy(() -> channel.receiveMessage(patience))
            .hasCauseInstanceOf(SocketTimeoutException.class)
            .hasMessageContaining(patience.toString());
      }
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> channel.receiveMessage(Duration.ofDays(1)))
          .hasCauseInstanceOf(InterruptedIOException.class)
          .hasRootCauseInstanceOf(InterruptedException.class);
      assertThat(Thread.interrupted()).isTrue();
      end.countDown();
      assertThatThrownBy(first::get).rootCause().isInstanceOf(EOFException.class);
    }
    channel.close();
  }

  @Test
  void socketThatIsReplacedWhileItIsLookedAt_isNotDeleted(@TempDir Path directory)
      throws IOException {
    Path path = directory.resolve("socket");
    leaveSocket(path);
    descriptors.user = (Integer) Files.getAttribute(directory, "unix:uid");
    descriptors.failure =
        () -> {
          try {

            Files.delete(path);
            Files.writeString(path, "another's");
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
          return new UncheckedIOException(new ConnectException("nobody listened at the old one"));
        };
    assertThatThrownBy(() -> IpcListener.open(descriptors, path))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("has a listener");
    assertThat(path).hasContent("another's");
    assertThat(directory.toFile().list()).containsExactly("socket");
    assertThat(descriptors.open()).isEmpty();
  }

  /** It has more that wait than it has room for. */
  @Test
  void listenerThatIsBusy_listens(@TempDir Path directory) throws IOException {
    Path path = directory.resolve("socket");
    leaveSocket(path);
    descriptors.user = (Integer) Files.getAttribute(directory, "unix:uid");
    descriptors.failure = () -> new UncheckedIOException(new SocketTimeoutException("busy"));
    assertThatThrownBy(() -> IpcListener.open(descriptors, path))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("has a listener");
    assertThat(path).exists();
    descriptors.failure = () -> new UncheckedIOException(new IOException("something else"));
    assertThatThrownBy(() -> IpcListener.open(descriptors, path)).hasMessageContaining("something");
    assertThat(path).exists();
    assertThat(descriptors.open()).isEmpty();
  }

  /** Whom the files belong to, other than the user that this process is said to be. */
  private int another(Path directory) throws IOException {
    int user = (Integer) Files.getAttribute(directory, "unix:uid");
    descriptors.user = user == 0 ? 0 : user + 1;
    return user == 0 ? 4711 : user;
  }

  private static void giveTo(int user, Path file) throws IOException {
    Files.setAttribute(file, "unix:uid", user); // as root; else it is so already
  }

  @Test
  void directoryOfAnotherUser_isRefused(@TempDir Path directory) throws IOException {
    int another = another(directory);
    giveTo(another, directory);
    assertThatThrownBy(() -> IpcListener.open(descriptors, directory.resolve("socket")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("directory of user " + another)
        .hasMessageContaining("expected: one of user " + descriptors.user);
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void socketOfAnotherUser_isRefused_andLeftAlone(@TempDir Path directory) throws IOException {
    Path path = directory.resolve("socket");
    leaveSocket(path);
    int user = (Integer) Files.getAttribute(directory, "unix:uid");
    int another = another(directory);
    giveTo(another, path);
    assumeTrue(user == 0, "the directory would be refused first");
    assertThatThrownBy(() -> IpcListener.open(descriptors, path))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("file of user " + another);
    assertThat(directory.toFile().list()).containsExactly("socket");
  }

  static void leaveSocket(Path path) throws IOException {
    try (var socket = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      socket.bind(UnixDomainSocketAddress.of(path));
    }
    assertThat(path).exists();
  }
}
