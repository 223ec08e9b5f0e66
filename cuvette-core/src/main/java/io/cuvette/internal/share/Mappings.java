package io.cuvette.internal.share;

import io.cuvette.BufferDescriptor;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.OneByOne;
import io.cuvette.internal.driverpool.MappingOrder;
import io.cuvette.internal.paged.ImportedPages;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.PeerHandles;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.share.Mapping.State;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.StreamUse;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.locks.Condition;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The memory of other processes that is mapped in this one, each allocation once however often it
 * is imported, and whatever handle it is imported by: drivers do not count. The first user maps it,
 * the last one frees it, and threads that come while the driver maps or frees it wait; the lock
 * itself is never held across a call of the driver. Thread-safe.
 */
public final class Mappings implements MappingOrder {
  /** That of the driver of this machine, which knows processes and not {@code Cuda}s. */
  private static final Mappings PROCESS = new Mappings();

  /** So many streams are remembered before the idle ones among them are forgotten. */
  private static final int LOOK_AGAIN = 32;

  /** The identity of the process in what it exports: numbers of processes are used again. */
  public final UUID process = UUID.randomUUID();

  private final BargingLock lock = new BargingLock();
  private final Condition changed = lock.newCondition();
  private final Map<Key, Mapping> known = new HashMap<>();

  /** What memory is known by that comes page by page. */
  final ImportedPages pages = new ImportedPages();

  private final MappedPlaces places = new MappedPlaces();

  /**
   * What a driver gave is mapped until its place is known: no thread frees memory of a pool, or
   * forgets a place, while another has the driver map some.
   */
  private final OneByOne<Mappings> driverCalls = new OneByOne<>();

  /**
   * The identity of an allocation: what the driver reads of a handle, or all of it where that is
   * not known.
   *
   * @param device that it is mapped for; −1 for memory of pools
   * @param bytes the driver's handle
   * @param range of a pool
   */
  public record Key(int device, ByteBuffer bytes, PeerHandles.@Nullable Range range) {
    public static Key ofPool(BufferDescriptor descriptor, PeerHandles.@Nullable Range range) {
      return new Key(-1, ByteBuffer.wrap(descriptor.handle()), range);
    }

    public static Key ofPlain(BufferDescriptor descriptor, Device device) {
      return new Key(device.id(), ByteBuffer.wrap(descriptor.handle()), null);
    }

    public byte[] handle() {
      byte[] handle = new byte[bytes.limit()];
      bytes.get(0, handle);
      return handle;
    }

    private Object read() {
      return range == null ? bytes : List.of(range.block(), range.offset());
    }

    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof Key key && key.device == device && key.read().equals(read());
    }

