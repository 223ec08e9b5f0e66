package io.cuvette.internal.fence;

import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;

/** What graphs keep until they are gone. Thread-safe. */
public interface Retainable {
  /**
   * Keeps it until {@link #letGo}.
   *
   * @throws IllegalStateException if it is closed
   */
  void retain();

  void letGo();

  /**
   * Native memory of users that the graphs use, one segment of each arena: who has it may close.
   */
  default void forEachHost(Consumer<MemorySegment> to) {}
}
