package io.cuvette;

import java.util.UUID;

/** The identity of this process in what it exports. Numbers of processes are used again. */
final class ThisProcess {
  static final UUID ID = UUID.randomUUID();

  private ThisProcess() {}
}
