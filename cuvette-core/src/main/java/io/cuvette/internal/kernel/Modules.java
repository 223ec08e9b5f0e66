package io.cuvette.internal.kernel;

import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.session.Session;

/**
 * The modules of a session: those that are closed are unloaded behind their launches. Thread-safe.
 */
public final class Modules {
  final Session session;
  private final SharedModules shared = new SharedModules(this);
  final PendingFrees<LoadedModule> closed = new PendingFrees<>(LoadedModule::unloadBehindLaunches);

  public Modules(Session session) {
    this.session = session;
    session.whenDrained(this::poll);
  }

  /** Those that are kept until the session ends. */
  public SharedModules shared() {
    return shared;
  }

  /** Unloads what is closed and whose launches are done by now. */
  public void poll() {
    if (!closed.isEmpty()) {
      closed.poll();
    }
  }
}
