package io.cuvette.internal.ordered;

import io.cuvette.internal.session.Session;

/** The pool of the driver that blocks are from, as these know it. Thread-safe. */
public interface OrderedSource {
  Session session();

  long handle();

  boolean isClosed();

  /** Whether idle memory may be kept instead of being freed. */
  boolean canKeep();

  /** The last block of a closed pool was freed. */
  void emptied();
}
