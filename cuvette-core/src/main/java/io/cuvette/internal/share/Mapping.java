package io.cuvette.internal.share;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.order.StreamOrder;
import io.cuvette.internal.session.PeerHandles;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * One mapping of another process's memory, whoever uses it. Its fields belong to the {@link
 * Mappings}'s lock, and while it is {@link State#BUSY} to the one thread that made it so.
 */
public final class Mapping {
  /** What the mapping does at the moment. */
  public enum State {
    /** One thread is asking the driver about it; the others wait. */
    BUSY,

    /** Mapped. Without users it waits for streams, and a new user can still have it. */
    LIVE,

    /** Freed in order of a stream that has not come so far; a new user waits for that. */
    DRAINING,

    /** Not mapped, and no longer in the table. */
    GONE
  }

  public final Mappings.Key key;
  public State state = State.BUSY;
  public int users;

  /** Streams that users who are gone left with work in them. */
  public List<DriverStream> behind = new ArrayList<>();

  private boolean mapped;

  /** Whether the driver has the mapping at {@link #address} back, or may have. */
  private boolean freed;

  private long address;
  private long bytes;
  private @Nullable MappingSource source;

  /** The pools that the memory is known to be of. */
  private final Map<Object, MappingSource> sources = new ConcurrentHashMap<>();

  /** Mappings of the same bytes that the driver made at other addresses, or counts at this. */
  private final List<Long> twins = new ArrayList<>();

  /** The stream of the user that went last. */
  private volatile @Nullable DriverStream last;

  /** Done when a free in stream order was reached; null if nothing is to be waited for. */
  private volatile @Nullable WorkMarker drain;

  /** What must be done before memory without users can be freed. */
  private volatile List<WorkMarker> waiting = List.of();

  private final Mappings table;

  public Mapping(Mappings.Key key, Mappings table) {
    this.key = key;
    this.table = table;
  }

  /** Which part of a pool it claims to be; null where that is not known. */
  public PeerHandles.@Nullable Range range() {
    return key.range();
  }

  /** Where it is mapped; for users. */
  public long address() {
    return address;
  }

  public boolean isMapped() {
    return mapped;
  }

  public boolean isDraining() {
    return drain != null;
  }

  public boolean isKnownTo(MappingSource user) {
    return sources.containsKey(user.identity());
  }

  /** What a user's pool is held as: one that was imported again is not, but the first one is. */
  public MappingSource heldFor(MappingSource user) {
    return sources.getOrDefault(user.identity(), user);
  }

  public boolean wasLastUsedBy(Session session) {
    return last != null && last.session == session;
  }

  /** Whether the driver gives this address for the memory. */
  public boolean isAt(long place) {
    return place == address || twins.contains(place);
  }

  /**
   * The size of the allocation, as it was when it was mapped; 0 if the driver did not report it.
   */
  public long bytes() {
    return bytes;
  }

  /**
   * Maps the memory, or finds out whether it is of this pool too. For who made it busy.
   *
   * @return whose user the caller is: this, or memory that another handle has been mapped as
   */
  public Mapping map(MappingSource user) {
    awaitDrain();
    if (!mapped) {
      table.forgetPlacesOf(this);
    }
    boolean held = isKnownTo(user);
    if (!held) {
      user.hold();
    }
    Mappings.Mapped found;
    try {
      found = table.mapped(this, user);
    } catch (RuntimeException | Error e) {
      if (!held) {
        user.release(null);
      }
      throw e;
    }
    Mapping owner = found.owner();
    if (owner == this) {
      mappedAt(found, user);
    } else {
      if (!user.isStreamOrdered()) {
        table.takeBackOne(owner, user, found.address());
      }
      if (owner.heldFor(user) != user) {
        user.release(null); // it is held already
      }
    }
    return owner;
  }

  /** Counts a user that another handle of the memory gave; for the table. */
  public void join(MappingSource user) {
    sources.putIfAbsent(user.identity(), user);
    users++;
  }

  /** The driver counts one more mapping; for the table. */
  public void isCountedAgain(long place) {
    twins.add(place);
  }

  /** Drivers do not count the mappings of a pool: the first free ends all, so there is only one. */
  private void mappedAt(Mappings.Mapped found, MappingSource user) {
    if (!mapped) {
      mapped = true;
      freed = false;
      address = found.address();
      bytes = found.bytes();
      source = user;
    } else if (!isAt(found.address())) {
      twins.add(found.address());
    }
    sources.put(user.identity(), user);
  }

