package io.cuvette.internal.lifetime;

import io.cuvette.internal.base.Await;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * The segments through which users see memory of buffers, by address: a copy from or to such a
 * segment is a use of its buffer. Thread-safe.
 *
 * @param <M> the memory of a buffer
 */
public final class HostViews<M extends Ending> {
  /** Those of every {@code Cuda} of the process: memory is page-locked for all of them. */
  private static final List<WeakReference<HostViews<?>>> ALL = new CopyOnWriteArrayList<>();

  private final ConcurrentSkipListMap<Long, View> open = new ConcurrentSkipListMap<>();

  /** Memory of the program by address, none of which overlaps. */
  private final ConcurrentSkipListMap<Long, Registered<M>> registered =
      new ConcurrentSkipListMap<>();

  /** The segments of one {@code Cuda}. */
  public static <M extends Ending> HostViews<M> create() {
    HostViews<M> made = new HostViews<>();
    ALL.removeIf(known -> known.refersTo(null));
    ALL.add(new WeakReference<>(made));
    return made;
  }

  private HostViews() {}

  private record Registered<M>(M of, MemorySegment segment) {
    /** For a segment that ends behind where this begins. */
    boolean overlaps(MemorySegment other) {
      return other.address() < segment.address() + segment.byteSize();
    }

    boolean hasAll(MemorySegment other) {
      return segment.address() <= other.address()
          && other.address() + other.byteSize() <= segment.address() + segment.byteSize();
    }
  }

  /** The segment of a whole buffer, and the arena it dies with. */
  public final class View {
    private final M of;
    private final Arena arena;
    private final MemorySegment segment;

    /** Of the same bytes, as the driver knows them. */
    private final long address;

    private View(M of, Arena arena, MemorySegment segment, long address) {
      this.of = of;
      this.arena = arena;
      this.segment = segment;
      this.address = address;
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

  /**
   * Notes a view that was just made.
   *
   * @param address where the driver knows it
   */
  public View add(M of, Arena arena, MemorySegment segment, long address) {
    View view = new View(of, arena, segment, address);
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
    if (Await.until(() -> closeUnused() == null, Ending.PATIENCE_NANOS)) {
      return; // what is opened from now on ends with its buffer
    }
    View used = closeUnused();
    if (used != null) {
      throw new IllegalStateException(
          "Cuda cannot be closed: the segment of %s is in use".formatted(used.of.describe()));
    }
  }

  /** Closes those that can be; one that is in use, or null. */
  private @Nullable View closeUnused() {
    View used = null;
    for (View view : open.values()) {
      if (!view.of.isOut() && !view.close()) {
        used = view;
      }
    }
    return used;
  }

  /** Notes memory of the program that a buffer was made of, and is not freed with it. */
  public void register(M of, MemorySegment segment) {
    registered.put(segment.address(), new Registered<>(of, segment));
  }

  /** It is memory of the program alone again. */
  public void unregister(MemorySegment segment) {
    registered.remove(segment.address());
  }

  /**
   * The end of the buffer whose memory a segment begins in; null if that is no buffer's. Memory of
   * the program can go on behind what was registered: all of the segment must be.
   */
  public @Nullable M find(MemorySegment segment) {
    View view = viewOf(segment);
    if (view != null) {
      return view.of;
    }
    Registered<M> near = lastBelow(segment);
    return near != null && near.hasAll(segment) ? near.of : null;
  }

  /** Where the driver knows the memory of a segment that {@link #find} finds. */
  public long addressOf(MemorySegment segment) {
    View view = viewOf(segment);
    return view == null
        ? segment.address()
        : view.address + (segment.address() - view.segment.address());
  }

  private @Nullable View viewOf(MemorySegment segment) {
    if (open.isEmpty()) {
      return null;
    }
    Map.Entry<Long, View> below = open.floorEntry(segment.address());
    return below != null && below.getValue().has(segment.address()) ? below.getValue() : null;
  }

  /** Whether some of a segment, and not all, is registered: no driver takes that. */
  public boolean isInPart(MemorySegment segment) {
    Registered<M> near = lastBelow(segment);
    return near != null && near.overlaps(segment) && !near.hasAll(segment);
  }

  /**
   * Whether some of a segment is memory of another {@code Cuda}, which may end at any time: that
   * does not wait for the work of this one.
   */
  public boolean isOfAnother(MemorySegment segment) {
    for (WeakReference<HostViews<?>> known : ALL) {
      HostViews<?> other = known.get();
      if (other != null
          && other != this
          && (other.find(segment) != null || other.isInPart(segment))) {
        return true;
      }
    }
    return false;
  }

  /** The registered memory with the highest address below the end of a segment. */
  private @Nullable Registered<M> lastBelow(MemorySegment segment) {
    if (registered.isEmpty()) {
      return null;
    }
    Map.Entry<Long, Registered<M>> last =
        registered.lowerEntry(segment.address() + segment.byteSize());
    return last == null ? null : last.getValue();
  }
}
