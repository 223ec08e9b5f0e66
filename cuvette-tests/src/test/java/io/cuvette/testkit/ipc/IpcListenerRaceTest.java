package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Peer;
import io.cuvette.testkit.support.PeerJvm;
import io.cuvette.testkit.support.PeerProgram;
import io.cuvette.testkit.support.Peers;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Of all listeners that want one path, one has it, and nothing but its socket is there. */
@EnabledOnOs(OS.LINUX)
@Timeout(180)
@ExtendWith(Peers.Extension.class)
class IpcListenerRaceTest {
  private static final DescriptorCalls CALLS = DescriptorCalls.find().orElseThrow();
  private static final Duration LONG = Duration.ofSeconds(40);
  private static final int ROUNDS = 400;
  private static final int RACERS = 5;
  private static final long LOOKS_APART_NANOS = 1_000_000;

  @TempDir Path directory;

  private String[] files() {
    return directory.toFile().list();
  }

  private static void leaveSocket(Path path) {
    CALLS.close(CALLS.listen(path.toString()));
  }

  /** The listener, or null if another has the path. */
  private static IpcListener tryOpen(Path path) {
    try {
      return IpcListener.open(path);
    } catch (IllegalStateException e) {
      assertThat(e)
          .hasMessage(
              "path: %s has a listener (expected: a path where nobody listens)".formatted(path));
      return null;
    }
  }

  /** One of them has the path if somebody who connects there is with it. */
  private static void assertOwns(IpcListener listener) {
    try (IpcChannel client = IpcChannel.connect(listener.path(), Duration.ZERO);
        IpcChannel server = listener.accept(Duration.ZERO)) {
      client.send(new byte[] {42});
      assertThat(server.receiveMessage(LONG).bytes()).as("the first to be accepted").contains(42);
    }
  }

  @Test
  void ofThreadsThatRaceForAStaleSocket_oneHasIt() throws Exception {
    CyclicBarrier together = new CyclicBarrier(RACERS);
    Path path = directory.resolve("socket");
    try (ExecutorService threads = Executors.newFixedThreadPool(RACERS)) {
      for (int round = 0; round < ROUNDS; round++) {
        if (round % 4 > 0) {
          leaveSocket(path);
        }
        List<Future<IpcListener>> racers = new ArrayList<>();
        for (int i = 0; i < RACERS; i++) {
          racers.add(
              threads.submit(() -> {
                together.await();
                return tryOpen(path);
              }));
        }
        List<IpcListener> winners = new ArrayList<>();
        for (Future<IpcListener> racer : racers) {
          IpcListener listener = racer.get();
          if (listener != null) {
            winners.add(listener);
          }
        }
        assertThat(winners).as("round %d", round).hasSize(1);
        assertThat(files()).containsExactly("socket");
        assertOwns(winners.getFirst());
        winners.getFirst().close();
        assertThat(files()).isEmpty();
      }
    }
  }

  @Test
  void whileListenersComeAndGo_oneAtATimeHasThePath_andAllFilesAreTheOwnersAlone()
      throws Exception {
    Path path = directory.resolve("socket");
    AtomicInteger owners = new AtomicInteger();
    AtomicInteger opened = new AtomicInteger();
    AtomicBoolean end = new AtomicBoolean();
    Queue<String> permissions = new ConcurrentLinkedQueue<>();
    try (ExecutorService watcher = Executors.newSingleThreadExecutor()) {
      Future<?> watching = watcher.submit(() -> watch(end, permissions));
      try {
        awaitWatcher(path, permissions);
        Together.run(
            RACERS,
            400,
            () -> {
              IpcListener listener = tryOpen(path);
              if (listener != null) {
                opened.incrementAndGet();
                assertThat(owners.incrementAndGet()).isEqualTo(1);
                assertOwns(listener);
                owners.decrementAndGet();
                listener.close();
              }
            });
      } finally {
        end.set(true);
      }
      watching.get();
    }
    assertThat(opened.get()).isPositive();
    assertThat(permissions).isNotEmpty().containsOnly("rw-------");
    assertThat(files()).isEmpty();
  }

  /** Returns when the watcher has seen a file: it may begin late. */
  private static void awaitWatcher(Path path, Queue<String> permissions) {
    try (IpcListener _ = IpcListener.open(path)) {
      while (permissions.isEmpty()) {
        assertThat(Thread.currentThread().isInterrupted()).as("out of time").isFalse();
        LockSupport.parkNanos(LOOKS_APART_NANOS);
      }
    }
  }

