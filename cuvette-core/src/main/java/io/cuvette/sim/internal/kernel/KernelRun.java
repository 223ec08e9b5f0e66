package io.cuvette.sim.internal.kernel;

import static io.cuvette.driver.LaunchWatcher.Touch.ATOMIC;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.LaunchWatcher.Touch;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.internal.base.SimRefusal;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.IntUnaryOperator;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;

/** One thread of a kernel. Guarded by the turn of its threads. */
final class KernelRun implements KernelThread {
  /** After so many fruitless looks at one address in a row others go on. */
  private static final int PATIENCE = 1 << 10;

  /** After a failure, a thread that goes on in spite of so many refusals is stopped. */
  private static final int MOST_REFUSALS = 1_000;

  private static final AtomicReferenceFieldUpdater<KernelRun, Progress> PROGRESS =
      AtomicReferenceFieldUpdater.newUpdater(KernelRun.class, Progress.class, "progress");

  /** How far its function is. */
  private enum Progress {
    OPEN,
    /** Another Java thread finds out whether it goes on at all. */
    DOUBTED,
    /** Others go on without it. */
    LEFT,
    ENDED
  }

  /** And after so many the thread has waited in vain. */
  private static final int MOST_LOOKS = 1 << 22;

  final Residents.Block block;
  private final Residents residents;
  private final LaunchShape shape;
  private final int rank;
  private @Nullable Thread worker;
  private volatile Progress progress = Progress.OPEN;

  /** How often it was refused after the failure of a thread. */
  private int refusals;

  /** Whether it is in the function of an atomic update, at which others must not go on. */
  private boolean updates;

  /** What an address held at the last look, and how often it did in a row. */
  private long lastAddress = -1;

  private long lastValue;
  private int looks;

  KernelRun(Residents residents, Residents.Block block, int rank) {
    this.residents = residents;
    this.block = block;
    this.shape = residents.grid.shape();
    this.rank = rank;
  }

  /** The current thread runs it from now on. */
  void start() {
    worker = Thread.currentThread();
  }

  /** Its function has returned; false if others go on without it. */
  boolean end() {
    return settled() == Progress.OPEN && moves(Progress.OPEN, Progress.ENDED);
  }

  /** Others shall go on without it, says its own Java thread; false if they do already. */
  boolean leaves() {
    return settled() == Progress.OPEN && moves(Progress.OPEN, Progress.LEFT);
  }

  /**
   * Others shall go on without it, says another Java thread. Its own holds at the next use of this
   * object while that is decided.
   *
   * @param isRight whether its function waits; asked while it cannot go on unnoticed
   * @return whether they do
   */
  boolean leave(BooleanSupplier isRight) {
    if (!moves(Progress.OPEN, Progress.DOUBTED)) {
      return false;
    }
    boolean result = isRight.getAsBoolean();
    progress = result ? Progress.LEFT : Progress.OPEN;
    return result;
  }

  private boolean moves(Progress from, Progress to) {
    return PROGRESS.compareAndSet(this, from, to);
  }

  /** What is decided. */
  private Progress settled() {
    Progress current = progress;
    while (current == Progress.DOUBTED) {
      Thread.onSpinWait();
      current = progress;
    }
    return current;
  }

  /** Whether its function waits for something. */
  boolean isWaiting() {
    Thread current = worker;
    return current != null
        && switch (current.getState()) {
          case BLOCKED, WAITING, TIMED_WAITING -> true;
          default -> false;
        };
  }

  /** Counts a refusal; true if its function goes on in spite of too many. */
  boolean refused() {
    return ++refusals > MOST_REFUSALS;
  }

  /** Ends the work of the current Java thread, whose function nothing else ends. */
  static void stopForEver() {
    while (true) {
      LockSupport.park();
      boolean _ = Thread.interrupted();
    }
  }

  boolean isNew() {
    return worker == null;
  }

  boolean hasEnded() {
    return progress == Progress.ENDED || progress == Progress.LEFT;
  }

  /** The thread that runs it. */
  @Nullable Thread worker() {
    return worker;
  }

  @Override
  public int threadX() {
    return rank % shape.blockX();
  }

  @Override
  public int threadY() {
    return rank / shape.blockX() % shape.blockY();
  }

  @Override
  public int threadZ() {
    return rank / shape.blockX() / shape.blockY();
  }

  @Override
  public int blockX() {
    return block.place.x();
  }

  @Override
  public int blockY() {
    return block.place.y();
  }

  @Override
  public int blockZ() {
    return block.place.z();
  }

  @Override
  public int blockDimX() {
    return shape.blockX();
  }

  @Override
  public int blockDimY() {
    return shape.blockY();
  }

  @Override
  public int blockDimZ() {
    return shape.blockZ();
  }

  @Override
  public int gridDimX() {
    return shape.gridX();
  }

  @Override
  public int gridDimY() {
    return shape.gridY();
  }

