package io.cuvette.sim.internal.share;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.schedule.SimWaiting;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An event that several processes use. A record of a process that ended counts as done. Guarded by
 * the driver's lock.
 */
public final class SharedEvent {
  // Whether a process lives takes a look into /proc.
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private final SharedFile file;
  private final SharedRing ring;

  /** What another process opens it by. */
  public final ShareHandle handle;

  /** The records of this driver that are not done. */
  private final List<Long> pending = new ArrayList<>();

  private long ownNewest;

  /** The result of the newest query; null if there was none. */
  private @Nullable Done asked;

  private SharedEvent(SharedFile file, ShareHandle handle) {
    this.file = file;
    this.ring = new SharedRing(file.own());
    this.handle = handle;
  }

  public static SharedEvent create(SimSharing sharing, SharedPlace place) {
    SharedFile file = SharedFile.create(sharing, SharedFile.Kind.EVENT, place, 0);
    return new SharedEvent(file, file.handle(ShareHandle.Kind.EVENT));
  }

  public static SharedEvent open(SimSharing sharing, ShareHandle handle) {
    return new SharedEvent(SharedFile.ofHandle(sharing, SharedFile.Kind.EVENT, handle), handle);
  }

  public SharedPlace place() {
    return file.place();
  }

  /**
   * Begins a record: the entry of a much older one must be done. {@link #record} follows, or {@link
   * #release} if the record comes to nothing.
   *
   * @param awaiting waits until something holds, and lets queued work run and other threads call
   *     the driver meanwhile
   * @return its number
   */
  public long begin(SimWaiting awaiting) {
    file.retain();
    try {
      long number = ring.begin();
      awaitDone(new Done(number - SharedRing.ENTRIES), awaiting);
      return number;
    } catch (RuntimeException | Error e) {
      release();
      throw e;
    }
  }

  /** Whoever made that record, and keeps it from being done, holds up the next one so long only. */
  private static void awaitDone(Done older, SimWaiting awaiting) {
    if (older.getAsBoolean()) {
      return;
    }
    long end = System.nanoTime() + LONGEST_WAIT_NANOS;
    awaiting.await(() -> older.getAsBoolean() || System.nanoTime() - end >= 0);
    if (!older.getAsBoolean()) {
      throw new SimRefusal(
          CudaStatus.NOT_READY,
          "event: %d records of all processes, and for %d ms none was done (expected: fewer)"
              .formatted(SharedRing.ENTRIES, TimeUnit.NANOSECONDS.toMillis(LONGEST_WAIT_NANOS)));
    }
  }

  /** Tells the others of a record that was begun, whose operation is queued. */
  public void record(long number, SimOp op) {
    ring.publish(number, ProcessId.current());
    ownNewest = Math.max(ownNewest, number);
    pending.add(number);
    file.sharing.pending(this, true);
    if (op.isDone()) {
      finish(number);
    } else {
      op.whenDone(() -> finish(number));
    }
  }

  private void finish(Long number) {
    if (pending.remove(number)) {
      file.sharing.pending(this, !pending.isEmpty());
      ring.done(number);
      file.release();
    }
  }

  /** Whether the newest record is one of this driver, which then knows its operation. */
  public boolean isOwn() {
    return ring.newest() <= ownNewest;
  }

  /**
   * Returns a query for whether the newest record of now is complete. Who asks for this again and
   * again gets the same answer object, which knows when it looked for the process last.
   */
  public BooleanSupplier newest() {
    long number = ring.newest();
    Done known = asked;
    if (known == null || known.number != number) {
      known = new Done(number);
      asked = known;
    }
    return known;
  }

  /** The file stays until {@link #release}. */
  public void retain() {
    file.retain();
  }

  public void release() {
    file.release();
  }

  /** The event was destroyed here; what is queued and waits for it still does. */
  public void destroy() {
    file.closeDescriptor();
    file.release();
  }

  /** Completes what is queued and never runs, so that no process waits for it. */
  public void abandon() {
    pending.forEach(ring::done);
    pending.clear();
  }

  private final class Done implements BooleanSupplier {
    private final long number;
    private boolean done;
    private long lookedNanos = System.nanoTime();

    Done(long number) {
      this.number = number;
    }

    @Override
    public boolean getAsBoolean() {
      done = done || ring.isDone(number) || isAbandoned();
      return done;
    }

    private boolean isAbandoned() {
      long now = System.nanoTime();
      if (now - lookedNanos < LOOK_NANOS) {
        return false;
      }
      lookedNanos = now;
      return !ring.recorder(number).isAlive();
    }
  }
}
