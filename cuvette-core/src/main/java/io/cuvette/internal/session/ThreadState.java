package io.cuvette.internal.session;

import io.cuvette.internal.lifetime.ShutdownGate;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * What is current on one thread for one {@link Session}. It lives in a thread local, never in the
 * OS thread: a virtual thread may change its carrier between two driver calls.
 */
public final class ThreadState {
  /** Allocators that make new allocators without end are found here. */
  private static final int MOST_NESTED = 100;

  public final Thread thread = Thread.currentThread();
  public Device device;

  /** What the handles keep for this thread, which is theirs alone. */
  public @Nullable Object ofHandles;

  private @Nullable Running running;

  /** The callback that this thread is inside of. */
  public final @Nullable RunningCallback callback;

  public ThreadState(Device device, @Nullable RunningCallback callback) {
    this.device = device;
    this.callback = callback;
  }

  /**
   * Notes that this thread is inside an allocator, to find one that calls itself.
   *
   * @throws IllegalStateException if it is inside it already
   */
  public void enter(Object allocator) {
    enter(allocator, allocator);
  }

  /**
   * Notes that this thread is inside code of the user that a resource has called to allocate.
   *
   * @throws IllegalStateException if it is inside other such code of the resource already
   */
  public void enter(Object resource, Object code) {
    checkReentry(resource);
    begin(new Running(resource, code, false, running));
  }

  /**
   * Notes that this thread is inside a native function of the user. It is called as the driver's
   * are, inside a step of the engine, so that the end waits for it and what it returns is not lost.
   */
  public void enterNative(Object resource) {
    running = new Running(resource, resource, false, running);
  }

  /**
   * Checks before an allocation by code of the user.
   *
   * @throws IllegalStateException if this thread is inside such code of the resource already
   */
  public void checkReentry(Object resource) {
    for (Running r = running; r != null; r = r.outer) {
      if (r.resource == resource) {
        throw reentrant(r);
      }
    }
    if (running != null && running.depth >= MOST_NESTED) {
      throw reentrant(running);
    }
  }

  /** Notes that this thread is inside code of the user; {@link #leave} follows. */
  public void enterCode(Object what) {
    enterCode(what, what);
  }

  /** The same for code that a resource has called. */
  public void enterCode(Object resource, Object code) {
    begin(new Running(resource, code, false, running));
  }

  /** The same for a hook of a pool. */
  public void enterHook(Object pool, Object hook) {
    begin(new Running(pool, hook, true, running));
  }

  private void begin(Running inside) {
    assert ShutdownGate.isOutside() : inside.code + " would run inside a step of the engine";
    running = inside;
  }

  /**
   * Checks before an allocation that calls hooks.
   *
   * @throws IllegalStateException if this thread is inside a hook of the pool
   */
  public void checkOutsideHooks(Object pool) {
    Running hook = hookOf(pool);
    if (hook != null) {
      throw reentrant(hook);
    }
  }

  /** Whether this thread is inside a hook of a pool. */
  public boolean isInsideHook(Object pool) {
    return hookOf(pool) != null;
  }

  private @Nullable Running hookOf(Object pool) {
    Running found = running;
    while (found != null && !(found.resource == pool && found.isHook)) {
      found = found.outer;
    }
    return found;
  }

  private static IllegalStateException reentrant(Running inside) {
    return new IllegalStateException(
        ("re-entrant allocation: %s allocated from %s, which had called it (expected: memory of"
                + " its upstream or of another resource, such as MemoryResource.direct())")
            .formatted(inside.code, inside.code == inside.resource ? "itself" : inside.resource));
  }

  /**
   * Checks that this thread is not inside code of the user that the library called.
   *
   * @throws IllegalStateException if it is: the caller would wait for itself
   */
  public void checkOutsideCode(String call) {
    Running inside = running;
    if (inside != null) {
      throw new IllegalStateException(
          ("%s inside what the library called for %s (expected: outside of allocators, hooks,"
                  + " listeners, native functions and callbacks)")
              .formatted(call, inside.code));
    }
  }

  public void leave() {
    running = Objects.requireNonNull(running).outer;
  }

  /**
   * Code of the user that this thread is inside of.
   *
   * @param resource what called it
   * @param isHook whether it is a hook of a pool
   * @param depth how many there are
   */
  private record Running(
      Object resource, Object code, boolean isHook, @Nullable Running outer, int depth) {
    Running(Object resource, Object code, boolean isHook, @Nullable Running outer) {
      this(resource, code, isHook, outer, outer == null ? 1 : outer.depth + 1);
    }
  }
}
