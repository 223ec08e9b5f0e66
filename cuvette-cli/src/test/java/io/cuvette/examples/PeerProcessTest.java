package io.cuvette.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.IpcListener;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** The second JVM of the example: its failure is told, and it never outlives the example. */
@EnabledOnOs(OS.LINUX)
class PeerProcessTest {
  @TempDir Path folder;

  /** What it prints on standard error is its own trace. */
  @Test
  void peerThatFails_endsTheWaitForIt_andIsTheReasonGiven() {
    Path socket = folder.resolve("channel");
    try (IpcListener listener = IpcListener.open(socket);
        PeerProcess peer = PeerProcess.start("nonsense", socket, listener)) {
      assertThatThrownBy(
              () -> peer.orItsFailure(() -> listener.accept(Duration.ofMinutes(2)).close()))
          .isInstanceOf(WrongResultException.class)
          .hasMessage("the second JVM ended with 1 (expected: 0)");
      assertThat(peer.exitCode()).isEqualTo(1);
    }
  }

  @Test
  void failureOfThisSide_isGivenAsItIs_andTheOtherIsEnded() {
    Path socket = folder.resolve("channel");
    ProcessHandle child;
    try (IpcListener listener = IpcListener.open(socket);
        PeerProcess peer = PeerProcess.start("sim", socket, listener)) {
      child = peer.handle();
      assertThatThrownBy(() ->
              peer.orItsFailure(() -> {
                throw new IllegalStateException("this side");
              }))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("this side");
    }
    assertThat(child.isAlive()).isFalse();
  }
}
