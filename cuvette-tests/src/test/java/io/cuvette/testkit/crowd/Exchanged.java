package io.cuvette.testkit.crowd;

import io.cuvette.Buffer;

/**
 * Memory of a {@link Peer} and what it was imported as, which is to end first. Thread-safe.
 *
 * @param exported the peer's
 * @param imported the crowd's
 */
record Exchanged(Buffer exported, Buffer imported) {

  /** Ends both, once the work with the import is done. */
  void close(Crowd crowd) {
    try {
      imported.close();
      crowd.device.synchronize();
    } finally {
      exported.close();
    }
  }
}
