package io.cuvette.ffm.linux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.ffm.FfmDescriptors;
import io.cuvette.ffm.OpenDescriptors;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class UnixSocketsTest {
  private static final int DATAGRAM = 2;

  private final DescriptorCalls calls = new FfmDescriptors();

  private Path folder;
  private Path path;

  @BeforeEach
  void name(@TempDir Path temporary) {
    folder = temporary;
    path = temporary.resolve("socket");
  }

  @Test
  void listener_isOnlyForItsUser_whateverTheUmask() throws Throwable {
    MethodHandle umask =
        NativeAccess.function("umask", FunctionDescriptor.of(Layouts.INT, Layouts.INT));
    int before = (int) umask.invokeExact(0);
    try {
      int listener = calls.listen(path.toString());
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rw-------");
      calls.close(listener);
    } finally {
      int _ = (int) umask.invokeExact(before);
    }
  }

  @Test
  void isBound_asLongAsAProcessHasTheSocket_whichNoticesNothing() throws Exception {
    assertThat(calls.isBound(path.toString())).isFalse();
    int listener = calls.listen(path.toString());
    assertThat(calls.isBound(path.toString())).isTrue();
    assertThatThrownBy(() -> calls.accept(listener, Duration.ZERO))
        .hasCauseInstanceOf(SocketTimeoutException.class);
    calls.close(listener);
    assertThat(path).exists();
    assertThat(calls.isBound(path.toString())).isFalse();
    assertThat(calls.isBound(Files.createFile(folder.resolve("file")).toString())).isFalse();
    String below = folder.resolve("file").resolve("socket").toString();
    assertThatThrownBy(() -> calls.isBound(below))
        .hasMessageContaining("connect(path=" + below + "): Not a directory");
    assertThatThrownBy(() -> calls.isBound("x".repeat(108)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** A socket of another kind has the path as well as one that listens. */
  @Test
  void pathOfASocketForDatagrams_isBound() {
    MemorySegment address = UnixAddress.of(path.toString());
    int socket = Libc.SOCKET.call(UnixAddress.FAMILY, DATAGRAM, 0);
    assertThat(Libc.BIND.call(socket, address, (int) address.byteSize())).isZero();
    assertThat(calls.isBound(path.toString())).isTrue();
    Libc.close(socket);
    assertThat(calls.isBound(path.toString())).isFalse();
  }

  @Test
  void socketThatOthersMayUse_isRefused() throws IOException {
    Path open = Files.createFile(folder.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rw-r--rw-"));
    assertThatThrownBy(() -> UnixSockets.requireOwnerOnly(open))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("permissions rw-r--rw- (expected: rw-------)");
  }

  @Test
  void socketsMadeHere_areNotInheritedByChildren() throws IOException {
    try (SocketPair pair = SocketPair.open(path)) {
      assertThat(OpenDescriptors.isClosedOnExec(pair.listener())).isTrue();
      assertThat(OpenDescriptors.isClosedOnExec(pair.client())).isTrue();
      assertThat(OpenDescriptors.isClosedOnExec(pair.server())).isTrue();
    }
  }

  @Test
  void peers_areTheUserOfThisProcess() {
    try (SocketPair pair = SocketPair.open(path)) {
      assertThat(calls.peerUser(pair.client())).isEqualTo(calls.user());
      assertThat(calls.peerUser(pair.server())).isEqualTo(calls.user());
    }
  }

  /** The system changes the user of one thread where the C library is passed by. */
  private static boolean becomeUser(int user) {
    long number = System.getProperty("os.arch", "").equals("aarch64") ? 147 : 117; // setresuid
    return Libc.SYSCALL.call(number, -1, user, -1, 0L, 0L) == 0;
  }

  /** What another user makes; -1 if this one cannot be it, or it may not. */
  private static int asUser(int user, IntSupplier body) {
    if (!becomeUser(user)) {
      return -1;
    }
    try {
      return body.getAsInt();
    } catch (UncheckedIOException e) {
      return -1;
    } finally {
      boolean _ = becomeUser(0);
    }
  }

  @Test
  void peer_isTheUserThatListened_orThatConnected() throws Exception {
    assumeTrue(calls.user() == 0, "only root becomes another user");
    SocketPair.open(folder.resolve("first")).close(); // another user may not read classes
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
    Path open = folder.resolve("open");
    int own = calls.listen(open.toString());
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    FutureTask<int[]> others =
        new FutureTask<>(() ->
            new int[] {
              asUser(4711, () -> calls.listen(path.toString())),
              asUser(4712, () -> calls.connect(open.toString(), SocketPair.LONG))
            });
    Thread.ofPlatform().start(others);
    int listener = others.get()[0];
    int client = others.get()[1];
    assumeTrue(listener >= 0 && client >= 0, "another user may not use the folder");
    int server = calls.accept(own, SocketPair.LONG);
    int connected = calls.connect(path.toString(), SocketPair.LONG);
    assertThat(calls.peerUser(connected)).isEqualTo(4711);
    assertThat(calls.peerUser(server)).isEqualTo(4712);
    assertThat(calls.peerUser(client)).isZero();
    List.of(own, listener, client, server, connected).forEach(calls::close);
  }

  @Test
  void peerOfWhatIsNotConnected_isAnError() {
    int file = calls.memoryFile("no socket", 1);
    assertThatThrownBy(() -> calls.peerUser(file))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessage(
            "getsockopt(socket=%d, SO_PEERCRED): Socket operation on non-socket (errno 88)"
                .formatted(file));
    calls.close(file);
    int alone = Libc.SOCKET.call(UnixAddress.FAMILY, 1, 0);
    assertThatThrownBy(() -> calls.peerUser(alone))
        .hasMessageEndingWith("Transport endpoint is not connected (errno 107)");
    calls.close(alone);
  }

  @Test
  void listen_whereSomethingIs_isRefusedAndLeavesIt() throws Exception {
    Files.writeString(path, "precious");
    OpenDescriptors.assertKept(() ->
        assertThatThrownBy(() -> calls.listen(path.toString()))
            .isInstanceOf(UncheckedIOException.class)
            .hasCauseInstanceOf(FileAlreadyExistsException.class)
            .hasMessageContaining("Address already in use (errno 98); a socket needs a new path"));
    assertThat(path).hasContent("precious");
  }

  @Test
  void listen_whereThereIsNoFolder_isRefused() throws Exception {
    Path nowhere = folder.resolve("none/socket");
    OpenDescriptors.assertKept(() ->
        assertThatThrownBy(() -> calls.listen(nowhere.toString()))
            .isInstanceOf(UncheckedIOException.class)
            .hasMessage("listen(path=" + nowhere + "): No such file or directory (errno 2)"));
  }

  @Test
  void longestPath_works() {
    String longest = path + "x".repeat(UnixAddress.LONGEST_PATH - path.toString().length());
    try (SocketPair pair = SocketPair.open(Path.of(longest))) {
      assertThat(Path.of(longest)).exists();
      assertThat(calls.peerUser(pair.client())).isEqualTo(calls.user());
    }
  }

  @Test
  void pathsThatAreNone_areRefused() {
    assertRefused("/" + "x".repeat(107), "108 bytes in UTF-8 (expected: 1 to 107)");
    assertRefused("/" + "\u00fc".repeat(60), "121 bytes in UTF-8 (expected: 1 to 107)");
    assertRefused("", "0 bytes in UTF-8 (expected: 1 to 107)");
    assertRefused("\0hidden", "a character 0 at 0 (expected: none)");
    assertRefused("/x\0y", "a character 0 at 2 (expected: none)");
    assertRefused("/x\ud800", "(expected: text that UTF-8 can write)");
  }

  private void assertRefused(String wrong, String reason) {
    assertThatThrownBy(() -> calls.listen(wrong))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageEndingWith(reason);
    assertThatThrownBy(() -> calls.connect(wrong, Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageEndingWith(reason);
  }

  @Test
  void connect_whereNobodyListens_isRefused() throws Exception {
    OpenDescriptors.assertKept(() ->
        assertThatThrownBy(() -> calls.connect(path.toString(), SocketPair.LONG))
            .isInstanceOf(UncheckedIOException.class)
            .hasCauseInstanceOf(NoSuchFileException.class)
            .hasMessageContaining("connect(path=" + path + "): No such file or directory"));
    calls.close(calls.listen(path.toString()));
    OpenDescriptors.assertKept(() ->
        assertThatThrownBy(() -> calls.connect(path.toString(), SocketPair.LONG))
            .hasCauseInstanceOf(ConnectException.class)
            .hasMessage("connect(path=" + path + "): Connection refused (errno 111)"));
  }

  @Test
  void accept_timesOut() {
    int listener = calls.listen(path.toString());
    for (Duration timeout : List.of(Duration.ZERO, Duration.ofNanos(1), Duration.ofMillis(3))) {
      assertThatThrownBy(() -> calls.accept(listener, timeout))
          .isInstanceOf(UncheckedIOException.class)
          .hasCauseInstanceOf(SocketTimeoutException.class)
          .hasMessage("accept(listener=%d): timed out after %s".formatted(listener, timeout));
    }
    calls.close(listener);
  }

  @Test
  void acceptOfNoTime_takesWhoIsThere() {
    int listener = calls.listen(path.toString());
    int client = calls.connect(path.toString(), Duration.ZERO);
    int server = calls.accept(listener, Duration.ZERO);
    List.of(listener, client, server).forEach(calls::close);
  }

  @Test
  void timeouts_areAnyTimeButNegative() {
    int listener = calls.listen(path.toString());
    assertThatThrownBy(() -> calls.accept(listener, Duration.ofNanos(-1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("timeout: PT-0.000000001S (expected: >= 0)");
    assertThatThrownBy(() -> calls.connect(path.toString(), Duration.ofSeconds(-1)))
        .isInstanceOf(IllegalArgumentException.class);
    Duration longest = Duration.ofSeconds(Long.MAX_VALUE, 999_999_999);
    int client = calls.connect(path.toString(), longest);
    int server = calls.accept(listener, longest);
    List.of(listener, client, server).forEach(calls::close);
  }

  @Test
  void closedListener_isAnError() {
    int listener = calls.listen(path.toString());
    calls.close(listener);
    assertThatThrownBy(() -> calls.accept(listener, SocketPair.LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageEndingWith("Bad file descriptor (errno 9)");
  }

  @Test
  void acceptOfWhatDoesNotListen_isAnError() {
    int file = calls.memoryFile("no socket", 1);
    assertThatThrownBy(() -> calls.accept(file, SocketPair.LONG))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageEndingWith("Socket operation on non-socket (errno 88)");
    calls.close(file);
  }

  /** The system has room for some that nobody accepted yet; the next one waits. */
  @Test
  void connect_waitsWhileTheListenerIsFull() throws Exception {
    int listener = calls.listen(path.toString());
    List<Integer> clients = new ArrayList<>();
    assertThatThrownBy(
            () -> {
              while (true) {
                clients.add(calls.connect(path.toString(), Duration.ZERO));
              }
            })
        .hasCauseInstanceOf(SocketTimeoutException.class);
    assertThat(clients).isNotEmpty();
    OpenDescriptors.assertKept(() ->
        assertThatThrownBy(() -> calls.connect(path.toString(), Duration.ofMillis(5)))
            .hasCauseInstanceOf(SocketTimeoutException.class));

    FutureTask<Integer> waiting =
        new FutureTask<>(() -> calls.connect(path.toString(), SocketPair.LONG));
    Thread.ofPlatform().start(waiting);
    clients.add(calls.accept(listener, SocketPair.LONG));
    clients.add(waiting.get());
    clients.forEach(calls::close);
    calls.close(listener);
  }

  @Test
  void interrupt_endsEveryWait() throws Exception {
    int listener = calls.listen(path.toString());
    FutureTask<String> waiting =
        new FutureTask<>(() -> interrupted(() -> calls.accept(listener, SocketPair.LONG)));
    Thread thread = Thread.ofPlatform().start(waiting);
    thread.interrupt();
    assertThat(waiting.get()).isEqualTo("accept(listener=%d): the thread is interrupted", listener);
    calls.close(listener);
  }

  @Test
  void threadInterruptedBefore_doesNotWaitAtAll() {
    int listener = calls.listen(path.toString());
    int client = calls.connect(path.toString(), Duration.ZERO);
    Thread.currentThread().interrupt();
    assertThat(interrupted(() -> calls.accept(listener, SocketPair.LONG))).contains("accept");
    List.of(listener, client).forEach(calls::close);
  }

  /** What cannot be waited for is asked for again and again, until then. */
  @Test
  void threadInterruptedBefore_doesNotTryAgain() {
    String lock = path.resolveSibling("lock").toString();
    int held = calls.lock(lock, Duration.ZERO);
    Thread.currentThread().interrupt();
    assertThat(interrupted(() -> calls.lock(lock, SocketPair.LONG)))
        .isEqualTo("lock(path=" + lock + "): the thread is interrupted");
    calls.close(held);
  }

  /** The message; the thread is not interrupted any more. */
  private static String interrupted(Runnable call) {
    try {
      call.run();
    } catch (UncheckedIOException e) {
      assertThat(e.getCause()).isExactlyInstanceOf(InterruptedIOException.class);
      assertThat(Thread.interrupted()).isTrue();
      return e.getMessage();
    }
    throw new AssertionError("did not fail");
  }
}