    @Override
    public int hashCode() {
      return 31 * device + read().hashCode();
    }
  }

  /** The table for a Cuda; each simulated driver is a process of its own. */
  public static Mappings of(boolean simulated) {
    return simulated ? new Mappings() : PROCESS;
  }

  /** A user's part: a mapping that is there, or one that the user has to make. */
  private record Claim(Mapping memory, boolean toBeMapped) {}

  /**
   * Counts a user of an allocation, and maps it for the first. {@link #close} must follow.
   *
   * @throws CudaException if the driver refuses; nothing is counted then
   */
  public Mapping open(Key key, MappingSource source) {
    settle();
    Claim claim = claim(key, source);
    Mapping memory = claim.memory();
    if (!claim.toBeMapped()) {
      return memory;
    }
    int users = 0;
    try {
      Mapping owner = memory.map(source);
      users = owner == memory ? 1 : 0;
      return owner;
    } finally {
      leave(memory, users);
    }
  }

  /**
   * Where the driver mapped memory.
   *
   * @param owner the owner of the place, the caller or another; the user is counted there then
   * @param bytes 0 if the driver does not report it
   * @param ends whether the owner has to end first, and the driver is then called again
   */
  public record Mapped(Mapping owner, long address, long bytes, boolean ends) {}

  /**
   * Has the driver map memory, for who made it busy. A driver that is to map an allocation which it
   * has mapped gives the address of that, whatever the handle: then the mapping has one more user,
   * and is freed once. If it is being freed, the driver is called again after that. If other memory
   * is where that was, a driver that maps nothing twice leaves it there.
   *
   * @throws CudaException if the driver refuses; nothing is mapped then that was not before
   * @throws IllegalArgumentException if the memory is a part of another import, or the other way
   *     round; what was mapped is not unmapped, since that could free the other
   */
  public Mapped mapped(Mapping memory, MappingSource source) {
    long before = memory.isMapped() ? memory.address() : 0;
    while (true) {
      long place = before;
      Mapped mapped =
          source.isStreamOrdered()
              ? driverCalls.alone(this, () -> ask(memory, source, place))
              : ask(memory, source, place); // drivers count this memory: a free leaves it mapped
      if (!mapped.ends) {
        return mapped;
      }
      awaitEnd(mapped.owner);
      before = mapped.address;
    }
  }

  private Mapped ask(Mapping memory, MappingSource source, long before) {
    PeerHandles.Range range = memory.isMapped() ? null : memory.range();
    Mapped ending = range == null ? null : locked(() -> beforeMapping(memory, range));
    if (ending != null) {
      return ending;
    }
    long address = addressOf(memory, source, before);
    try {
      Mapped known = locked(() -> known(memory, source, address));
      return known == null ? measured(memory, source, address) : known;
    } catch (Error e) {
      if (locked(() -> isNew(memory, address))) { // no heap for its place
        Failures.runAfter(e, () -> source.discard(address));
      }
      throw e;
    }
  }

  /** Whether the driver has just mapped this, and no memory is known to have it. */
  private boolean isNew(Mapping memory, long address) {
    return !memory.isMapped() && places.owner(address, 1, memory) == null;
  }

  private <R extends @Nullable Object> R locked(Supplier<R> work) {
    lock.lock();
    try {
      return work.get();
    } finally {
      lock.unlock();
    }
  }

  /** Whom the driver would be made to overlap. */
  private @Nullable Mapped beforeMapping(Mapping memory, PeerHandles.Range range) {
    Mapping owner = places.ownerOfUnmapped(range, memory);
    return owner == null ? null : ending(owner, memory, range.offset(), range.bytes());
  }

  /** A driver that maps nothing twice leaves it where it was before; 0 if it was nowhere. */
  private static long addressOf(Mapping memory, MappingSource source, long before) {
    try {
      return source.map(memory.key.handle());
    } catch (CudaException e) {
      if (before == 0 || e.status() != CudaStatus.ALREADY_MAPPED) {
        throw source.explained(e);
      }
      return before;
    }
  }

  /**
   * What the driver has mapped before; null if it mapped something new. That has its place from
   * here on where drivers count, since other threads call the driver too.
   */
  private @Nullable Mapped known(Mapping memory, MappingSource source, long address) {
    if (memory.isMapped() && memory.isAt(address)) {
      return new Mapped(memory, address, memory.bytes(), false);
    }
    Mapping owner = places.owner(address, 1, memory);
    while (owner != null && owner.state == State.BUSY && !source.isStreamOrdered()) {
      changed.awaitUninterruptibly();
      owner = places.owner(address, 1, memory);
    }
    if (owner == null) {
      if (!source.isStreamOrdered()) {
        places.put(memory, address, 1); // a mapping may have more than the one allocation
      }
      return null;
    }
    if (owner.state == State.LIVE && !memory.isMapped() && owner.isAt(address)) {
      Mapped joined = new Mapped(owner, address, owner.bytes(), false);
      owner.join(source);
      return joined;
    }
    return ending(owner, memory, address, 1);
  }

  private Mapped ending(Mapping owner, Mapping asker, long address, long bytes) {
    // Who has a mapping does not wait, so that no two wait for each other.
    if (owner.state == State.LIVE || asker.isMapped()) {
      throw new IllegalArgumentException(
          "descriptor: %d bytes at 0x%x overlap memory that is imported as another allocation"
              .formatted(bytes, address));
    }
    return new Mapped(owner, address, 0, true);
  }

  private Mapped measured(Mapping memory, MappingSource source, long address) {
    source.checkForeign(address);
    Mapped made = new Mapped(memory, address, bytesAt(source, address), false);
    return source.isStreamOrdered() ? locked(() -> placed(made)) : made;
  }

  /** What is mapped has a user who can give it back, so a failure is reported to that user. */
  private static long bytesAt(MappingSource source, long address) {
    try {
      return source.bytesAt(address);
    } catch (CudaException e) {
      return 0;
    }
  }

  private Mapped placed(Mapped made) {
    long extent = Math.max(1, made.bytes);
    Mapping overlapped = places.owner(made.address, extent, made.owner);
    if (overlapped != null) {
      return ending(overlapped, made.owner, made.address, made.bytes);
    }
    places.put(made.owner, made.address, extent);
    return made;
  }

  /** Waits until memory is gone that is being freed, or another thread is done with it. */
  private void awaitEnd(Mapping memory) {
    lock.lock();
    try {
      awaitIdle(memory);
      if (memory.state != State.DRAINING) {
        return;
      }
      memory.state = State.BUSY;
    } finally {
      lock.unlock();
    }
    try {
      memory.awaitDrain();
    } finally {
      leave(memory, 0);
    }
  }

  /** Takes back one of two mappings that the driver counts, at the owner's end if not now. */
  public void takeBackOne(Mapping owner, MappingSource source, long address) {
    try {
      source.discard(address);
    } catch (CudaException e) {
      lock.lock();
      try {
        owner.isCountedAgain(address);
      } finally {
        lock.unlock();
      }
    }
  }

  /** Does what frees memory of a pool; no other thread has the driver map some meanwhile. */
  @Override
  public void freeing(Runnable work) {
    driverCalls.alone(this, work);
  }

  /** A new mapping of the memory need not be where the one was that is freed now. */
  public void forgetPlacesOf(Mapping memory) {
    driverCalls.alone(
        this,
        () -> {
          lock.lock();
          try {
            places.remove(memory);
          } finally {
            lock.unlock();
          }
        });
  }

  private Claim claim(Key key, MappingSource source) {
    lock.lock();
    try {
      while (true) {
        Mapping memory = known.get(key);
        if (memory == null) {
          memory = new Mapping(key, this);
          known.put(key, memory);
          return new Claim(memory, true);
        }
        if (memory.state == State.BUSY) {
          changed.awaitUninterruptibly();
        } else if (memory.state == State.LIVE && memory.isKnownTo(source)) {
          memory.users++;
          return new Claim(memory, false);
        } else {
          memory.state = State.BUSY;
          return new Claim(memory, true);
        }
      }
    } finally {
      lock.unlock();
    }
  }

  /** Ends what being busy began, and counts users. */
  private void leave(Mapping memory, int users) {
    if (!memory.isMapped() && !memory.isDraining()) {
      forgetPlacesOf(memory);
    }
    lock.lock();
    try {
      memory.users += users;
      memory.state =
          memory.isMapped() ? State.LIVE : memory.isDraining() ? State.DRAINING : State.GONE;
      if (memory.state == State.GONE) {
        known.remove(memory.key, memory);
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Ends a user's part. The last one frees the mapping behind the work of all users' streams before
   * this returns, unless one of them can only be waited for.
   *
   * @param home the stream that the user frees in order of
   * @param uses other streams it used
   * @throws CudaException if the driver refuses; the user is counted as before then
   */
  public void close(Mapping memory, DriverStream home, @Nullable StreamUse uses) {
    List<DriverStream> working = working(home, uses);
    boolean last;
    lock.lock();
    try {
      awaitIdle(memory);
      working.removeAll(memory.behind);
      memory.behind.addAll(working);
      last = memory.users == 1;
      memory.users--;
      if (!last && memory.behind.size() < LOOK_AGAIN) {
        return;
      }
      memory.state = State.BUSY;
    } finally {
      lock.unlock();
    }
    int users = 1;
    try {
      if (last) {
        memory.free(home);
      } else {
        memory.behind.removeIf(stream -> !mayWork(stream));
      }
      users = 0;
    } finally {
      leave(memory, users);
    }
  }

  private void awaitIdle(Mapping memory) {
    while (memory.state == State.BUSY) {
      changed.awaitUninterruptibly();
    }
  }

  private static List<DriverStream> working(DriverStream home, @Nullable StreamUse uses) {
    List<DriverStream> working = new ArrayList<>();
    if (mayWork(home)) {
      working.add(home);
    }
    for (StreamUse use = uses; use != null; use = use.next()) {
      if (mayWork(use.stream())) {
        working.add(use.stream());
      }
    }
    return working;
  }

  private static boolean mayWork(DriverStream stream) {
    try {
      return !stream.session.isClosed() && !stream.isIdle();
    } catch (CudaException e) {
      return true; // who frees the memory will be told
    }
  }

  /** Frees what was waiting for streams and can go now, and forgets what is gone. */
  public void settle() {
    for (Mapping memory : unused()) {
      if (memory.isReady() && makeBusy(memory)) {
        try {
          memory.settle();
        } finally {
          leave(memory, 0);
        }
      }
    }
  }

  private List<Mapping> unused() {
    lock.lock();
    try {
      return known.isEmpty()
          ? List.of()
          : known.values().stream().filter(Mappings::isUnused).toList();
    } finally {
      lock.unlock();
    }
  }

  private static boolean isUnused(Mapping memory) {
    return memory.state == State.DRAINING || (memory.state == State.LIVE && memory.users == 0);
  }

  private boolean makeBusy(Mapping memory) {
    lock.lock();
    try {
      boolean unused = isUnused(memory);
      if (unused) {
        memory.state = State.BUSY;
      }
      return unused;
    } finally {
      lock.unlock();
    }
  }

  /** Frees what waits for streams of a Cuda whose devices are done, at its end. */
  public void endOf(Session session) {
    Failures failures = new Failures();
    for (Mapping memory : unused()) {
      if (memory.wasLastUsedBy(session) && makeBusy(memory)) {
        try {
          failures.run(memory::end);
        } finally {
          leave(memory, 0);
        }
      }
    }
    failures.throwFirst();
  }

  /** How many allocations are mapped or not freed yet. */
  public int size() {
    lock.lock();
    try {
      return known.size();
    } finally {
      lock.unlock();
    }
  }
}
