package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Peer;
import io.cuvette.testkit.support.PeerJvm;
import io.cuvette.testkit.support.PeerProgram;
import io.cuvette.testkit.support.Peers;
import org.junit.jupiter.api.extension.ExtendWith;

/** The second JVM itself: that it runs, and that it cannot hide a failure or outlive a test. */
@ExtendWith(Peers.Extension.class)
class PeerJvmTest {

  @CudaTest
  void program_runsInAnotherProcess_onADeviceLikeTheTests(Subject subject, Peers peers) {
    try (PeerJvm peer = peers.start(subject)) {
      peer.run(Doubler.class);
      assertThat(peer.hear())
          .isEqualTo(Long.toString(peer.pid()))
          .isNotEqualTo(Long.toString(ProcessHandle.current().pid()));
      assertThat(peer.hear()).isEqualTo(subject.cuda().device(0).name());
      peer.say(21);
      assertThat(peer.hear()).isEqualTo("42");
      peer.finish();
      peer.runToEnd(Nothing.class);
    }
  }

  @CudaTest
  void failure_isTheTestsFailure_withWhatThePeerPrinted(Subject subject, Peers peers) {
    PeerJvm peer = peers.start(subject);
    try (peer) {
      peer.run(Failing.class);
      assertThatThrownBy(peer::finish)
          .isInstanceOf(AssertionError.class)
          .hasMessageContaining("on purpose")
          .hasMessageContaining("printed before")
          .hasMessageContaining(Failing.class.getName());
    }
    assertThat(ProcessHandle.of(peer.pid()).filter(ProcessHandle::isAlive)).isEmpty();
  }

  @CudaTest(simulatedOnly = true)
  void memoryLeftBehind_isAFailure(Subject subject, Peers peers) {
    try (PeerJvm peer = peers.start(subject)) {
      peer.run(Leaving.class);
      assertThatThrownBy(peer::finish).hasMessageContaining("left in the second JVM");
    }
  }

  @CudaTest
  void unexpectedEnd_isAFailure_andAnExitIsClean(Subject subject, Peers peers) {
    try (PeerJvm peer = peers.start(subject)) {
      peer.run(Doubler.class).hear();
      peer.hear();
      peer.kill();
      assertThatThrownBy(peer::hear).hasMessageContaining("the second JVM has ended");
    }
    try (PeerJvm peer = peers.start(subject)) {
      peer.run(Doubler.class).hear();
      peer.exit();
    }
  }

  /** Tells of itself and doubles a number. */
  static final class Doubler implements PeerProgram {
    @Override
    public void run(Peer peer) throws InterruptedException {
      peer.say(ProcessHandle.current().pid());
      peer.say(peer.cuda().device(0).name());
      try (Buffer buffer = peer.cuda().allocate(1)) {
        buffer.fill((byte) (2 * Integer.parseInt(peer.hear())));
        peer.say(Bytes.of(buffer)[0]);
      }
    }
  }

  /** Does nothing. */
  static final class Nothing implements PeerProgram {
    @Override
    public void run(Peer peer) {}
  }

  /** Fails. */
  static final class Failing implements PeerProgram {
    @Override
    public void run(Peer peer) {
      System.out.println("printed before");
      throw new IllegalStateException("on purpose");
    }
  }

  /** Leaves memory behind. */
  static final class Leaving implements PeerProgram {
    @Override
    public void run(Peer peer) {
      peer.cuda().driver().memory().memAlloc(0, 64);
    }
  }
}
