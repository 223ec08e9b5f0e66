package io.cuvette.ffm.call;

import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Frames that virtual threads borrow for the time of a call. Keeps as many as could be in use at
 * once on a large machine; more are made and forgotten as needed. Thread-safe, never blocks.
 */
final class FramePool {
  private static final int SLOTS = 128;
  private static final int PROBES = 8;

  private final AtomicReferenceArray<@Nullable CallFrame> slots = new AtomicReferenceArray<>(SLOTS);

  /** Returns a frame that no other call uses. */
  CallFrame take() {
    int start = start();
    for (int probe = 0; probe < PROBES; probe++) {
      int slot = (start + probe) % SLOTS;
      if (slots.get(slot) != null) {
        CallFrame frame = slots.getAndSet(slot, null);
        if (frame != null) {
          return frame;
        }
      }
    }
    return new CallFrame(true);
  }

  /** Takes a frame back. */
  void give(CallFrame frame) {
    int start = start();
    for (int probe = 0; probe < PROBES; probe++) {
      int slot = (start + probe) % SLOTS;
      if (slots.get(slot) == null && slots.compareAndSet(slot, null, frame)) {
        return;
      }
    }
  }

  private static int start() {
    return (int) (Thread.currentThread().threadId() % SLOTS);
  }
}
