package io.cuvette.ffm.call;

import io.cuvette.driver.StreamHandle;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * Where calls of the driver start, as long as it is open. Thread-safe.
 *
 * <p>A capture in global mode forbids every thread what could be unsafe, and is invalid once it was
 * tried. So calls run in relaxed mode, but for those that only queue work or query captures.
 */
public final class Entry {
  private static final int OPEN = 0;
  private static final int CLOSED = 1;
  private static final int SHUT_DOWN = 2;

  private static final AtomicIntegerFieldUpdater<Entry> STATE =
      AtomicIntegerFieldUpdater.newUpdater(Entry.class, "state");

  private volatile int state = OPEN;
  private final Contexts contexts = Contexts.ofAllDevices();

  /** The devices and their contexts. */
  public Contexts contexts() {
    return contexts;
  }

  /** The context of a device, retained if it was not yet. */
  public long context(int device) {
    checkOpen();
    return contexts.of(device);
  }

  /** Starts a call that needs no context. */
  public CallFrame enter() {
    checkOpen();
    return CallFrame.takeRelaxed();
  }

  /** Starts a call with the context of any device current on the thread. */
  public CallFrame enterAny() {
    checkOpen();
    return relaxed(contexts.any());
  }

  /** Starts a call with the context of a device current on the thread. */
  public CallFrame enter(int device) {
    checkOpen();
    return relaxed(device);
  }

  /** Starts a call with a context current on the thread that may not be one of the devices'. */
  public CallFrame enterContext(long context) {
    checkOpen();
    CallFrame frame = CallFrame.take();
    frame.enter(context);
    frame.relax();
    return frame;
  }

  /**
   * Starts a call about a stream or an event, whose handle names the context; it is made current
   * for the handles that mean another stream in each context, and if the driver misses it ({@link
   * CallFrame#lacksContext}).
   */
  public CallFrame enterFor(int device, long handle) {
    checkOpen();
    return relaxed(device, handle);
  }

  /** Like {@link #enter(int)}, for a call that no capture forbids, in the mode of the thread. */
  public CallFrame enterAsIs(int device) {
    checkOpen();
    return withContext(device);
  }

  /** Like {@link #enterFor}, for a call that no capture forbids, in the mode of the thread. */
  public CallFrame enterForAsIs(int device, long handle) {
    checkOpen();
    if (StreamHandle.isBuiltIn(handle)) {
      return withContext(device);
    }
    long context = contexts.of(device);
    CallFrame frame = CallFrame.take();
    frame.mayNeed(context);
    return frame;
  }

  /**
   * Starts a call that frees something allocated in stream order, as {@link #enterFor} does: null
   * once the JVM is shutting down. The process takes everything with it, and the driver may be gone
   * already.
   */
  public @Nullable CallFrame enterToFree(int device, long handle) {
    return mayFree() ? relaxed(device, handle) : null;
  }

  /** Like {@link #enterToFree(int, long)}, with the context of a device current on the thread. */
  public @Nullable CallFrame enterToFree(int device) {
    return mayFree() ? relaxed(device) : null;
  }

  /** Like {@link #enterToFree(int, long)}, for what needs no context. */
  public @Nullable CallFrame enterToFree() {
    return mayFree() ? CallFrame.takeRelaxed() : null;
  }

  private CallFrame relaxed(int device) {
    CallFrame frame = withContext(device);
    frame.relax();
    return frame;
  }

  private CallFrame relaxed(int device, long handle) {
    if (Long.compareUnsigned(handle, StreamHandle.PER_THREAD) <= 0) {
      return relaxed(device);
    }
    long context = contexts.of(device);
    CallFrame frame = CallFrame.takeRelaxed();
    frame.mayNeed(context);
    return frame;
  }

  private CallFrame withContext(int device) {
    long context = contexts.of(device);
    CallFrame frame = CallFrame.take();
    frame.enter(context);
    return frame;
  }

  private boolean mayFree() {
    int now = state;
    if (now == CLOSED) {
      throw Contexts.closed();
    }
    return now == OPEN;
  }

  /**
   * Throws if no call may be made any more.
   *
   * @throws IllegalStateException if the driver is closed, or the JVM is shutting down
   */
  public void checkOpen() {
    if (state != OPEN) {
      throw refused();
    }
  }

  private IllegalStateException refused() {
    return state == CLOSED
        ? Contexts.closed()
        : new IllegalStateException("driver ffm: no calls while the JVM is shutting down");
  }

  /** Keeps every further call from the driver, as the JVM is shutting down. */
  public void shutDown() {
    STATE.compareAndSet(this, OPEN, SHUT_DOWN);
  }

  /** Refuses further calls; whether this call was the one that closed. */
  public boolean close() {
    return STATE.compareAndSet(this, OPEN, CLOSED);
  }
}