  @Override
  public int gridDimZ() {
    return shape.gridZ();
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int clusterRank() {
    return block.clusterRank;
  }

  @Override
  public int clusterSize() {
    return residents.grid.clusterSize();
  }

  @Override
  public long pointer(int index) {
    return longValue(index);
  }

  @Override
  public int intValue(int index) {
    return parameter(index, Integer.BYTES).get(ValueLayout.JAVA_INT_UNALIGNED, 0);
  }

  @Override
  public long longValue(int index) {
    return parameter(index, Long.BYTES).get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
  }

  @Override
  public float floatValue(int index) {
    return Float.intBitsToFloat(intValue(index));
  }

  @Override
  public double doubleValue(int index) {
    return Double.longBitsToDouble(longValue(index));
  }

  @Override
  public MemorySegment struct(int index) {
    long bytes =
        index < 0 || index >= residents.grid.layout().size()
            ? 0
            : residents.grid.layout().get(index).size();
    MemorySegment copy =
        MemorySegment.ofArray(new long[(int) ((bytes + Long.BYTES - 1) / Long.BYTES)])
            .asSlice(0, bytes);
    return copy.copyFrom(parameter(index, bytes)).asReadOnly();
  }

  private MemorySegment parameter(int index, long bytes) {
    int count = residents.grid.layout().size();
    if (index < 0 || index >= count) {
      throw refusal(
          CudaStatus.LAUNCH_FAILED,
          "parameter %d (expected: >= 0 and below %d, the number of parameters)"
              .formatted(index, count));
    }
    KernelParameter place = residents.grid.layout().get(index);
    if (place.size() != bytes) {
      throw refusal(
          CudaStatus.LAUNCH_FAILED,
          "parameter %d read as %d bytes (expected: %d, its size)"
              .formatted(index, bytes, place.size()));
    }
    return residents.grid.arguments().asSlice(place.offset(), bytes);
  }

  @Override
  public byte getByte(long address) {
    access();
    return (byte) looked(address, residents.memory.getByte(address));
  }

  @Override
  public int getInt(long address) {
    access();
    return (int) looked(address, residents.memory.getInt(address, Touch.READ));
  }

  @Override
  public long getLong(long address) {
    access();
    return looked(address, residents.memory.getLong(address, Touch.READ));
  }

  @Override
  public void setByte(long address, byte value) {
    access();
    residents.memory.setByte(address, value);
    wrote();
  }

  @Override
  public void setInt(long address, int value) {
    access();
    residents.memory.setInt(address, value, Touch.WRITE);
    wrote();
  }

  @Override
  public void setLong(long address, long value) {
    access();
    residents.memory.setLong(address, value, Touch.WRITE);
    wrote();
  }

  @Override
  public void getBytes(long address, MemorySegment target) {
    access();
    residents.memory.getBytes(address, target);
  }

  @Override
  public void setBytes(long address, MemorySegment source) {
    access();
    residents.memory.setBytes(address, source);
    wrote();
  }

  @Override
  public int atomicUpdate(long address, IntUnaryOperator change) {
    return (int) update(address, false, old -> change.applyAsInt((int) old));
  }

  @Override
  public long atomicUpdateLong(long address, LongUnaryOperator change) {
    return update(address, true, change);
  }

  private long update(long address, boolean isLong, LongUnaryOperator change) {
    access();
    GlobalMemory memory = residents.memory;
    long old = isLong ? memory.getLong(address, ATOMIC) : memory.getInt(address, ATOMIC);
    updates = true;
    long changed;
    try {
      changed = change.applyAsLong(old);
    } finally {
      updates = false;
    }
    if (isLong) {
      memory.setLong(address, changed, ATOMIC);
    } else {
      memory.setInt(address, (int) changed, ATOMIC);
    }
    if (changed == old) {
      return looked(address, old);
    }
    wrote();
    return old;
  }

  /** Notes that memory was written, so that no look at it was in vain. */
  private void wrote() {
    lastAddress = -1;
    residents.changed();
  }

  /** A view that outlives its thread, or is used by another one, has no turn that guards memory. */
  private void checkRuns() {
    if (!isOwn()) {
      if (Thread.currentThread() == worker && progress == Progress.LEFT && refused()) {
        stopForEver();
      }
      throw new IllegalStateException(
          "%s is used after its end or by another Java thread (expected: by its function alone)"
              .formatted(this));
    }
    if (updates) {
      throw new IllegalStateException(
          "%s uses memory or a barrier in an atomic update (expected: before or after it)"
              .formatted(this));
    }
  }

  /** Whether the current Java thread runs it, and has the turn. */
  private boolean isOwn() {
    return Thread.currentThread() == worker
        && (progress == Progress.OPEN || settled() == Progress.OPEN);
  }

  /** A refusal, which fails the launch even if the function goes on. */
  private SimRefusal refusal(CudaStatus status, String text) {
    SimRefusal refusal = new SimRefusal(status, text);
    return isOwn() ? residents.failed(this, refusal) : refusal;
  }

  private void access() {
    checkRuns();
    residents.access(this, looks > 0 && looks % PATIENCE == 0);
  }

  /**
   * Notes a look at memory that changed nothing: a thread that waits for another does only that.
   */
  private long looked(long address, long value) {
    looks = address == lastAddress && value == lastValue ? looks + 1 : 0;
    lastAddress = address;
    lastValue = value;
    if (looks == MOST_LOOKS) {
      throw refusal(
          CudaStatus.LAUNCH_TIMEOUT,
          "0x%x held %d at %d looks in a row: it waits for a thread that is not resident with it"
              .formatted(address, value, looks));
    }
    return value;
  }

  @Override
  public MemorySegment shared() {
    return block.shared;
  }

  @Override
  public MemorySegment shared(int of) {
    if (of < 0 || of >= clusterSize()) {
      throw refusal(
          CudaStatus.LAUNCH_FAILED,
          "block %d of the cluster (expected: >= 0 and below %d)".formatted(of, clusterSize()));
    }
    return residents.blocks[block.firstOfCluster + of].shared;
  }

  @Override
  public void syncThreads() {
    checkRuns();
    residents.await(this, block.barrier);
  }

  @Override
  public void syncCluster() {
    checkRuns();
    residents.await(this, block.cluster);
  }

  @Override
  public void syncGrid() {
    checkRuns();
    residents.awaitAll(this);
  }

  @Override
  public void setConditional(long condition, int value) {
    access();
    residents.memory.setCondition(condition, value);
  }

  @Override
  public String toString() {
    return "block %s, thread (%d, %d, %d)".formatted(block.place, threadX(), threadY(), threadZ());
  }
}
