package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Peer;
import io.cuvette.testkit.support.PeerJvm;
import io.cuvette.testkit.support.PeerProgram;
import io.cuvette.testkit.support.Peers;
import java.nio.file.Path;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** The two programs of docs/guide/sharing.md, in two JVMs. */
@ExtendWith(Peers.Extension.class)
@EnabledOnOs(OS.LINUX)
class SharingTwoJvmsTest {
  @TempDir Path folder;

  @CudaTest
  void consumer_writesTheProducersMemory(Subject subject, Peers peers) {
    Path socket = folder.resolve("channel-" + subject.seed());
    try (PeerJvm second = peers.start(subject)) {
      second.run(Consumer.class).hear();
      second.say(socket);
      byte[] back = SharingProducer.produce(subject.cuda(), socket);
      second.finish();
      assertThat(back[0]).isEqualTo((byte) 8);
      assertThat(back[999]).isEqualTo((byte) 8);
      assertThat(back[1000]).isEqualTo((byte) 7);
      assertThat(back[back.length - 1]).isEqualTo((byte) 7);
    }
    assertThat(socket).doesNotExist();
  }

  /** Runs the second program in the second JVM. */
  static final class Consumer implements PeerProgram {
    @Override
    public void run(Peer peer) throws InterruptedException {
      peer.say("which channel?");
      SharingConsumer.consume(peer.cuda(), Path.of(peer.hear()));
    }
  }
}
