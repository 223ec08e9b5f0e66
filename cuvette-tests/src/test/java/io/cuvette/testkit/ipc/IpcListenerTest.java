package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.support.PeerCommand;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
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

/** The file of a listener, and who gets at it. */
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class IpcListenerTest {
  private static final Duration LONG = Duration.ofSeconds(40);

  @TempDir Path directory;

  private final DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
  private Path path;
  private long before;

  @BeforeEach
  void count() {
    path = directory.resolve("socket");
    before = OpenFiles.count();
  }

  @AfterEach
  void nothingStaysOpen() {
    assertThat(OpenFiles.count()).as("descriptors").isLessThanOrEqualTo(before);
  }

  @Test
  void socket_isTheOwnersAlone_andGoneAfterClose() throws IOException {
    IpcListener closed;
    try (IpcListener listener = IpcListener.open(path)) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rw-------");
      assertThat(listener.path()).isEqualTo(path);
      closed = listener;
    }
    assertThat(closed.isClosed()).isTrue();
    assertThat(path).doesNotExist();
  }

  @Test
  void listenerThatIsClosedAgain_leavesTheSocketOfTheNextAlone() {
    IpcListener first = IpcListener.open(path);
    first.close();
    try (IpcListener second = IpcListener.open(path)) {
      first.close();
      assertThat(path).exists();
      try (IpcChannel client = IpcChannel.connect(path, LONG);
          IpcChannel server = second.accept(LONG)) {
        client.send(new byte[] {1});
        assertThat(server.receiveMessage(LONG).bytes()).containsExactly(1);
      }
    }
    assertThat(path).doesNotExist();
  }

  @Test
  void socketOfAProcessThatIsGone_isReplaced() {
    calls.close(calls.listen(path.toString()));
    assertThat(path).exists();
    try (IpcListener listener = IpcListener.open(path);
        IpcChannel client = IpcChannel.connect(path, LONG);
        IpcChannel server = listener.accept(LONG)) {
      client.send(new byte[] {1});
      assertThat(server.receiveMessage(LONG).bytes()).containsExactly(1);
    }
  }

  @Test
  void socketThatSomebodyListensAt_isLeftAlone() {
    try (IpcListener first = IpcListener.open(path)) {
      assertThatThrownBy(() -> IpcListener.open(path))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(path.toString());
      try (IpcChannel client = IpcChannel.connect(path, LONG);
          IpcChannel server = first.accept(LONG)) { // nobody disturbed the first
        server.send(new byte[0]);
        client.receiveMessage(LONG).close();
      }
    }
  }

  @Test
  void socketWithoutRoomForOneMore_isListenedAt() {
    List<IpcChannel> waiting = new ArrayList<>();
    try (IpcListener _ = IpcListener.open(path)) {
      assertThatThrownBy(
              () -> {
                for (int i = 0; i < 10_000; i++) {
                  waiting.add(IpcChannel.connect(path, Duration.ZERO));
                }
              })
          .hasCauseInstanceOf(SocketTimeoutException.class);
      assertThatThrownBy(() -> IpcListener.open(path))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(path + " has a listener");
    } finally {
      waiting.forEach(IpcChannel::close);
    }
  }

  /** What will not change by waiting: even an interrupt is not looked at before. */
  @Test
  void pathWithAFileForAFolder_isNotWaitedFor() throws IOException {
    Path file = Files.writeString(directory.resolve("file"), "mine");
    Thread.currentThread().interrupt();
    try {
      assertThatThrownBy(() -> IpcChannel.connect(file.resolve("socket"), LONG))
          .isInstanceOf(UncheckedIOException.class)
          .cause()
          .isNotInstanceOf(InterruptedIOException.class);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void fileThatIsNoSocket_isNeverDeleted() throws IOException {
    Files.writeString(path, "mine");
    assertThatThrownBy(() -> IpcListener.open(path))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(path.toString());
    assertThat(path).hasContent("mine");
    Path link = directory.resolve("link");
    calls.close(calls.listen(directory.resolve("stale").toString()));
    Files.createSymbolicLink(link, directory.resolve("stale"));
    assertThatThrownBy(() -> IpcListener.open(link)).isInstanceOf(IllegalArgumentException.class);
    assertThat(link).isSymbolicLink();
    try (IpcListener _ = IpcListener.open(directory.resolve("stale"))) {
      assertThatThrownBy(() -> IpcListener.open(link)).isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> IpcListener.open(link)).isInstanceOf(IllegalArgumentException.class);
    assertThat(link).isSymbolicLink();
    assertThatThrownBy(() -> IpcListener.open(directory))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** It would be deleted with the lock. */
  @Test
  void whatIsInThePlaceOfTheLock_isLeft_andWaitedForByNobody() throws Exception {
    Path lock = directory.resolve(".socket.cuvette-lock");
    assertThat(new ProcessBuilder("mkfifo", lock.toString()).start().waitFor()).isZero();
    assertThatThrownBy(() -> IpcListener.open(path))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(lock.toString());
    assertThat(lock).exists();
    assertThat(path).doesNotExist();
  }

  @Test
  void directoryThatEverybodyCanWrite_isRefused_unlessItIsSticky() throws IOException {
    Files.setAttribute(directory, "unix:mode", 0777);
    assertThatThrownBy(() -> IpcListener.open(path))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("path: %s is in a directory with the mode 0777, where", path);
    assertThat(directory).isEmptyDirectory();
    Files.setAttribute(directory, "unix:mode", 01777);
    IpcListener.open(path).close();
  }

  /** Its number would be that of every other user that has none there. */
  @Test
  void userWithoutANumberInItsNamespace_isRefused() throws Exception {
    List<String> command = new ArrayList<>(List.of("unshare", "--user"));
    assumeTrue(canRun("unshare", "--user", "true"), "no user namespaces");
    command.addAll(PeerCommand.of(WithoutNumber.class));
    command.add(path.toString());
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(printed).isZero();
    assertThat(printed)
        .contains("SecurityException: user: 65534 stands for all users without a number");
  }

  private static boolean canRun(String... command) throws InterruptedException {
    try {
      return new ProcessBuilder(command).start().waitFor() == 0;
    } catch (IOException e) {
      return false;
    }
  }

  /** Prints what listening and connecting is refused with. Stateless. */
  static final class WithoutNumber {
    private WithoutNumber() {}

    public static void main(String[] args) {
      Path path = Path.of(args[0]);
      DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
      List<Runnable> all =
          List.of(
              () -> IpcListener.open(path).close(), () -> IpcChannel.connect(path, LONG).close());
      int listening = calls.listen(path.toString());
      for (Runnable each : all) {
        try {
          each.run();
          throw new AssertionError("not refused");
        } catch (SecurityException e) {
          System.out.println(e);
        }
      }
      calls.close(listening);
    }
  }

  @Test
  void directoryThatIsNotThere_isAnError() {
    assertThatThrownBy(() -> IpcListener.open(directory.resolve("no").resolve("socket")))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageEndingWith("is in a directory that does not exist")
        .hasCauseInstanceOf(NoSuchFileException.class);
  }

  @Test
  void negativeTimeout_isRefusedWithItsValue() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> IpcChannel.connect(path, Duration.ofMillis(-1500)))
        .withMessage("timeout: PT-1.5S (expected: >= 0)");
  }

  @Test
  void fileThatTookTheSocketsPlace_survivesClose() throws IOException {
    try (IpcListener _ = IpcListener.open(path)) {
      Files.delete(path);
      Files.writeString(path, "mine");
    }
    assertThat(path).hasContent("mine");
  }

  @Test
  void accept_timesOut_andEndsWhenClosed() throws Exception {
    IpcListener listener = IpcListener.open(path);
    try (listener;
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      assertThatThrownBy(() -> listener.accept(Duration.ofMillis(50)))
          .isInstanceOf(UncheckedIOException.class)
          .hasCauseInstanceOf(SocketTimeoutException.class);
      Future<IpcChannel> waiting = threads.submit(() -> listener.accept(LONG));
      listener.close();
      assertThatThrownBy(() -> waiting.get(40, TimeUnit.SECONDS))
          .cause()
          .isInstanceOf(IllegalStateException.class);
    }
    assertThatThrownBy(() -> listener.accept(LONG)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void moreVirtualThreadsThanCarriersWait_andTheOneTheyWaitForRuns() throws Exception {
    int many = 4 * Runtime.getRuntime().availableProcessors();
    List<IpcChannel> clients = new ArrayList<>();
    List<IpcChannel> servers = new ArrayList<>();
    try (IpcListener listener = IpcListener.open(path);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < many; i++) {
        clients.add(IpcChannel.connect(path, LONG));
        servers.add(listener.accept(LONG));
      }
      List<Future<Integer>> receiving = new ArrayList<>();
      for (IpcChannel server : servers) {
        receiving.add(threads.submit(() -> server.receiveMessage(LONG).bytes().length));
      }
      byte[] longerThanASocketHolds = new byte[1 << 20];
      Future<?> sending =
          threads.submit(() -> clients.forEach(client -> client.send(longerThanASocketHolds)));
      for (Future<Integer> each : receiving) {
        assertThat(each.get()).isEqualTo(1 << 20);
      }
      sending.get();
    } finally {
      clients.forEach(IpcChannel::close);
      servers.forEach(IpcChannel::close);
    }
  }

  @Test
  void connect_waitsForAListener() throws Exception {
    assertThatThrownBy(() -> IpcChannel.connect(path, Duration.ofMillis(50)))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageStartingWith("path: %s has no listener after PT0.05S (expected: ", path)
        .hasMessageContaining("wait longer")
        .hasCauseInstanceOf(NoSuchFileException.class);
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<IpcChannel> connecting = threads.submit(() -> IpcChannel.connect(path, LONG));
      try (IpcListener listener = IpcListener.open(path);
          IpcChannel server = listener.accept(LONG);
          IpcChannel client = connecting.get(40, TimeUnit.SECONDS)) {
        assertThat(client.isClosed()).isFalse();
        assertThat(server.isClosed()).isFalse();
      }
    }
  }

  /** The socket of a process that ended is no listener yet, and one may come. */
  @Test
  void connect_waitsAlsoWhereASocketWasLeft() throws Exception {
    calls.close(calls.listen(path.toString()));
    assertThatThrownBy(() -> IpcChannel.connect(path, Duration.ZERO))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(ConnectException.class);
    CompletableFuture<IpcChannel> connected = new CompletableFuture<>();
    Thread connecting =
        Thread.ofPlatform()
            .start(() -> {
              try {
                connected.complete(IpcChannel.connect(path, LONG));
              } catch (RuntimeException e) {
                connected.completeExceptionally(e);
              }
            });
    while (connecting.getState() != Thread.State.TIMED_WAITING && !connected.isDone()) {
      Thread.onSpinWait(); // until it has tried once
    }
    assertThat(connected).isNotDone();
    try (IpcListener listener = IpcListener.open(path);
        IpcChannel server = listener.accept(LONG);
        IpcChannel client = connected.get(40, TimeUnit.SECONDS)) {
      client.send(new byte[] {7});
      assertThat(server.receiveMessage(LONG).bytes()).containsExactly(7);
    }
  }

  @Test
  void pathTooLongForASocket_isRefused() {
    for (int length : new int[] {120, 255, 300}) {
      Path tooLong = directory.resolve("x".repeat(length));
      assertThatThrownBy(() -> IpcListener.open(tooLong))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> IpcChannel.connect(tooLong, Duration.ZERO))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThat(directory).isEmptyDirectory();
  }
}
