package io.cuvette.testkit.support;

/**
 * What a second JVM does in a test; one class for each role, with a constructor without arguments.
 */
@FunctionalInterface
public interface PeerProgram {

  /** Runs in the second JVM; what it throws fails the test. */
  void run(Peer peer) throws Exception;
}
