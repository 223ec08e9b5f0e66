package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A peer that sends descriptors with what is no message, or not the one that is expected: whatever
 * it sends, all of its descriptors are closed.
 */
class BrokenMessagesTest {
  private static final DescriptorCalls CALLS = DescriptorCalls.find().orElseThrow();
  private static final Duration PATIENCE = Duration.ofSeconds(40);
  private static final int MAGIC = 0x43564950;
  private static final int MESSAGE = 1;
  private static final int ALLOCATION_HANDLE = 2;

  @TempDir Path folder;

  private static byte[] header(int magic, int version, int kind, int descriptors, int bytes) {
    return ByteBuffer.allocate(12)
        .putInt(magic)
        .put((byte) version)
        .put((byte) kind)
        .putShort((short) descriptors)
        .putInt(bytes)
        .array();
  }

  private static byte[] message(int kind, int descriptors, int extraBytes) {
    int following = 17 * descriptors + extraBytes;
    return Arrays.copyOf(header(MAGIC, 1, kind, descriptors, following), 12 + following);
  }

  /** Sends bytes with a number of descriptors, and closes the own ones. */
  private static void send(int socket, byte[] bytes, int descriptors) {
    int[] all = new int[descriptors];
    Arrays.setAll(all, i -> CALLS.memoryFile("sent", 1));
    CALLS.send(socket, bytes, all, PATIENCE);
    Arrays.stream(all).forEach(CALLS::close);
  }

  /** What a receiver does with what a sender sends, with nothing open afterwards. */
  private void exchange(Consumer<Integer> sender, Consumer<IpcChannel> receiver)
      throws IOException {
    for (int round = 0; round < 2; round++) { // the first loads classes
      long before = OpenFiles.count(); // the JVM opens others when it likes
      try (IpcListener listener = IpcListener.open(folder.resolve("socket"))) {
        int socket = CALLS.connect(listener.path().toString(), PATIENCE);
        try (IpcChannel channel = listener.accept(PATIENCE)) {
          sender.accept(socket);
          CALLS.close(socket);
          receiver.accept(channel);
        }
      }
      if (round > 0) {
        assertThat(OpenFiles.count()).isLessThanOrEqualTo(before);
      }
    }
  }

