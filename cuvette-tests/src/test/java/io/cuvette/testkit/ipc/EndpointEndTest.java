package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.support.PeerCommand;
import java.io.IOException;
import java.io.StreamCorruptedException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** A peer that does what it can to keep an endpoint from being closed. */
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class EndpointEndTest {
  private static final DescriptorCalls CALLS = DescriptorCalls.find().orElseThrow();
  private static final Duration LONG = Duration.ofSeconds(50);

  /** It takes a second at most, and a machine with much to do takes its own time besides. */
  private static final long SECONDS = 20;

  /** A message of so many bytes is not over before its endpoint is closed. */
  private static final long BETWEEN_BYTES_NANOS = 100_000;

  private static final byte[] HEADER = {0x43, 0x56, 0x49, 0x50, 1, 1, 0, 0, 0, 0x0F, 0, 0};

  @TempDir Path folder;

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final AtomicBoolean over = new AtomicBoolean();
  private IpcListener listener;
  private int peer;
  private IpcChannel channel;

  @BeforeEach
  void connect() {
    listener = IpcListener.open(folder.resolve("socket"));
    peer = CALLS.connect(listener.path().toString(), LONG);
    channel = listener.accept(LONG);
  }

  @AfterEach
  void end() {
    over.set(true);
    threads.close();
    channel.close();
    listener.close();
    CALLS.close(peer);
  }

  private void assertCloses(AutoCloseable endpoint) throws Exception {
    threads
        .submit(() -> {
          endpoint.close();
          return null;
        })
        .get(SECONDS, TimeUnit.SECONDS);
  }

  private static void assertEnds(Future<?> call) {
    assertThatThrownBy(() -> call.get(SECONDS, TimeUnit.SECONDS))
        .cause()
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void partOfAMessage() throws Exception {
    CALLS.send(peer, new byte[] {HEADER[0]}, new int[0], LONG);
    Future<?> receiving = threads.submit(() -> channel.receiveMessage(LONG));
    assertCloses(channel);
    assertEnds(receiving);
  }

  /** Each byte comes before anybody notices that nothing comes. */
  @Test
  void messageThatComesBitByBit() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    threads.submit(() -> {
      CALLS.send(peer, HEADER, new int[0], LONG);
      for (int i = 0; !over.get() && i < 0xF0000; i++) {
        CALLS.send(peer, new byte[1], new int[0], LONG);
        begun.countDown();
        LockSupport.parkNanos(BETWEEN_BYTES_NANOS);
      }
      return null;
    });
    Future<?> receiving = threads.submit(() -> channel.receiveMessage(LONG));
    begun.await();
    assertCloses(channel);
    assertEnds(receiving);
  }

  @Test
  void messageThatNobodyTakes() throws Exception {
    Future<?> sending = threads.submit(() -> channel.send(new byte[1 << 20]));
    CALLS.receive(peer, 1, LONG); // it has begun
    assertCloses(channel);
    assertEnds(sending);
  }

  @Test
  void messageThatIsTakenBitByBit() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    threads.submit(() -> {
      while (!over.get() && CALLS.receive(peer, 1, LONG).bytes().length > 0) {
        begun.countDown();
        LockSupport.parkNanos(BETWEEN_BYTES_NANOS);
      }
      return null;
    });
    Future<?> sending = threads.submit(() -> channel.send(new byte[1 << 20]));
    begun.await();
    assertCloses(channel);
    assertEnds(sending);
  }

  @Test
  void manyWhoSendAndReceive() throws Exception {
    List<Future<?>> all = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      all.add(threads.submit(() -> channel.send(new byte[1 << 20])));
      all.add(threads.submit(() -> channel.receiveMessage(LONG)));
      all.add(threads.submit(() -> listener.accept(LONG)));
    }
    CALLS.receive(peer, 1, LONG);
    assertCloses(channel);
    assertCloses(listener);
    all.forEach(EndpointEndTest::assertEnds);
  }

  @Test
  void connectionsThatNobodyAccepts() throws Exception {
    List<Integer> waiting = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      int socket = CALLS.connect(listener.path().toString(), LONG);
      CALLS.send(socket, new byte[1 << 12], new int[] {socket}, LONG);
      waiting.add(socket);
    }
    assertCloses(listener);
    waiting.forEach(CALLS::close);
  }

  @Test
  void connectionsWithoutEnd() throws Exception {
    CountDownLatch begun = new CountDownLatch(1);
    threads.submit(() -> {
      while (!over.get()) {
        try {
          CALLS.close(CALLS.connect(listener.path().toString(), Duration.ZERO));
          begun.countDown();
        } catch (UncheckedIOException e) {
          // It has no room, or is closed.
        }
      }
    });
    Future<?> accepting =
        threads.submit(() -> {
          while (true) {
            listener.accept(LONG).close();
          }
        });
    begun.await();
    assertCloses(listener);
    assertEnds(accepting);
  }

  @Test
  void processThatIsStopped() throws Exception {
    List<String> command = PeerCommand.of(Idle.class);
    command.add(listener.path().toString());
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try (IpcChannel stopped = listener.accept(LONG)) {
      stopped.receiveMessage(LONG).close();
      signal(process, "STOP");
      Future<?> sending = threads.submit(() -> stopped.send(new byte[1 << 20]));
      Future<?> receiving = threads.submit(() -> stopped.receiveMessage(LONG));
      assertCloses(stopped);
      assertEnds(sending);
      assertEnds(receiving);
    } finally {
      process.destroyForcibly().waitFor();
    }
  }

  private static void signal(Process process, String name) throws Exception {
    assertThat(
            new ProcessBuilder("sh", "-c", "kill -%s %d".formatted(name, process.pid()))
                .start()
                .waitFor())
        .isZero();
  }

  /** A process that connects and does nothing else. Stateless. */
  static final class Idle {
    private Idle() {}

    public static void main(String[] args) {
      try (IpcChannel channel = IpcChannel.connect(Path.of(args[0]), LONG)) {
        channel.send(new byte[0]);
        channel.receiveMessage(LONG).close();
      }
    }
  }

  /** Closing the last descriptor of a socket that lingers takes as long as who made it likes. */
  @Test
  void descriptorsWhoseEndTakesLong() throws Exception {
    try (ServerSocketChannel server =
        ServerSocketChannel.open()
            .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))) {
      sendLingering(server, peer, HEADER); // never received
      assertCloses(channel);
      int next = CALLS.connect(listener.path().toString(), LONG);
      try (IpcChannel second = listener.accept(LONG)) {
        sendLingering(server, next, new byte[HEADER.length]); // no message
        Future<?> receiving = threads.submit(() -> second.receiveMessage(LONG));
        assertThatThrownBy(() -> receiving.get(SECONDS, TimeUnit.SECONDS))
            .cause()
            .hasCauseInstanceOf(StreamCorruptedException.class);
      } finally {
        CALLS.close(next);
      }
    }
  }

  private static void sendLingering(ServerSocketChannel server, int socket, byte[] with)
      throws IOException {
    Set<Path> before = sockets();
    try (SocketChannel full = SocketChannel.open()) {
      Set<Path> made = sockets();
      made.removeAll(before);
      full.setOption(StandardSocketOptions.SO_LINGER, 40);
      full.connect(server.getLocalAddress());
      full.configureBlocking(false);
      while (full.write(ByteBuffer.allocate(1 << 16)) > 0) {
        // until nobody takes it
      }
      int number = Integer.parseInt(made.iterator().next().getFileName().toString());
      CALLS.send(socket, with, new int[] {number}, LONG);
    }
  }

  private static Set<Path> sockets() throws IOException {
    Set<Path> found = new HashSet<>();
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      for (Path each : all.toList()) {
        if (Files.exists(each) && Files.readSymbolicLink(each).toString().startsWith("socket:")) {
          found.add(each);
        }
      }
    }
    return found;
  }
}