  /**
   * Frees the mapping when it is no longer used, or notes what must be waited for. For who made it
   * busy.
   */
  public void free(DriverStream home) {
    last = home;
    behind.removeIf(stream -> stream.session.isClosed());
    if (source != null && !source.isStreamOrdered()) {
      awaitUses(home);
      MappingSource from = source;
      each(one -> from.discard(home.session.driver(), one));
      over(null);
    } else if (home.session.isClosed()) {
      awaitUses(home);
      freeAtLast();
    } else if (isOrderedBehindUses(home) && home.ask(() -> freeOn(home))) {
      over(home);
    } else {
      waiting = markers(home);
      if (waiting.isEmpty()) {
        freeUnordered();
      }
    }
  }

  /** The streams of a Cuda that is closed are done, and can no longer be queried. */
  private void awaitUses(DriverStream home) {
    behind.forEach(DriverStream::await);
    if (!home.session.isClosed()) {
      home.await();
    }
  }

  private boolean isOrderedBehindUses(DriverStream home) {
    for (DriverStream user : behind) {
      if (!StreamOrder.follow(user, home)) {
        return false;
      }
    }
    return true;
  }

  private List<WorkMarker> markers(DriverStream home) {
    List<WorkMarker> markers = new ArrayList<>();
    List<DriverStream> streams = new ArrayList<>(behind);
    streams.add(home);
    for (DriverStream stream : streams) {
      WorkMarker marker = stream.marker();
      if (marker != null) {
        markers.add(marker);
      }
    }
    return markers;
  }

  /** Whether nothing holds back what {@link #settle} does. */
  public boolean isReady() {
    try {
      WorkMarker drained = drain;
      return drained != null ? drained.isDone() : waiting.stream().allMatch(WorkMarker::isDone);
    } catch (CudaException e) {
      return false; // the end of the Cuda decides
    }
  }

  /** Frees what waited for streams, and forgets what was freed. For who made it busy. */
  public void settle() {
    if (isReady()) {
      drain = null;
      if (mapped) {
        freeUnordered();
      }
    }
  }

  /** As {@link #settle} when all work is known to be done. */
  public void end() {
    drain = null;
    if (mapped) {
      freeAtLast();
    }
  }

  /** A driver that cannot answer about a stream may still take plain memory back. */
  private void freeAtLast() {
    try {
      freeUnordered();
      awaitDrain();
    } catch (CudaException e) {
      if (mapped) {
        Failures.runAfter(e, this::freePlainly);
      }
      throw e;
    }
  }

  /** Waits for a free that is queued. For who made it busy. */
  public void awaitDrain() {
    WorkMarker drained = drain;
    if (drained != null) {
      drained.await();
      drain = null;
    }
  }

  /** Frees memory that no stream uses any more. */
  private void freeUnordered() {
    DriverStream used = Objects.requireNonNull(last);
    DriverStream any = used.streams.nullStream(used.device);
    if (any.ask(() -> freeOn(any))) {
      over(any);
    } else {
      freePlainly();
    }
  }

  private void freePlainly() {
    DriverStream home = Objects.requireNonNull(last);
    table.freeing(() -> each(one -> home.session.driver().memory().memFree(home.device.id(), one)));
    over(null);
  }

  private boolean freeOn(DriverStream stream) {
    CudaDriver driver = stream.session.driver();
    table.freeing(
        () -> each(one -> driver.ordered().memFreeAsync(stream.device.id(), one, stream.handle)));
    return true;
  }

  /** What went is not freed again if the next one fails. */
  private void each(LongConsumer free) {
    while (!twins.isEmpty()) {
      Once.free(() -> free.accept(twins.getLast()), twins::removeLast);
    }
    if (!freed) {
      Once.free(() -> free.accept(address), () -> freed = true);
    }
  }

  private void over(@Nullable DriverStream freedOn) {
    mapped = false;
    behind.clear();
    waiting = List.of();
    drain = freedOn == null ? null : markerOf(freedOn);
    sources.values().forEach(each -> each.release(freedOn));
    sources.clear();
  }

  /** A stream that cannot be queried now is queried later. */
  private static @Nullable WorkMarker markerOf(DriverStream stream) {
    try {
      return stream.marker();
    } catch (CudaException e) {
      return WorkMarker.of(stream);
    }
  }
}
