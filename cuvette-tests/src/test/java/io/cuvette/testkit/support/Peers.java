package io.cuvette.testkit.support;

import io.cuvette.testkit.Subject;
import java.util.Deque;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * The second JVMs of the tests: one that is idle is used again, since starting one takes longer
 * than most tests. A test method takes it as a parameter. All end with the last test. Thread-safe.
 */
public final class Peers implements AutoCloseable {
  private final Deque<PeerJvm> idle = new ConcurrentLinkedDeque<>();

  private Peers() {}

  /** A JVM for programs on the same kind of devices. */
  public PeerJvm start(Subject subject) {
    return start(subject.specification());
  }

  PeerJvm start(String specification) {
    PeerJvm peer = idle.poll();
    return (peer == null ? new PeerJvm(this) : peer).of(specification);
  }

  void giveBack(PeerJvm peer) {
    idle.push(peer);
  }

  @Override
  public void close() {
    for (PeerJvm peer = idle.poll(); peer != null; peer = idle.poll()) {
      peer.kill();
    }
  }

  /** Gives a test method the JVMs of this run. Stateless. */
  public static final class Extension implements ParameterResolver {
    private static final ExtensionContext.Namespace NAMESPACE =
        ExtensionContext.Namespace.create(Peers.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
      return parameter.getParameter().getType() == Peers.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
      return context
          .getRoot()
          .getStore(NAMESPACE)
          .computeIfAbsent(Peers.class, _ -> new Peers(), Peers.class);
    }
  }
}
