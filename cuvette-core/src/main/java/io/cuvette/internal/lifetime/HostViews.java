package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.Await;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;

/**
 * The segments through which users see memory of buffers, by address: a copy from or to such a
 * segment is a use of its buffer. Thread-safe.
 *
 * @param <M> the memory of a buffer
 */
public final class HostViews<M extends Ending> {
  private final ConcurrentSkipListMap<Long, View> open = new ConcurrentSkipListMap<>();

  /** The segment of a whole buffer, and the arena it dies with. */
  public final class View {
    private final M of;
    private final Arena arena;
    private final MemorySegment segment;

    private View(M of, Arena arena, MemorySegment segment) {
      this.of = of;
      this.arena = arena;
      this.segment = segment;
    }

    /** False if the segment is in use at the moment. */
    public boolean close() {
      try {
        arena.close();
      } catch (IllegalStateException e) {
        if (arena.scope().isAlive()) { // else another thread was faster
          return false;
        }
      }
      open.remove(segment.address(), this);
      return true;
    }

    private boolean has(long address) {
      return address - segment.address() < segment.byteSize();
    }
  }

  /** Notes a view that was just made. */
  public View add(M of, Arena arena, MemorySegment segment) {
    View view = new View(of, arena, segment);
    open.put(segment.address(), view);
    return view;
  }

  /**
   * Closes all, for a Cuda that ends. Waits for those that are in use, at most {@link
   * Ending#PATIENCE_NANOS}. What code outside of Java uses stays where it is, and ends with that.
   *
   * @throws IllegalStateException naming a buffer whose segment is in use still
   */
  public void closeAll() {
    if (Await.until(this::tryCloseAll, Ending.PATIENCE_NANOS)) {
      return; // what is opened from now on ends with its buffer
    }
    for (View view : open.values()) {
      if (view.of.isOut()) {
        continue;
      }
      throw new IllegalStateException(
          "Cuda cannot be closed: the segment of %s is in use".formatted(view.of.describe()));
    }
  }

  private boolean tryCloseAll() {
    boolean isDone = true;
    for (View view : open.values()) {
      isDone &= view.of.isOut() || view.close();
    }
    return isDone;
  }

  /** The end of the buffer whose memory a segment begins in; null if that is no buffer's. */
  public @Nullable M find(MemorySegment segment) {
    if (open.isEmpty()) {
      return null;
    }
    long address = segment.address();
    Map.Entry<Long, View> below = open.floorEntry(address);
    return below != null && below.getValue().has(address) ? below.getValue().of : null;
  }
}
