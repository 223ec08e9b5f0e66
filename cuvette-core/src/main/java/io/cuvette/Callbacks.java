package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Runs user callbacks after the work of streams. The driver's thread only hands over. The driver
 * does not call back after an error of the device, so a watcher asks the devices with callbacks
 * pending, once a second, and fails their callbacks. Thread-safe.
 */
final class Callbacks {
  private final CudaDriver driver;
  private final Entrance entrance;
  private final Set<Pending> pending = ConcurrentHashMap.newKeySet();
  private final ReentrantLock lock = new ReentrantLock();
  private @Nullable ScheduledExecutorService watcher;
  private boolean closed;

  Callbacks(CudaDriver driver, Entrance entrance) {
    this.entrance = entrance;
    this.driver = driver;
  }

  CompletableFuture<Void> submit(StreamState stream, Runnable callback) {
    Pending one = new Pending(stream, callback);
    CudaDriver held = stream.hold();
    try {
      pending.add(one);
      held.launchHostFunc(stream.device.id(), stream.handle, () -> reached(one));
    } catch (RuntimeException e) {
      pending.remove(one);
      throw e;
    } finally {
      stream.unhold();
    }
    watch();
    return one.done;
  }

  void close() {
    lock.lock();
    try {
      closed = true;
      if (watcher != null) {
        watcher.shutdownNow();
      }
    } finally {
      lock.unlock();
    }
    failAll();
  }

  private void failAll() {
    fail(null, new IllegalStateException("Cuda was closed before the stream reached the callback"));
  }

  private void reached(Pending one) {
    if (pending.remove(one)) {
      one.stream.callbacks.execute(one::run);
    }
  }

  private void watch() {
    lock.lock();
    try {
      if (watcher == null && !closed) {
        watcher =
            Executors.newSingleThreadScheduledExecutor(
                Thread.ofPlatform().daemon().name("cuvette-callback-watcher").factory());
        var _ = watcher.scheduleWithFixedDelay(this::ask, 1, 1, TimeUnit.SECONDS);
      }
      if (!closed) {
        return;
      }
    } finally {
      lock.unlock();
    }
    failAll(); // Cuda was closed by another thread meanwhile
  }

  private void ask() {
    pending.stream().map(one -> one.stream.device).distinct().forEach(this::ask);
  }

  /**
   * Asks for memory: unlike a stream's query that disturbs no capture, and it reports a lost
   * context too.
   */
  private void ask(CudaDevice device) {
    try {
      entrance.run(() -> driver.memGetInfo(device.id()));
    } catch (CudaException e) {
      fail(device, e);
    }
  }

  private void fail(@Nullable CudaDevice device, RuntimeException reason) {
    for (Pending one : List.copyOf(pending)) {
      if ((device == null || one.stream.device == device) && pending.remove(one)) {
        one.stream.callbacks.execute(() -> one.done.completeExceptionally(reason));
      }
    }
  }

  private static final class Pending {
    private final StreamState stream;
    private final Runnable callback;
    private final CompletableFuture<Void> done = new CompletableFuture<>();

    Pending(StreamState stream, Runnable callback) {
      this.stream = stream;
      this.callback = callback;
    }

    @SuppressWarnings("CatchingUnchecked")
    private void run() {
      try {
        stream.cuda.callUser("a callback of " + stream, callback);
        done.complete(null);
      } catch (Throwable e) { // the user's code: whatever it throws goes to the future
        done.completeExceptionally(e);
      }
    }
  }
}
