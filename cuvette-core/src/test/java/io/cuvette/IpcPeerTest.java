package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.UUID;
import org.junit.jupiter.api.Test;

/** Who may be at the other end of a channel. */
class IpcPeerTest {
  private final FakeDescriptors descriptors = new FakeDescriptors();

  @Test
  void processOfAnotherUser_isDisconnected() {
    int socket = descriptors.memoryFile("socket", 0);
    for (int stranger : new int[] {0, 1001, -1}) {
      descriptors.open.add(socket);
      descriptors.peerUser = stranger;
      assertThatThrownBy(() -> IpcChannel.of(descriptors, socket, "for a test"))
          .isInstanceOf(SecurityException.class)
          .hasMessageContaining(Integer.toString(stranger))
          .hasMessageContaining(Integer.toString(FakeDescriptors.USER));
      assertThat(descriptors.open).isEmpty();
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
    assertThat(descriptors.open).isEmpty();
  }

  @Test
  void sendThatFails_closesTheDuplicatesAndTheChannel() {
    int socket = descriptors.memoryFile("socket", 0);
    IpcChannel channel = IpcChannel.of(descriptors, socket, "for a test");
    try (AllocationHandle handle =
        new AllocationHandle(descriptors, descriptors.memoryFile("pool", 0), new UUID(0, 1))) {
      assertThatThrownBy(() -> channel.send(handle))
          .isInstanceOf(UnsupportedOperationException.class);
      assertThat(descriptors.open).containsExactly(handle.descriptor());
      assertThat(channel.isClosed()).isTrue();
      assertThatThrownBy(() -> channel.send(handle))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("in the middle of a message");
    }
    assertThat(descriptors.open).isEmpty();
  }
}
