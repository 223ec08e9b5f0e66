package io.cuvette.internal.callback;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Turns;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * Words of page-locked memory that streams wait at until a callback has returned. A word is used
 * again at once: it only grows, so that a stream which has not looked since passes all the same.
 * The memory is kept until the Cuda ends. Thread-safe.
 */
public final class CallbackFlags {
  /** Enough for what fits into the queues of sixteen streams. */
  private static final long BYTES = 64L << 10;

  private static final int PORTABLE_AND_MAPPED = 3;
  private static final int UNTIL_GREATER_OR_EQUAL = 0;
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

  private final Session session;
  private final BargingLock lock = new BargingLock();
  private final Turns turns = new Turns();
  private @Nullable Flag free;

  /** Memory with words that nobody had so far, from an offset on. */
  private @Nullable MemorySegment fresh;

  private long freshOffset;
  private boolean closed;

  /** One word, in the hands of one callback at a time. */
  public final class Flag {
    private final MemorySegment memory;
    private final long offset;
    private @Nullable Flag next;
    private int value;

    private Flag(MemorySegment memory, long offset) {
      this.memory = memory;
      this.offset = offset;
    }

    /** Makes later work of a stream wait for {@link #release}. */
    public void queueWait(CudaDriver driver, DriverStream stream) {
      queueWait(driver, stream, value + 1);
    }

    /** Makes it wait for nothing: fails where a stream cannot wait at a flag at all. */
    public void queueNothing(CudaDriver driver, DriverStream stream) {
      queueWait(driver, stream, value);
    }

    private void queueWait(CudaDriver driver, DriverStream stream, int until) {
      driver
          .streams()
          .streamWaitValue32(
              stream.device.id(),
              stream.handle,
              memory.address() + offset,
              until,
              UNTIL_GREATER_OR_EQUAL);
    }

    /** Lets the stream go on, also one that will come to wait later; once. */
    public void release() {
      lock.lock();
      try {
        if (!closed) {
          value++;
          WORD.setVolatile(memory, offset, value);
          next = free;
          free = this;
        }
      } finally {
        lock.unlock();
      }
    }
  }

  public CallbackFlags(Session session) {
    this.session = session;
  }

  /** A word that nobody has; the caller releases it. */
  public Flag take(Device device) {
    Flag taken = poll();
    while (taken == null) {
      taken = turns.take(() -> pollOrGrow(device));
    }
    return taken;
  }

  private @Nullable Flag pollOrGrow(Device device) {
    Flag taken = poll(); // the thread before may have left words for others
    if (taken == null) {
      grow(device);
      taken = poll();
    }
    return taken;
  }

  private @Nullable Flag poll() {
    lock.lock();
    try {
      Flag first = free;
      MemorySegment in = fresh;
      if (first != null) {
        free = first.next;
      } else if (in != null) {
        first = new Flag(in, freshOffset);
        freshOffset += Integer.BYTES;
        fresh = freshOffset < BYTES ? in : null;
      }
      return first;
    } finally {
      lock.unlock();
    }
  }

  private void grow(Device device) {
    CudaDriver driver = device.context();
    session
        .gate()
        .ask(() -> {
          MemorySegment memory =
              driver.memory().memHostAlloc(device.id(), BYTES, PORTABLE_AND_MAPPED);
          try {
            session.children().add(() -> end(device, memory));
          } catch (OutOfMemoryError e) { // of the Java heap: it would be nobody's
            end(device, memory);
            throw e;
          }
          memory.fill((byte) 0);
          add(memory);
          return memory;
        });
  }

  /** If a thread could not wait for another's turn, what is left of that memory is not used. */
  private void add(MemorySegment memory) {
    lock.lock();
    try {
      fresh = memory;
      freshOffset = 0;
    } finally {
      lock.unlock();
    }
  }

  /** Once all work has been waited for: a callback that still runs leaves its word alone. */
  private void end(Device device, MemorySegment memory) {
    lock.lock();
    try {
      closed = true;
      free = null;
      fresh = null;
    } finally {
      lock.unlock();
    }
    session.driver().memory().memFreeHost(device.id(), memory.address());
  }
}
