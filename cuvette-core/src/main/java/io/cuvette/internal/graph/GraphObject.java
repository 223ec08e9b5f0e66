package io.cuvette.internal.graph;

import io.cuvette.internal.base.Locked;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import java.lang.ref.Reference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A graph, or what was instantiated from one, by its handle of the driver. It ends also when it is
 * forgotten. One thread at a time is in calls of the driver about it, as CUDA asks for.
 */
public abstract sealed class GraphObject permits OpenGraph, OpenGraphExec {
  final Device device;

  final @Nullable GraphArena memory;

  private final long handle;
  private final ObjectEnding ending;
  private final ReentrantLock lock = new ReentrantLock();

  GraphObject(Device device, @Nullable GraphArena memory, long handle, Ended ended) {
    this.device = device;
    this.memory = memory;
    this.handle = handle;
    this.ending = new ObjectEnding(this, device.session(), ended);
  }

  /** The end, which does not refer to the object. */
  abstract static class Ended implements ObjectEnding.Ended {
    final Session session;
    final long value;
    private final Once destroyed = new Once();

    Ended(Session session, long value) {
      this.session = session;
      this.value = value;
    }

    /** Gives it back to the driver; can come again after a failure. */
    abstract void destroy();

    /**
     * It has been destroyed.
     *
     * @param withSession whether its session ends, which has waited for all work
     */
    abstract void over(boolean withSession);

    @Override
    public final void end(ObjectEnding ending) {
      session.gate().run(() -> end(ending, false));
    }

    @Override
    public final void endNow(ObjectEnding ending) {
      end(ending, true);
    }

    private void end(ObjectEnding ending, boolean withSession) {
      destroyed.free(this::destroy);
      ending.forget();
      over(withSession);
    }
  }

  /** It is complete. */
  final void listed() {
    ending.listed();
  }

  /** Makes a call of the driver with the handle, which is not destroyed meanwhile. */
  public final <T> T call(LongFunction<T> call) {
    device.session().checkOpen();
    ending.hold();
    try {
      return device
          .session()
          .gate()
          .ask(() -> Locked.get(lock, () -> call.apply(handle))); // who closes the Cuda waits
    } finally {
      unhold();
    }
  }

  /** Does something of several steps, which neither ends nor changes meanwhile. */
  public final <T> T alone(Supplier<T> step) {
    device.session().checkOpen();
    ending.hold();
    try {
      return Locked.get(lock, step);
    } finally {
      unhold();
    }
  }

  /**
   * Begins a call of the driver, for who holds a stream, for which whoever closes the Cuda waits.
   *
   * @return the handle, which is not destroyed until {@link #endCall}
   */
  final long beginCall() {
    ending.hold();
    lock.lock();
    return handle;
  }

  /** Ends what {@link #beginCall} began. */
  final void endCall() {
    lock.unlock();
    unhold();
  }

  private void unhold() {
    try {
      ending.unhold();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  public final Device device() {
    return device;
  }

  /** What its work shares memory with; null if it has memory of its own. */
  public final @Nullable GraphArena memory() {
    return memory;
  }

  /** The handle of the driver, as long as it is open. */
  public final long handle() {
    ending.checkOpen();
    return handle;
  }

  public final boolean isClosed() {
    return ending.ended();
  }

  public final void close() {
    ending.close(this);
  }

  @Override
  public final String toString() {
    return ending.describe();
  }
}
