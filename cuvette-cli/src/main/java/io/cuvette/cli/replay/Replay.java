package io.cuvette.cli.replay;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.cli.CommandFailure;
import io.cuvette.driver.CudaException;
import org.jspecify.annotations.Nullable;

/** One trace on one pool, as often as asked. Not thread-safe. */
final class Replay {
  private final Trace trace;
  private final MemoryResource pool;
  private final CudaStream[] streams;
  private final @Nullable Buffer[] live;
  private int operation;

  Replay(Trace trace, MemoryResource pool, CudaStream[] streams) {
    this.trace = trace;
    this.pool = pool;
    this.streams = streams;
    this.live = new Buffer[trace.slotCount()];
  }

  /** Replays all operations and gives the nanoseconds that took. */
  long timedPass() {
    long start = System.nanoTime();
    try {
      pass();
    } catch (CudaException | IllegalArgumentException e) {
      throw failed(e);
    }
    return System.nanoTime() - start;
  }

  private void pass() {
    long[] bytes = trace.bytes();
    int[] slots = trace.slots();
    int[] on = trace.streams();
    for (operation = 0; operation < bytes.length; operation++) {
      int slot = slots[operation];
      if (bytes[operation] == Trace.FREE) {
        free(slot, streams[on[operation]]);
      } else {
        live[slot] = pool.allocate(bytes[operation], streams[on[operation]]);
      }
    }
  }

  /** Sees each operation of a replay. */
  @FunctionalInterface
  interface Observer {
    /**
     * Called after an operation.
     *
     * @param done how many there were
     * @param liveBytes what was requested of the blocks in use
     * @param blockBytes what these blocks have
     */
    void after(int done, long liveBytes, long blockBytes);
  }

  /** Replays all operations and gives the most bytes that the blocks in use had at once. */
  long observedPass(Observer observer) {
    long liveBytes = 0;
    long used = 0;
    long peak = 0;
    try {
      for (operation = 0; operation < trace.operations(); operation++) {
        long bytes = trace.bytes()[operation];
        int slot = trace.slots()[operation];
        if (bytes == Trace.FREE) {
          liveBytes -= byteSize(slot);
          used -= blockBytes(slot);
          free(slot, streams[trace.streams()[operation]]);
        } else {
          live[slot] = pool.allocate(bytes, streams[trace.streams()[operation]]);
          liveBytes += bytes;
          used += blockBytes(slot);
          peak = Math.max(peak, used);
        }
        observer.after(operation + 1, liveBytes, used);
      }
    } catch (CudaException | IllegalArgumentException e) {
      throw failed(e);
    }
    return peak;
  }

  /** Frees what the trace left. */
  void freeRest() {
    for (int slot = 0; slot < live.length; slot++) {
      close(slot);
    }
  }

  /** Frees in order of a stream, which may be another than the one that allocated. */
  private void free(int slot, CudaStream stream) {
    Buffer buffer = live[slot];
    if (buffer != null && buffer.stream() != stream) {
      buffer.recordUse(stream);
    }
    close(slot);
  }

  private void close(int slot) {
    Buffer buffer = live[slot];
    if (buffer != null) {
      live[slot] = null;
      buffer.close();
    }
  }

  private long byteSize(int slot) {
    Buffer buffer = live[slot];
    return buffer == null ? 0 : buffer.byteSize();
  }

  private long blockBytes(int slot) {
    Buffer buffer = live[slot];
    return buffer == null ? 0 : buffer.blockBytes();
  }

  private CommandFailure failed(RuntimeException cause) {
    long bytes = trace.bytes()[operation];
    String what = bytes == Trace.FREE ? "free" : "allocate of " + bytes + " bytes";
    return new CommandFailure(
        "%s:%d: %s failed: %s"
            .formatted(trace.name(), trace.lines()[operation], what, cause.getMessage()),
        cause);
  }
}
