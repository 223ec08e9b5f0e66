package io.cuvette.sim.internal.kernel;

import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.UserFailures;
import io.cuvette.sim.internal.base.InsideKernel;
import io.cuvette.sim.internal.base.PagedBytes;
import io.cuvette.sim.internal.base.SimRefusal;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The threads of the blocks that are resident together. One of them has the turn; which is next is
 * drawn whenever it ends, waits at a barrier, or is interrupted at an access to memory.
 *
 * <p>A virtual thread, the worker, runs one thread of the kernel after the other. Where one waits,
 * it keeps its worker, and another worker goes on: kernels without barriers need but one. All state
 * is guarded by the turn, which is handed over through {@link #turn}.
 */
final class Residents {
  /** The most accesses to memory at which a thread is interrupted. */
  private static final int MOST_SWITCHES = 6;

  private static final int SWITCH_BITS = 10;

  /** After so many accesses others go on: what the thread looks for may be theirs to write. */
  private static final int LONGEST_TURN = 1 << 16;

  /** After so many accesses of all threads that changed nothing, they wait in vain. */
  private static final int MOST_IDLE_ACCESSES = 1 << 28;

  /** The most barriers that a message names. */
  private static final int MOST_NAMED = 3;

  final Grid grid;
  final GlobalMemory memory;
  final Block[] blocks;
  private final SplittableRandom random;

  /**
   * The threads in the order of their starts: the block, times the threads of one, plus the rank.
   */
  private final int[] order;

  private int started;
  private final List<KernelRun> ready = new ArrayList<>();
  private final Barrier whole;
  private int switches;
  private int untilSwitch;

  /** Accesses since the turn was handed over, and since memory changed. */
  private int accesses;

  private int idleAccesses;

  private @Nullable SimRefusal failure;

  private final Thread runner = Thread.currentThread();
  private volatile @Nullable KernelRun turn;
  private volatile boolean ended;

  /** How often a function began to run or to run again; written before the next field. */
  private long changes;

  /** The thread whose function runs. */
  private volatile @Nullable KernelRun running;

  /** A block with its shared memory and barriers. */
  static final class Block {
    final Grid.Place place;
    final int clusterRank;
    final int firstOfCluster;
    final MemorySegment shared;
    final Barrier barrier;
    final Barrier cluster;

    Block(Grid grid, long number, int firstOfCluster, Barrier cluster) {
      this.place = grid.place(number);
      this.clusterRank = (int) (number % grid.clusterSize());
      this.firstOfCluster = firstOfCluster;
      this.shared =
          MemorySegment.ofArray(new long[(grid.sharedBytes() + Long.BYTES - 1) / Long.BYTES])
              .asSlice(0, grid.sharedBytes());
      shared.fill(PagedBytes.UNTOUCHED);
      this.barrier = new Barrier("syncThreads", grid.threads());
      this.cluster = cluster;
    }
  }

  /** The blocks of one group; groups are as large as each other. */
  Residents(Grid grid, GlobalMemory memory, SplittableRandom random, long group) {
    this.grid = grid;
    this.memory = memory;
    memory.onRefusal(refusal -> failed(running, refusal));
    this.random = random;
    int count = grid.residentBlocks();
    int clusterSize = grid.clusterSize();
    this.blocks = new Block[count];
    Barrier cluster = new Barrier("syncCluster", clusterSize * grid.threads());
    for (int i = 0; i < count; i++) {
      if (i % clusterSize == 0) {
        cluster = new Barrier("syncCluster", clusterSize * grid.threads());
      }
      blocks[i] = new Block(grid, group * count + i, i - i % clusterSize, cluster);
    }
    this.order = shuffled(Math.multiplyExact(count, grid.threads()));
    this.whole = new Barrier("syncGrid", order.length);
    this.switches = random.nextInt(MOST_SWITCHES + 1);
    this.untilSwitch = nextSwitch();
  }

  private int[] shuffled(int count) {
    int[] result = new int[count];
    for (int i = 0; i < count; i++) {
      int other = random.nextInt(i + 1);
      result[i] = result[other];
      result[other] = i;
    }
    return result;
  }

  private int nextSwitch() {
    return 1 + random.nextInt(1 << random.nextInt(SWITCH_BITS));
  }

  /** Runs the threads to their end. */
  void run() {
    boolean interrupted = false;
    KernelRun first = fresh();
    startWorker(first);
    FunctionWatch watch = new FunctionWatch(grid.kernel().patience());
    while (!ended) {
      LockSupport.parkNanos(this, watch.lookNanos());
      interrupted |= Thread.interrupted();
      look(watch);
    }
    if (interrupted) {
      runner.interrupt();
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Goes on without a thread whose function waits; the runner has the turn in its place. */
  private void look(FunctionWatch watch) {
    KernelRun thread = running;
    if (thread == null || !watch.waitsTooLong(thread, changes)) {
      return;
    }
    long before = changes;
    // One that waits for its turn has ceased to run before, or runs again after a change.
    if (thread.leave(() -> thread.isWaiting() && running == thread && changes == before)) {
      fail(
          thread,
          new SimRefusal(
              CudaStatus.LAUNCH_TIMEOUT,
              "its function has waited for %s, perhaps for a thread that waits for the kernel"
                  .formatted(grid.kernel().patience())));
      handTo(next());
      Thread worker = thread.worker();
      if (worker != null) {
        worker.interrupt();
      }
    }
  }

  private void startWorker(KernelRun first) {
    Thread _ =
        Thread.ofVirtual()
            .name("cuvette-sim-kernel")
            .inheritInheritableThreadLocals(false)
            .start(() -> work(first));
  }

  /** Runs threads of the kernel as long as the next one has not started yet. */
  private void work(KernelRun first) {
    InsideKernel.enter();
    try {
      KernelRun next = first;
      while (next != null && next.isNew()) {
        if (!run(next)) {
          return;
        }
        next = next();
      }
      handTo(next);
    } catch (Throwable e) { // such as a full heap, outside of all functions
      giveUp(e);
    }
  }

  /** Nobody else has the turn, so whoever waits must not be left. */
  private void giveUp(Throwable cause) {
    try {
      fail(null, cause);
      handTo(next());
    } catch (Throwable _) { // the heap is full still
      handTo(null);
    }
  }

  /** Runs a thread to its end; false if the turn was taken from it meanwhile. */
  private boolean run(KernelRun thread) {
    thread.start();
    goesOn(thread);
    Throwable thrown = null;
    try {
      grid.kernel().function().run(thread);
    } catch (Throwable e) { // whatever the user's function throws
      thrown = e;
    }
    if (!thread.end()) {
      return false;
    }
    running = null;
    boolean _ = Thread.interrupted(); // which the next function must not see
    if (thrown != null) {
      fail(thread, thrown); // which keeps the first failure, if this is that of an abandoned thread
    } else {
      countEnd(thread);
    }
    return true;
  }

  private void countEnd(KernelRun thread) {
    changed();
    try {
      thread.block.barrier.ended();
      thread.block.cluster.ended();
      whole.ended();
    } catch (SimRefusal e) {
      fail(thread, e);
    }
  }

  private void goesOn(KernelRun thread) {
    changes++;
    running = thread;
  }

  /** Leaves the current thread, whose function swallows its refusals, where it is. */
  private void leaveForEver(KernelRun thread) {
    if (thread.leaves()) {
      running = null;
      handTo(next());
    }
    KernelRun.stopForEver();
  }

  /** Fails the launch; gives what the function of the current thread is told. */
  SimRefusal failed(@Nullable KernelRun thread, SimRefusal refusal) {
    fail(thread, refusal);
    return Objects.requireNonNullElse(failure, refusal);
  }

  private void fail(@Nullable KernelRun thread, Throwable cause) {
    if (failure == null) {
      failure = failure(thread, cause);
      for (Block block : blocks) {
        block.barrier.release(ready);
        block.cluster.release(ready);
      }
      whole.release(ready);
    }
  }

  private SimRefusal failure(@Nullable KernelRun thread, Throwable cause) {
    String where =
        "kernel %s%s: ".formatted(grid.kernel().name(), thread == null ? "" : ", " + thread);
    return cause instanceof SimRefusal refusal
        ? new SimRefusal(refusal.status(), where + refusal.text())
        : new SimRefusal(CudaStatus.LAUNCH_FAILED, where + UserFailures.text(cause));
  }

  /** Lets a thread that waits go on; without one all have ended. */
  private void handTo(@Nullable KernelRun next) {
    if (next == null) {
      ended = true;
      LockSupport.unpark(runner);
    } else {
      turn = next;
      LockSupport.unpark(next.worker());
    }
  }

  /** The thread that goes on; null if none is left. */
  private @Nullable KernelRun next() {
    if (failure == null && started == order.length && ready.isEmpty() && isAnyWaiting()) {
      fail(null, new SimRefusal(CudaStatus.LAUNCH_FAILED, "no thread can go on: " + waits()));
    }
    int fresh = failure == null ? order.length - started : 0;
    while (fresh + ready.size() > 0) {
      int drawn = random.nextInt(fresh + ready.size());
      KernelRun next = drawn < fresh ? fresh() : taken(drawn - fresh);
      if (!next.hasEnded()) { // as one has that failed while others knew it as ready
        return next;
      }
    }
    return null;
  }

  private KernelRun fresh() {
    int number = order[started++];
    return new KernelRun(this, blocks[number / grid.threads()], number % grid.threads());
  }

  private KernelRun taken(int index) {
    KernelRun last = ready.removeLast();
    return index == ready.size() ? last : ready.set(index, last);
  }

  private boolean isAnyWaiting() {
    return barriers().anyMatch(Barrier::isWaitedAt);
  }

  private String waits() {
    return barriers()
        .filter(Barrier::isWaitedAt)
        .distinct()
        .limit(MOST_NAMED)
        .map(Barrier::toString)
        .collect(Collectors.joining(", "));
  }

  private Stream<Barrier> barriers() {
    return Stream.concat(
        Stream.of(whole), Stream.of(blocks).flatMap(each -> Stream.of(each.barrier, each.cluster)));
  }

  /** Waits at a barrier. */
  void await(KernelRun thread, Barrier barrier) {
    checkNotFailed(thread);
    try {
      barrier.arrive(thread, ready);
    } catch (SimRefusal e) {
      throw failed(thread, e);
    }
    passOn(thread);
  }

  /** Waits at the barrier of the grid. */
  void awaitAll(KernelRun thread) {
    if (!grid.shape().cooperative()) {
      throw failed(
          thread,
          new SimRefusal(CudaStatus.LAUNCH_FAILED, "syncGrid in a launch that is not cooperative"));
    }
    await(thread, whole);
  }

  /** Notes an access to memory, at which others may go on first. */
  void access(KernelRun thread, boolean spins) {
    checkNotFailed(thread);
    if (++idleAccesses == MOST_IDLE_ACCESSES) {
      throw failed(
          thread,
          new SimRefusal(
              CudaStatus.LAUNCH_TIMEOUT,
              "%d accesses in a row changed nothing: what its threads wait for is not written by any"
                  .formatted(idleAccesses)));
    }
    accesses++;
    if (switches > 0 && --untilSwitch == 0) {
      switches--;
      untilSwitch = nextSwitch();
      giveWay(thread);
    } else if (spins || accesses >= LONGEST_TURN) {
      giveWay(thread);
    }
  }

  /** Notes that memory has changed, so that a thread that waits may see it. */
  void changed() {
    idleAccesses = 0;
  }

  private void giveWay(KernelRun thread) {
    ready.add(thread);
    passOn(thread);
  }

  private void checkNotFailed(KernelRun thread) {
    if (failure != null) {
      if (thread.refused()) {
        leaveForEver(thread);
      }
      throw failure;
    }
  }

  /** Hands the turn to the next thread, and waits until this one, which others know, has it. */
  private void passOn(KernelRun thread) {
    accesses = 0;
    KernelRun next = next();
    if (next != thread) {
      running = null;
      if (next != null && next.isNew()) {
        startWorker(next);
      } else {
        handTo(next);
      }
      boolean interrupted = false;
      while (turn != thread) {
        LockSupport.park(this);
        interrupted |= Thread.interrupted(); // else it would not park again
      }
      turn = null;
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    goesOn(thread);
    checkNotFailed(thread);
  }
}
