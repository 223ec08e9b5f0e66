package io.cuvette.array;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Memory of the host that another library owns. It is given back once, after the close and the last
 * hold, or when the collector finds that nobody can reach it. Thread-safe.
 */
final class ImportedMemory {
  private static final Cleaner CLEANER = Cleaner.create();

  private final State state;
  private final MemorySegment segment;
  private final Cleaner.Cleanable forgotten;

  private static final class State {
    final Arena arena = Arena.ofShared();
    final AtomicBoolean closed = new AtomicBoolean();

    /** How many keep it; one is who closes it. */
    final AtomicInteger keepers = new AtomicInteger(1);

    final Runnable giveBack;

    State(Runnable giveBack) {
      this.giveBack = giveBack;
    }

    boolean keep() {
      int now;
      do {
        now = keepers.get();
        if (now == 0) {
          return false;
        }
      } while (!keepers.compareAndSet(now, now + 1));
      return true;
    }

    void letGo() {
      if (keepers.decrementAndGet() == 0) {
        giveBack.run();
      }
    }

    void close() {
      if (closed.compareAndSet(false, true)) {
        try {
          arena.close();
        } catch (IllegalStateException e) {
          closed.set(false); // the segment is in use
          throw e;
        }
        letGo();
      }
    }
  }

  /**
   * Takes memory over.
   *
   * @param giveBack called once
   */
  ImportedMemory(long address, long bytes, Runnable giveBack) {
    this.state = new State(giveBack);
    this.segment = DlpackStructure.calls().memory(address, bytes, state.arena);
    State own = state;
    this.forgotten = CLEANER.register(this, own::close);
  }

  MemorySegment segment() {
    return segment;
  }

  boolean isClosed() {
    return state.closed.get();
  }

  /**
   * Keeps the memory until {@link #unhold}, also if it is closed meanwhile.
   *
   * @throws IllegalStateException if it is closed
   */
  void hold() {
    if (isClosed() || !state.keep()) {
      throw new IllegalStateException("memory of another library is closed");
    }
  }

  void unhold() {
    state.letGo();
  }

  /** Ends it for who has it; a segment in use refuses, and nothing has changed. */
  void close() {
    state.close();
    forgotten.clean();
  }
}
