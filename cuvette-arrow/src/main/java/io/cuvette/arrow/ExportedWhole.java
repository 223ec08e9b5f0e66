package io.cuvette.arrow;

import io.cuvette.CudaEvent;
import io.cuvette.ForeignLoan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** What arrays that were exported together have in common until the last is released. */
final class ExportedWhole {
  /** The structures of the children, and what they point at; for as long as an array is known. */
  private final Arena memory = Arena.ofAuto();

  private final AtomicInteger left;
  private @Nullable ForeignLoan event;

  /** The handle of the event; 0 for none. */
  final long eventHandle;

  /** So many arrays with an event, which is closed after the last. */
  ExportedWhole(int arrays, @Nullable CudaEvent event) {
    this.left = new AtomicInteger(arrays);
    this.event = event == null ? null : ForeignLoan.of(event::close);
    this.eventHandle = event == null ? 0 : event.handle();
  }

  /** Memory of zeros. */
  MemorySegment allocate(long bytes) {
    return memory.allocate(bytes, Long.BYTES);
  }

  /** One array is released. */
  void ended() {
    if (left.decrementAndGet() == 0) {
      end();
    }
  }

  /** Closes the event. */
  void end() {
    ForeignLoan own = event;
    event = null;
    if (own != null) {
      own.giveBack();
    }
  }
}
