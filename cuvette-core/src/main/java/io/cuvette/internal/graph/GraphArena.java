package io.cuvette.internal.graph;

import io.cuvette.internal.fence.CaptureMemory;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Memory that several graphs share: their captures take from it what the others have closed, and
 * each launch runs behind the one before, whatever the streams. Thread-safe.
 */
public final class GraphArena {
  private final Device device;
  private final CaptureMemory captures = CaptureMemory.ofSeveral(this);
  private final Lock lock = new ReentrantLock();

  /** The last launch, and where it was; null before the first. */
  private @Nullable WorkMarker last;

  private @Nullable DriverStream lastIn;

  /** How many executables can be launched. */
  private int executables;

  private boolean closed;

  public GraphArena(Device device) {
    this.device = device;
  }

  /** The arena that a capture takes memory from, if it is one. */
  public static @Nullable GraphArena of(CaptureMemory memory) {
    return memory.owner() instanceof GraphArena arena ? arena : null;
  }

  CaptureMemory captures() {
    return captures;
  }

  public Device device() {
    return device;
  }

  /** No more captures come; what there is stays as long as its graphs. */
  public void close() {
    lock.lock();
    try {
      closed = true;
      captures.close();
      forgetIfOver();
    } finally {
      lock.unlock();
    }
  }

  void executableMade() {
    lock.lock();
    try {
      executables++;
    } finally {
      lock.unlock();
    }
  }

  void executableEnded() {
    lock.lock();
    try {
      executables--;
      forgetIfOver();
    } finally {
      lock.unlock();
    }
  }

  /** Nobody comes any more who would wait for the last launch. */
  private void forgetIfOver() {
    WorkMarker marker = last;
    if (closed && executables == 0 && marker != null) {
      last = null;
      lastIn = null;
      marker.abandon();
    }
  }

  /** Makes a launch in a stream, which the caller holds, behind the one before. */
  void launch(DriverStream stream, Runnable launch) {
    lock.lock();
    try {
      WorkMarker before = last;
      if (before != null && lastIn != stream && !stream.ask(() -> before.precede(stream))) {
        before.await(); // it could not be marked, because of a capture
      }
      launch.run();
      last = WorkMarker.of(stream);
      lastIn = stream;
      if (before != null) {
        before.abandon();
      }
      last.record();
    } finally {
      lock.unlock();
    }
  }
}
