package io.cuvette;

import io.cuvette.BlockLifetime.StreamUse;
import io.cuvette.ImportedMemory.State;
import io.cuvette.driver.CudaException;
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
 * is imported: drivers do not count. The first user maps it, the last one frees it, and whoever
 * comes while the driver is asked about it waits; the lock itself is never held across a call of
 * the driver. Thread-safe.
 */
final class ImportTable {
  /** That of the driver of this machine, which knows processes and not {@link Cuda}s. */
  private static final ImportTable PROCESS = new ImportTable();

  /** So many streams are remembered before the idle ones among them are forgotten. */
  private static final int LOOK_AGAIN = 32;

  /** The identity of the process in what it exports: numbers of processes are used again. */
  final UUID process = UUID.randomUUID();

  /** What of other processes the driver can be asked about. */
  final PeerHandles handles = new PeerHandles();

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final Map<Key, ImportedMemory> known = new HashMap<>();

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
    if (claim.toBeMapped()) {
      int users = 0;
      try {
        memory.map(source);
        users = 1;
      } finally {
        leave(memory, users);
      }
    }
    return memory;
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
