package io.cuvette.internal.fence;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.UserObject;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/** The captures that use memory of one {@code Cuda}, whoever began them. Thread-safe. */
public final class Captures {
  private final CudaDriver driver;
  private final ConcurrentHashMap<Long, Capture> known = new ConcurrentHashMap<>();

  /** A step that comes after work; each is taken once. */
  private static final class Waiting {
    private final Fence work;
    private final Runnable step;
    private final AtomicBoolean taken = new AtomicBoolean();
    private final AtomicBoolean failed = new AtomicBoolean();

    Waiting(Fence work, Runnable step) {
      this.work = work;
      this.step = step;
    }

    boolean isOver() {
      if (isDone() && taken.compareAndSet(false, true)) {
        step.run();
      }
      return taken.get();
    }

    /** A failure is told once: a device that failed is no reason to fail for who uses another. */
    private boolean isDone() {
      try {
        return work.isDone();
      } catch (CudaException e) {
        if (failed.compareAndSet(false, true)) {
          throw e;
        }
        return false;
      }
    }
  }

  private final Queue<Waiting> waiting = new ConcurrentLinkedQueue<>();

  /** Whether a stream is known that somebody else could capture. */
  private volatile boolean anyPossible;

  public Captures(CudaDriver driver) {
    this.driver = driver;
  }

  /** Somebody has the handle of a stream from now on. */
  public void arePossible() {
    anyPossible = true;
  }

  /** False as long as nobody could have begun to capture a stream that is known here. */
  public boolean isAnyPossible() {
    return anyPossible;
  }

  /**
   * The capture that a stream, which the caller holds, takes part in; null if in none.
   *
   * @param own of the stream
   * @param ends held by who ends the capture: its graph is not destroyed between a look at it and
   *     the call that retains it
   */
  public @Nullable Capture of(int device, long stream, OwnCapture own, Lock ends) {
    boolean expected = own.wasCaptured;
    if (!expected && driver.captures().streamIsCapturing(device, stream) == 0) {
      return null; // which needs no heap
    }
    CaptureInfo info = driver.captures().streamGetCaptureInfo(device, stream);
    if (expected != info.isCapturing()) {
      own.wasCaptured = !expected;
    }
    if (!info.isCapturing()) {
      return null;
    }
    Capture capture = info.isActive() ? known.get(info.id()) : null; // else it has no id
    if (capture != null) {
      return capture;
    }
    ends.lock();
    try {
      return retained(device, stream, own, ends);
    } finally {
      ends.unlock();
    }
  }

  /**
   * A capture that the library has just begun in a stream, held once for its graph.
   *
   * @param memory what it takes from; null for memory of its own
   */
  public Capture begun(int device, long stream, @Nullable CaptureMemory memory) {
    long id = driver.captures().streamGetCaptureInfo(device, stream).id();
    Capture made = Capture.own(id, memory == null ? CaptureMemory.ofOne() : memory);
    known.put(id, made);
    return made;
  }

  /** Does something once work is done that was queued before, or at the next {@link #poll}. */
  public void after(Fence work, Runnable step) {
    waiting.add(new Waiting(work, step));
  }

  private @Nullable Capture retained(int device, long stream, OwnCapture own, Lock ends) {
    CaptureInfo info = driver.captures().streamGetCaptureInfo(device, stream);
    if (!info.isActive()) {
      return null; // what was captured never runs
    }
    Capture made;
    try {
      made = Capture.foreign(info.id(), retainedBy(info.graph()));
    } catch (CudaException e) {
      CaptureInfo now = driver.captures().streamGetCaptureInfo(device, stream);
      boolean isOver = now.id() != info.id(); // which is 0 for none
      return isOver ? of(device, stream, own, ends) : Capture.refused(info.id(), e);
    }
    Capture other = known.putIfAbsent(info.id(), made);
    return other != null ? other : made;
  }

  private UserObject retainedBy(long graph) {
    UserObject object = driver.graphs().userObjectCreate();
    try {
      driver.graphs().graphRetainUserObject(graph, object.handle());
    } catch (RuntimeException e) {
      if (!Once.mayBeDone(e)) { // else the graph may have it
        Failures.runAfter(e, () -> driver.graphs().userObjectRelease(object.handle()));
      }
      throw e;
    }
    return object;
  }

  /** Forgets those whose graphs are gone by now. */
  public void poll() {
    waiting.removeIf(Waiting::isOver);
    known.values().removeIf(Capture::forgetIfDone);
  }
}