  private static void assertBroken(IpcChannel channel) {
    assertThatThrownBy(() -> channel.receiveAllocationHandle(PATIENCE).close())
        .isInstanceOf(UncheckedIOException.class);
    assertThat(channel.isClosed()).isTrue();
    assertThatThrownBy(() -> channel.receiveAllocationHandle(PATIENCE).close())
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void garbageWithDescriptors() throws IOException {
    exchange(socket -> send(socket, new byte[100], 16), BrokenMessagesTest::assertBroken);
    exchange(socket -> send(socket, new byte[1], 1), BrokenMessagesTest::assertBroken);
  }

  @Test
  void wrongHeaders() throws IOException {
    for (byte[] wrong :
        new byte[][] {
          header(MAGIC ^ 1, 1, ALLOCATION_HANDLE, 1, 17),
          header(MAGIC, 2, ALLOCATION_HANDLE, 1, 17),
          header(MAGIC, 1, 99, 1, 17),
          header(MAGIC, 1, 0, 1, 17),
          header(MAGIC, 1, ALLOCATION_HANDLE, 1, -1),
          header(MAGIC, 1, ALLOCATION_HANDLE, 1, 16),
          header(MAGIC, 1, ALLOCATION_HANDLE, 1, Integer.MAX_VALUE),
          header(MAGIC, 1, ALLOCATION_HANDLE, 2, 34),
          header(MAGIC, 1, MESSAGE, 17, 17 * 17),
          header(MAGIC, 1, MESSAGE, -1, 0)
        }) {
      exchange(
          socket -> send(socket, Arrays.copyOf(wrong, 64), 1), BrokenMessagesTest::assertBroken);
    }
  }

  @Test
  void otherNumberOfDescriptorsThanAnnounced() throws IOException {
    for (int sent : new int[] {0, 2, 16}) {
      exchange(
          socket -> send(socket, message(ALLOCATION_HANDLE, 1, 0), sent),
          BrokenMessagesTest::assertBroken);
    }
  }

  @Test
  void moreDescriptorsThanAnyMessageHas() throws IOException {
    byte[] message = message(MESSAGE, 16, 100);
    exchange(
        socket -> {
          send(socket, Arrays.copyOf(message, 20), 10);
          send(socket, Arrays.copyOfRange(message, 20, message.length), 10);
        },
        channel ->
            assertThatThrownBy(() -> channel.receiveMessage(PATIENCE).close())
                .isInstanceOf(UncheckedIOException.class));
  }

  @Test
  void endInTheMiddle() throws IOException {
    byte[] message = message(ALLOCATION_HANDLE, 1, 0);
    for (int length : new int[] {1, 11, 12, 13, message.length - 1}) {
      exchange(
          socket -> send(socket, Arrays.copyOf(message, length), 1),
          BrokenMessagesTest::assertBroken);
    }
  }

  /** Else who receives would wait as long as the one who sends does. */
  @Test
  void garbageWhileASendIsStuck_endsTheSendToo() throws Exception {
    try (IpcListener listener = IpcListener.open(folder.resolve("socket"));
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      int socket = CALLS.connect(listener.path().toString(), PATIENCE);
      try (IpcChannel channel = listener.accept(PATIENCE)) {
        Future<?> stuck = threads.submit(() -> channel.send(new byte[1 << 20]));
        CALLS.receive(socket, 1, PATIENCE); // it has begun, and nobody takes the rest
        send(socket, new byte[100], 0);
        assertBroken(channel);
        assertThatThrownBy(stuck::get).cause().isInstanceOf(IllegalStateException.class);
      } finally {
        CALLS.close(socket);
      }
    }
  }

  @Test
  void interruptBeforeTheFirstByte_leavesTheChannelOpen() throws IOException {
    try (IpcListener listener = IpcListener.open(folder.resolve("socket"));
        IpcChannel client = IpcChannel.connect(listener.path(), PATIENCE);
        IpcChannel server = listener.accept(PATIENCE)) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> client.send(new byte[] {1}))
          .hasCauseInstanceOf(InterruptedIOException.class);
      assertThat(Thread.interrupted()).isTrue();
      assertThat(client.isClosed()).isFalse();
      client.send(new byte[] {2});
      assertThat(server.receiveMessage(PATIENCE).bytes()).containsExactly(2);
    }
  }

  @Test
  void interruptWhileThereIsNoListener_isToldAsSuch() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> IpcChannel.connect(folder.resolve("socket"), PATIENCE))
        .hasCauseInstanceOf(InterruptedIOException.class);
    assertThat(Thread.interrupted()).isTrue();
  }

  /** Mutations of messages that are right, with any number of descriptors. */
  @Test
  void mutatedMessages() throws IOException {
    long seed = Long.getLong("cuvette.seed", 1);
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = 0; i < 100; i++) {
      int kind = 1 + random.nextInt(4);
      int handles = random.nextInt(5);
      byte[] mutated = message(kind, handles, random.nextInt(200));
      for (int change = random.nextInt(4); change > 0; change--) {
        mutated[random.nextInt(mutated.length)] ^= (byte) (1 << random.nextInt(8));
      }
      byte[] sent = Arrays.copyOf(mutated, 1 + random.nextInt(mutated.length + 20));
      int descriptors = random.nextInt(3) == 0 ? random.nextInt(17) : handles;
      exchange(socket -> send(socket, sent, descriptors), channel -> receiveAll(channel, seed));
    }
  }

  /** Until the channel ends. */
  private static void receiveAll(IpcChannel channel, long seed) {
    for (int i = 0; !channel.isClosed() && i < 8; i++) {
      try {
        switch (i % 4) {
          case 0 -> channel.receiveMessage(PATIENCE).close();
          case 1 -> channel.receiveAllocationHandle(PATIENCE).close();
          case 2 -> channel.receiveBufferDescriptor(PATIENCE);
          default -> channel.receiveEventDescriptor(PATIENCE);
        }
      } catch (UncheckedIOException | IllegalStateException | IllegalArgumentException e) {
        assertThat(e).as("seed=%d; rerun with -Dcuvette.seed=%d", seed, seed).isNotNull();
      } catch (RuntimeException e) {
        throw new AssertionError("seed=%d; rerun with -Dcuvette.seed=%1$d".formatted(seed), e);
      }
    }
  }

  @Test
  void messageThatNobodyReceives() throws IOException {
    exchange(socket -> send(socket, message(ALLOCATION_HANDLE, 1, 0), 1), _ -> {});
  }

  @Test
  void anotherMessageThanExpected_isLost_andTheChannelGoesOn() throws IOException {
    exchange(
        socket -> {
          send(socket, message(ALLOCATION_HANDLE, 1, 0), 1);
          send(socket, message(MESSAGE, 3, 5), 3);
          send(socket, message(ALLOCATION_HANDLE, 1, 0), 1);
        },
        channel -> {
          assertThatThrownBy(() -> channel.receiveBufferDescriptor(PATIENCE))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("an AllocationHandle");
          assertThatThrownBy(() -> channel.receiveEventDescriptor(PATIENCE))
              .isInstanceOf(IllegalStateException.class);
          try (AllocationHandle handle = channel.receiveAllocationHandle(PATIENCE)) {
            assertThat(CALLS.isOpen(handle.descriptor())).isTrue();
            assertThat(handle.uuid()).isEmpty();
          }
          assertThat(channel.isClosed()).isFalse();
        });
  }
}
