package io.cuvette.testkit.support;

import io.cuvette.Cuda;
import io.cuvette.IpcChannel;
import java.util.concurrent.BlockingQueue;
import java.util.function.Consumer;

/** What a {@link PeerProgram} sees of its JVM and of the test. Confined to the program's thread. */
public final class Peer {
  private final Cuda cuda;
  private final IpcChannel channel;
  private final BlockingQueue<String> heard;
  private final Consumer<String> said;

  Peer(Cuda cuda, IpcChannel channel, BlockingQueue<String> heard, Consumer<String> said) {
    this.cuda = cuda;
    this.channel = channel;
    this.heard = heard;
    this.said = said;
  }

  /** This JVM's own Cuda, of the same devices as the test's; closed after the program. */
  public Cuda cuda() {
    return cuda;
  }

  /** The other end of {@link PeerJvm#channel}; of all programs of this JVM. */
  public IpcChannel channel() {
    return channel;
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
