package io.cuvette.sim.internal.kernel;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.ArrayList;
import java.util.List;

/**
 * Where threads wait for each other. All must come: on a GPU a thread that ends before may leave
 * the others waiting for ever. Guarded by the turn of the threads.
 */
final class Barrier {
  private final String name;
  private final int threads;
  private final List<KernelRun> waiting = new ArrayList<>();
  private int ended;

  /** A barrier of a number of threads; the name is that of the call. */
  Barrier(String name, int threads) {
    this.name = name;
    this.threads = threads;
  }

  /** A thread has come and waits, unless it is the last one: then all go on. */
  void arrive(KernelRun thread, List<KernelRun> ready) {
    waiting.add(thread);
    check();
    if (waiting.size() == threads) {
      release(ready);
    }
  }

  /** Lets all go on that wait. */
  void release(List<KernelRun> ready) {
    ready.addAll(waiting);
    waiting.clear();
  }

  /** A thread has ended. */
  void ended() {
    ended++;
    check();
  }

  boolean isWaitedAt() {
    return !waiting.isEmpty();
  }

  private void check() {
    if (ended > 0 && isWaitedAt()) {
      throw new SimRefusal(
          CudaStatus.LAUNCH_FAILED,
          "%d of %d threads ended without %s, where %d wait"
              .formatted(ended, threads, name, waiting.size()));
    }
  }

  @Override
  public String toString() {
    return "%d of %d threads wait at %s".formatted(waiting.size(), threads, name);
  }
}
