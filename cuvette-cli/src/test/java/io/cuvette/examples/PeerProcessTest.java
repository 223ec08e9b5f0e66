package io.cuvette.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.IpcListener;
import io.cuvette.cli.JvmRun;
import java.io.BufferedReader;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
  void settingsOfThisProcess_areThoseOfThePeer() {
    Path socket = folder.resolve("channel");
    String before = System.setProperty("cuvette.leaks", "nonsense");
    try (IpcListener listener = IpcListener.open(socket);
        PeerProcess peer = PeerProcess.start("sim", socket, listener)) {
      assertThat(peer.exitCode()).as("refused as here").isEqualTo(1);
    } finally {
      if (before == null) {
        System.clearProperty("cuvette.leaks");
      } else {
        System.setProperty("cuvette.leaks", before);
      }
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

  @Test
  void peerWhoseOtherSideIsGone_doesNotWaitForIt() {
    Path socket = folder.resolve("channel");
    IpcListener listener = IpcListener.open(socket);
    listener.close();
    try (PeerProcess peer = PeerProcess.start("sim", socket, listener)) {
      assertThat(peer.exitCode()).isEqualTo(1);
    }
  }

  /** Signals 15 while the peer is waited for, and 9 as soon as it is there. */
  @ParameterizedTest
  @CsvSource({"A second JVM, false", "isIpcEnabled, true"})
  void killedExample_leavesNothingOnTheDisk(String at, boolean forcibly) throws Exception {
    ProcessBuilder jvm = JvmRun.jvm(IpcExampleThatWaits.class, at);
    jvm.environment().put("JDK_JAVA_OPTIONS", "-Djava.io.tmpdir=" + folder);
    Process process = jvm.redirectError(ProcessBuilder.Redirect.DISCARD).start();
    try (BufferedReader out = process.inputReader()) {
      assertThat(out.readLine()).startsWith(at);
      ProcessHandle handle = process.toHandle();
      assertThat(forcibly ? handle.destroyForcibly() : handle.destroy()).isTrue();
      assertThat(process.waitFor()).isGreaterThan(128);
      assertThat(folder).isEmptyDirectory();
    } finally {
      process.destroyForcibly();
    }
  }
}
