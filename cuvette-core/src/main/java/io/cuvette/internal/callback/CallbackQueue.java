package io.cuvette.internal.callback;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Queues callbacks: what starts them, and what their streams wait at until they have returned.
 * Where somebody else may begin or end a capture between the two, the start is queued beside the
 * stream, so that it comes whatever happens, and a wait that became a part of a graph does no harm.
 * Thread-safe.
 */
public final class CallbackQueue {
  private static final Set<CudaStatus> CANNOT_WAIT =
      EnumSet.of(CudaStatus.NOT_SUPPORTED, CudaStatus.CALL_REQUIRES_NEWER_DRIVER);

  private final CallbackFlags flags;

  /** The devices by number, true if they can wait at a flag; absent if that is not known. */
  private final ConcurrentHashMap<Integer, Boolean> canWait = new ConcurrentHashMap<>();

  public CallbackQueue(Session session) {
    this.flags = new CallbackFlags(session);
  }

  /**
   * Queues a callback. After a failure its release lets the stream go on.
   *
   * @param reached what the driver runs when the stream has come to it, perhaps twice
   * @throws IllegalStateException if the stream is closed, or a capture has begun
   */
  public void add(Callback callback, Runnable reached) {
    DriverStream stream = callback.stream;
    CudaDriver driver = stream.hold();
    try {
      boolean alone = !stream.canBeCaptured();
      DriverStream start = alone ? stream : stream.side.get();
      if (callback.holds()) {
        boolean blocking = stream.isBlocking(callback.call());
        callback.holdBy(flag(driver, start), blocking);
      }
      if (alone) {
        launch(driver, stream, reached);
        callback.queueWait(driver);
      } else {
        addBeside(callback, driver, start, reached);
      }
    } finally {
      stream.unhold();
    }
  }

  private static void addBeside(
      Callback callback, CudaDriver driver, DriverStream start, Runnable reached) {
    DriverStream stream = callback.stream;
    WorkMarker before = WorkMarker.of(stream);
    try {
      before.record();
      if (!before.precede(start)) {
        throw stream.capturing.refusal(callback.call());
      }
      launch(driver, start, reached); // first: the next start there may be behind this wait
      hold(callback, driver, reached);
    } finally {
      before.abandon();
    }
  }

  /** Holds the stream itself, and looks whether that has become a part of a graph. */
  private static void hold(Callback callback, CudaDriver driver, Runnable reached) {
    DriverStream stream = callback.stream;
    try {
      if (callback.waitsOnDriversThread()) {
        launch(driver, stream, reached);
      } else {
        callback.queueWait(driver);
      }
    } catch (CudaException e) {
      throw WorkMarker.isOfCapture(e) ? stream.capturing.refusal(callback.call()) : e;
    }
    if (callback.holds()) {
      stream.checkNotCapturing(callback.call(), "");
    }
  }

  private static void launch(CudaDriver driver, DriverStream on, Runnable reached) {
    driver.streams().launchHostFunc(on.device.id(), on.handle, reached);
  }

  /** What a stream can wait at; null if its device cannot. */
  private CallbackFlags.@Nullable Flag flag(CudaDriver driver, DriverStream stream) {
    CallbackFlags.Flag flag = flags.take(stream.device);
    Boolean can = canWait.get(stream.device.id());
    try {
      if (can == null) {
        can = canWait(flag, driver, stream);
        canWait.put(stream.device.id(), can);
      }
    } finally {
      if (can == null || !can) {
        flag.release();
      }
    }
    return can ? flag : null;
  }

  /** Tries it with a wait that is over. */
  private static boolean canWait(CallbackFlags.Flag flag, CudaDriver driver, DriverStream stream) {
    try {
      flag.queueNothing(driver, stream);
      return true;
    } catch (CudaException e) {
      if (CANNOT_WAIT.contains(e.status())) {
        return false;
      }
      throw e;
    }
  }
}
