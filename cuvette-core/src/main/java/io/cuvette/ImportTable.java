package io.cuvette;

import io.cuvette.BlockLifetime.StreamUse;
import io.cuvette.ImportedMemory.State;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The memory of other processes that is mapped in this one, each allocation once however often it
 * is imported, and whatever handle it is imported by: drivers do not count. The first user maps it,
 * the last one frees it, and whoever comes while the driver is asked about it waits; the lock itself
 * is never held across a call of the driver. Thread-safe.
 */
final class ImportTable {
  /** That of the driver of this machine, which knows processes and not {@link Cuda}s. */
  private static final ImportTable PROCESS = new ImportTable();

  /** So many streams are remembered before the idle ones among them are forgotten. */
  private static final int LOOK_AGAIN = 32;

  /** So often a mapping is lost to a free at the same time before that is an error. */
  private static final int MOST_TRIES = 8;

  /** The identity of the process in what it exports: numbers of processes are used again. */
  final UUID process = UUID.randomUUID();

  /** What of other processes the driver can be asked about. */
  final PeerHandles handles = new PeerHandles();

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Map<Key, ImportedMemory> known = new HashMap<>();
  private final MappedPlaces places = new MappedPlaces();

  /**
   * What tells allocations apart.
   *
   * @param device that it is mapped for; −1 for memory of pools
   * @param bytes the driver's handle
   */
  record Key(int device, ByteBuffer bytes) {
    static Key ofPool(BufferDescriptor descriptor) {
      return new Key(-1, ByteBuffer.wrap(descriptor.handle()));
    }

    static Key ofPlain(BufferDescriptor descriptor, CudaDevice device) {
      return new Key(device.id(), ByteBuffer.wrap(descriptor.handle()));
    }

    byte[] handle() {
      byte[] handle = new byte[bytes.limit()];
      bytes.get(0, handle);
      return handle;
    }
  }

  /** The table for a Cuda; each simulated driver is a process of its own. */
  static ImportTable of(boolean simulated) {
    return simulated ? new ImportTable() : PROCESS;
  }

  /** A user's part: a mapping that is there, or one that the user has to make. */
  private record Claim(ImportedMemory memory, boolean toBeMapped) {}

  /**
   * Counts a user of an allocation, and maps it for the first. {@link #close} must follow.
   *
   * @throws CudaException if the driver refuses; nothing is counted then
   */
  ImportedMemory open(Key key, ImportSource source) {
    settle();
    Claim claim = claim(key, source);
    ImportedMemory memory = claim.memory();
    if (!claim.toBeMapped()) {
      return memory;
    }
    int users = 0;
    try {
      ImportedMemory owner = memory.map(source, this);
      users = owner == memory ? 1 : 0;
      return owner;
    } finally {
      leave(memory, users);
    }
  }

  /** What came of asking the driver to map memory. */
  enum Outcome {
    /** It is the asker's. */
    OWN,

    /** It is another's, of the same allocation; the user is counted there. */
    JOINED,

    /** It may be what was freed meanwhile. */
    UNSURE
  }

  /**
   * Where the driver mapped memory.
   *
   * @param owner whose the place is; null if it is nobody's yet
   */
  record Mapped(Outcome outcome, @Nullable ImportedMemory owner, long address, long bytes) {}

  /**
   * Has the driver map memory, for who made it busy. A driver that is asked for an allocation which
   * it has mapped gives the address of that, whatever the handle: then the mapping has one more
   * user, and is freed once. If it is being freed, the driver is asked again behind that.
   *
   * @throws CudaException if the driver refuses
   * @throws IllegalArgumentException if the memory is a part of another import, or the other way
   *     round; it is not given back, since that could free the other
   */
  Mapped mapped(ImportedMemory memory, ImportSource source) {
    Long address = memory.isMapped() ? memory.address() : null;
    for (int i = 0; i < MOST_TRIES; i++) {
      Mapped mapped = ask(memory, source, address);
      if (mapped.outcome != Outcome.UNSURE) {
        return mapped;
      }
      address = mapped.address;
      if (mapped.owner != null) {
        end(mapped.owner);
      }
    }
    throw new IllegalStateException(
        "0x%x is given for memory of another process as often as it is freed".formatted(address));
  }

  private Mapped ask(ImportedMemory memory, ImportSource source, @Nullable Long before) {
    beginAsking();
    try {
      long address = source.map(memory.key.handle());
      source.checkForeign(address);
      return placed(memory, source, new Mapped(Outcome.OWN, memory, address, size(source, address)));
    } catch (CudaException e) {
      if (before == null || e.status() != CudaStatus.ALREADY_MAPPED) {
        throw source.explained(e);
      }
      return new Mapped(Outcome.OWN, memory, before, size(source, before)); // as it was found
    } finally {
      endAsking();
    }
  }