  private void watch(AtomicBoolean end, Queue<String> permissions) {
    while (!end.get()) {
      try (Stream<Path> files = Files.list(directory)) {
        for (Path file : files.toList()) {
          permissions.add(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
        }
      } catch (IOException e) {
        // it is gone already
      }
    }
  }

  /** Opens at the path it is told at the time it is told, and says who it is until it is to end. */
  static final class Racer implements PeerProgram {
    @Override
    public void run(Peer peer) throws Exception {
      for (String line = peer.hear(); !line.equals("end"); line = peer.hear()) {
        String[] at = line.split(" ", 2);
        IpcListener listener = openAt(Long.parseLong(at[0]), Path.of(at[1]));
        peer.say(listener == null ? "taken" : "mine");
        if (peer.hear().equals("check") && listener != null) {
          assertOwns(listener);
        }
        if (listener != null) {
          listener.close();
        }
        peer.say("closed");
      }
    }
  }

  private static IpcListener openAt(long millis, Path path) {
    while (System.currentTimeMillis() < millis) {
      Thread.onSpinWait();
    }
    return tryOpen(path);
  }

  @CudaTest(simulatedOnly = true)
  void ofProcessesThatRaceForAStaleSocket_oneHasIt(Subject subject, Peers jvms) {
    Path path = directory.resolve("socket");
    try (PeerJvm first = jvms.start(subject).run(Racer.class);
        PeerJvm second = jvms.start(subject).run(Racer.class);
        PeerJvm third = jvms.start(subject).run(Racer.class)) {
      List<PeerJvm> all = List.of(first, second, third);
      for (int round = 0; round < 40; round++) {
        if (round % 4 > 0) {
          leaveSocket(path);
        }
        long start = System.currentTimeMillis() + 10;
        all.forEach(jvm -> jvm.say(start + " " + path));
        IpcListener own = openAt(start, path);
        List<String> answers = new ArrayList<>(all.stream().map(PeerJvm::hear).toList());
        answers.add(own == null ? "taken" : "mine");
        assertThat(answers).containsExactlyInAnyOrder("mine", "taken", "taken", "taken");
        assertThat(files()).containsExactly("socket");
        all.forEach(jvm -> jvm.say("check"));
        if (own != null) {
          assertOwns(own);
          own.close();
        }
        assertThat(all.stream().map(PeerJvm::hear)).containsOnly("closed");
        assertThat(files()).isEmpty();
      }
      all.forEach(jvm -> jvm.say("end"));
      all.forEach(PeerJvm::finish);
    }
  }

  @CudaTest(simulatedOnly = true)
  void socketOfAKilledProcess_isTakenOver_andThatOfALiveOneIsNot(Subject subject, Peers jvms) {
    Path path = directory.resolve("socket");
    try (PeerJvm jvm = jvms.start(subject).run(Racer.class)) {
      jvm.say("0 " + path);
      assertThat(jvm.hear()).isEqualTo("mine");
      for (int i = 0; i < 20; i++) {
        assertThat(tryOpen(path)).isNull();
      }
      jvm.say("check"); // its first connection is its own: nobody disturbed it
      assertThat(jvm.hear()).isEqualTo("closed");
      jvm.say("0 " + path);
      assertThat(jvm.hear()).isEqualTo("mine");
      jvm.kill();
    }
    assertThat(files()).as("left behind").containsExactly("socket");
    assertThatThrownBy(() -> IpcChannel.connect(path, Duration.ZERO))
        .isInstanceOf(UncheckedIOException.class)
        .hasCauseInstanceOf(ConnectException.class);
    try (IpcListener listener = IpcListener.open(path)) {
      assertOwns(listener);
      assertThat(files()).containsExactly("socket");
    }
    assertThat(files()).isEmpty();
  }

  /** Nobody answers there yet, but the process lives. */
  @Test
  void socketThatIsNotListenedAtYet_isLeftAlone() throws IOException {
    Path path = directory.resolve("socket");
    try (SocketChannel theirs = SocketChannel.open(StandardProtocolFamily.UNIX)) {
      theirs.bind(UnixDomainSocketAddress.of(path));
      assertThatThrownBy(() -> IpcChannel.connect(path, Duration.ZERO))
          .hasCauseInstanceOf(ConnectException.class);
      assertThat(tryOpen(path)).isNull();
    }
    assertThat(files()).containsExactly("socket");
    try (IpcListener listener = IpcListener.open(path)) {
      assertOwns(listener);
    }
  }

  /** Another program's, of which this one knows nothing. */
  @Test
  void socketOfAnotherKind_isLeftAlone() throws IOException {
    Path path = directory.resolve("socket");
    try (ServerSocketChannel theirs = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      theirs.bind(UnixDomainSocketAddress.of(path));
      assertThat(tryOpen(path)).isNull();
      theirs.configureBlocking(false);
      assertThat(theirs.accept()).as("who came to look").isNull();
    }
    assertThat(files()).containsExactly("socket");
  }

  /** As a process leaves it that is killed while it makes its socket. */
  @Test
  void lockLeftBehind_locksNobodyOut_andGoes() throws IOException {
    Path path = directory.resolve("socket");
    Path lock = directory.resolve(".socket.cuvette-lock");
    Files.createFile(lock);
    leaveSocket(path);
    try (IpcListener listener = IpcListener.open(path)) {
      assertOwns(listener);
      assertThat(files()).containsExactly("socket");
    }
    Files.writeString(lock, "mine");
    assertThatThrownBy(() -> IpcListener.open(path))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(lock.toString());
    assertThat(lock).hasContent("mine");
    Files.delete(lock);
    Path mine = Files.createFile(directory.resolve("mine"));
    Files.createSymbolicLink(lock, mine);
    assertThatThrownBy(() -> IpcListener.open(path))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(lock.toString());
    assertThat(lock).isSymbolicLink();
    assertThat(mine).exists();
  }
}
