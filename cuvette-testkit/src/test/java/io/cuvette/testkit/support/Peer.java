package io.cuvette.testkit.support;

import io.cuvette.Cuda;
import java.util.concurrent.BlockingQueue;
import java.util.function.Consumer;

/** What a {@link PeerProgram} sees of its JVM and of the test. Confined to the program's thread. */
public final class Peer {
  private final Cuda cuda;
  private final BlockingQueue<String> heard;
  private final Consumer<String> said;

  Peer(Cuda cuda, BlockingQueue<String> heard, Consumer<String> said) {
    this.cuda = cuda;
    this.heard = heard;
    this.said = said;
  }

  /** This JVM's own Cuda, of the same devices as the test's; closed after the program. */
  public Cuda cuda() {
    return cuda;
  }

  /** Says a line that {@link PeerJvm#hear} gives. */
  public void say(Object line) {
    said.accept(line.toString());
  }

  /** The next line of {@link PeerJvm#say}; the test bounds the wait. */
  public String hear() throws InterruptedException {
    return heard.take();
  }
}