  private void beginAsking() {
    lock.lock();
    try {
      places.beginAsking();
    } finally {
      lock.unlock();
    }
  }

  private void endAsking() {
    lock.lock();
    try {
      places.endAsking();
    } finally {
      lock.unlock();
    }
  }

  /** At least 1, also where the driver does not tell; who imports asks again. */
  private static long size(ImportSource source, long address) {
    try {
      return Math.max(1, source.bytesAt(address));
    } catch (CudaException e) {
      return 1;
    }
  }

  private Mapped placed(ImportedMemory memory, ImportSource source, Mapped mapped) {
    // Drivers count the mappings of plain memory, which may have more than the one allocation.
    boolean counted = !source.isStreamOrdered();
    long extent = counted ? 1 : mapped.bytes;
    lock.lock();
    try {
      ImportedMemory owner = ownerOf(mapped.address, extent, memory);
      if (owner == null) {
        if (!counted && places.mayBeFreed(mapped.address)) {
          return new Mapped(Outcome.UNSURE, null, mapped.address, mapped.bytes);
        }
        places.put(memory, mapped.address, extent);
        return mapped;
      }
      if (owner.state == State.DRAINING) {
        owner.state = State.BUSY; // for this thread to end
        return new Mapped(Outcome.UNSURE, owner, mapped.address, mapped.bytes);
      }
      if (memory.isMapped() || !owner.isAt(mapped.address)) {
        throw new IllegalArgumentException(
            "descriptor: %d bytes at 0x%x overlap memory that is imported as another allocation"
                .formatted(mapped.bytes, mapped.address));
      }
      owner.join(source);
      return new Mapped(Outcome.JOINED, owner, mapped.address, mapped.bytes);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Whose memory it overlaps, once no thread is busy with that. Who has a mapping does not wait, so
   * that no two wait for each other.
   */
  private @Nullable ImportedMemory ownerOf(long address, long bytes, ImportedMemory asker) {
    ImportedMemory owner = places.owner(address, bytes, asker);
    while (owner != null && owner.state == State.BUSY && !asker.isMapped()) {
      changed.awaitUninterruptibly();
      owner = places.owner(address, bytes, asker);
    }
    return owner;
  }

  /** Waits for the free of memory that this thread is busy with. */
  private void end(ImportedMemory memory) {
    try {
      memory.awaitDrain();
    } finally {
      leave(memory, 0);
    }
  }

  /** A new mapping of the memory need not be where the one was that is freed now. */
  void forgetPlacesOf(ImportedMemory memory) {
    lock.lock();
    try {
      places.remove(memory);
    } finally {
      lock.unlock();
    }
  }

  private Claim claim(Key key, ImportSource source) {
    lock.lock();
    try {
      while (true) {
        ImportedMemory memory = known.get(key);
        if (memory == null) {
          memory = new ImportedMemory(key);
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
  private void leave(ImportedMemory memory, int users) {
    lock.lock();
    try {
      memory.users += users;
      memory.state =
          memory.isMapped() ? State.LIVE : memory.isDraining() ? State.DRAINING : State.GONE;
      if (memory.state == State.GONE) {
        known.remove(memory.key, memory);
        places.remove(memory);
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
  void close(ImportedMemory memory, StreamState home, @Nullable StreamUse uses) {
    List<StreamState> working = working(home, uses);
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

  private void awaitIdle(ImportedMemory memory) {
    while (memory.state == State.BUSY) {
      changed.awaitUninterruptibly();
    }
  }

  private static List<StreamState> working(StreamState home, @Nullable StreamUse uses) {
    List<StreamState> working = new ArrayList<>();
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

  private static boolean mayWork(StreamState stream) {
    try {
      return !stream.cuda.isClosed() && !stream.isIdle();
    } catch (CudaException e) {
      return true; // who frees the memory will be told
    }
  }

  /** Frees what was waiting for streams and can go now, and forgets what is gone. */
  void settle() {
    for (ImportedMemory memory : unused()) {
      if (memory.isReady() && makeBusy(memory)) {
        try {
          memory.settle();
        } finally {
          leave(memory, 0);
        }
      }
    }
  }

  private List<ImportedMemory> unused() {
    lock.lock();
    try {
      return known.isEmpty()
          ? List.of()
          : known.values().stream().filter(ImportTable::isUnused).toList();
    } finally {
      lock.unlock();
    }
  }

  private static boolean isUnused(ImportedMemory memory) {
    return memory.state == State.DRAINING || (memory.state == State.LIVE && memory.users == 0);
  }

  private boolean makeBusy(ImportedMemory memory) {
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
  void endOf(Cuda cuda) {
    Failures failures = new Failures();
    for (ImportedMemory memory : unused()) {
      if (memory.wasLastUsedBy(cuda) && makeBusy(memory)) {
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
  int size() {
    lock.lock();
    try {
      return known.size();
    } finally {
      lock.unlock();
    }
  }
}
