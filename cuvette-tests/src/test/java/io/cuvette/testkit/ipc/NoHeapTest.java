package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.support.PeerCommand;
import java.io.BufferedReader;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** A process whose heap is full when a message comes loses none of its descriptors. */
@EnabledOnOs(OS.LINUX)
@Timeout(180)
class NoHeapTest {
  private static final DescriptorCalls CALLS = DescriptorCalls.find().orElseThrow();
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int HANDLES = 3;
  private static final int ROUNDS = 35;

  /** Rounds with a heap, in which classes are loaded. */
  private static final int WARM = 10;

  @Test
  void messageForAFullHeap_isReceivedOrLost_withoutADescriptorLeft(@TempDir Path folder)
      throws Exception {
    Path path = folder.resolve("socket");
    List<String> command = PeerCommand.of(Main.class);
    command.replaceAll(each -> each.startsWith("-Xmx") ? "-Xmx12m" : each);
    command.add(path.toString());
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try (BufferedReader printed = process.inputReader()) {
      assertThat(printed.readLine()).isEqualTo("ready");
      Thread sender = Thread.ofPlatform().daemon().start(() -> sendToAll(path.toString()));
      String rest = printed.readAllAsString();
      assertThat(process.waitFor()).as(rest).isZero();
      sender.join(); // with its descriptors, which others count
      assertThat(rest).matches("of \\d+ messages [1-9]\\d* lost\\n");
    } finally {
      process.destroyForcibly();
    }
  }

  /** Until nobody listens any more. */
  private static void sendToAll(String path) {
    int own = CALLS.memoryFile("sent", 1);
    int following = 17 * HANDLES;
    byte[] message =
        ByteBuffer.allocate(12 + following)
            .putInt(0x43564950)
            .put((byte) 1)
            .put((byte) 1)
            .putShort((short) HANDLES)
            .putInt(following)
            .array();
    try {
      while (true) {
        int socket = CALLS.connect(path, LONG);
        CALLS.send(socket, message, new int[] {own, own, own}, LONG);
        CALLS.close(socket);
      }
    } catch (UncheckedIOException e) {
      // It has ended.
    } finally {
      CALLS.close(own);
    }
  }

  /** The process whose heap is full. Stateless. */
  static final class Main {
    private Main() {}

    public static void main(String[] args) {
      try (IpcListener listener = IpcListener.open(Path.of(args[0]))) {
        System.out.println("ready");
        int failed = 0;
        for (int round = 0; round < ROUNDS; round++) {
          failed += round(listener, round < WARM ? Integer.MAX_VALUE : round - WARM) ? 0 : 1;
        }
        System.out.printf("of %d messages %d lost%n", ROUNDS, failed);
      }
    }
  }

  private static boolean round(IpcListener listener, int left) {
    long before = OpenFiles.count();
    boolean received = false;
    try (IpcChannel channel = listener.accept(LONG)) {
      List<byte[]> heap = filled(left);
      IpcChannel.Message message = null;
      try {
        message = channel.receiveMessage(LONG);
        received = true;
      } catch (OutOfMemoryError | UncheckedIOException e) {
        received = false;
      } finally {
        heap.clear();
      }
      if (message != null) {
        assertThat(message.handles()).hasSize(HANDLES);
        message.close();
      }
    }
    assertThat(OpenFiles.all())
        .as("descriptors after a round with %d pieces left: %s", left, received)
        .hasSizeLessThanOrEqualTo((int) before);
    return received;
  }

  /** Takes all heap but a number of small pieces. */
  private static List<byte[]> filled(int left) {
    List<byte[]> all = new ArrayList<>(1 << 16);
    if (left == Integer.MAX_VALUE) {
      return all;
    }
    for (int size : new int[] {1 << 16, 1 << 9, 1 << 6}) {
      try {
        while (true) {
          all.add(new byte[size]);
        }
      } catch (OutOfMemoryError e) {
        // smaller ones
      }
    }
    for (int i = 0; i < left; i++) {
      all.removeLast();
    }
    return all;
  }
}
