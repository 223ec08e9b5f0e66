package io.cuvette.sim;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An event that several processes use. A record of a process that ended counts as done. Guarded by
 * the driver's lock.
 */
final class SharedEvent {
  // Whether a process lives takes a look into /proc.
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  private final SharedFile file;
  private final SharedRing ring;

  /** What another process opens it by. */
  final ShareHandle handle;

  /** The records of this driver that are not done. */
  private final List<Long> pending = new ArrayList<>();

  private long ownNewest;

  /** The answer about the newest record that was asked for; null if none was. */
  private @Nullable Done asked;

  private SharedEvent(SharedFile file, ShareHandle handle) {
    this.file = file;
    this.ring = new SharedRing(file.own());
    this.handle = handle;
  }

  static SharedEvent create(SimSharing sharing, SharedPlace place) {
    SharedFile file = SharedFile.create(sharing, SharedFile.Kind.EVENT, place, 0);
    return new SharedEvent(file, file.handle(ShareHandle.Kind.EVENT));
  }

  static SharedEvent open(SimSharing sharing, ShareHandle handle) {
    return new SharedEvent(SharedFile.ofHandle(sharing, SharedFile.Kind.EVENT, handle), handle);
  }

  SharedPlace place() {
    return file.place();
  }

  /**
   * Tells the others of a record whose operation is queued.
   *
   * @param awaiting waits until something holds, and lets queued work run meanwhile
   */
  void record(SimOp op, SimWaiting awaiting) {
    file.retain();
    long number = ring.begin();
    long older = number - SharedRing.ENTRIES;
    if (older > 0) {
      awaiting.await(new Done(older));
    }
    ring.publish(number, ProcessId.current());
    ownNewest = Math.max(ownNewest, number);
    pending.add(number);
    if (op.isDone()) {
      finish(number);
    } else {
      op.whenDone(() -> finish(number));
    }
  }

  private void finish(Long number) {
    if (pending.remove(number)) {
      ring.done(number);
      file.release();
    }
  }

  /** Whether the newest record is one of this driver, which then knows its operation. */
  boolean isOwn() {
    return ring.newest() == ownNewest;
  }

  /**
   * Says whether the record that is the newest now is done, whenever it is asked. Who asks for this
   * again and again gets the same answer object, which knows when it looked for the process last.
   */
  BooleanSupplier newest() {
    long number = ring.newest();
    Done known = asked;
    if (known == null || known.number != number) {
      known = new Done(number);
      asked = known;
    }
    return known;
  }

  /** The file stays until {@link #release}. */
  void retain() {
    file.retain();
  }

  void release() {
    file.release();
  }

  /** The event was destroyed here; what is queued and waits for it still does. */
  void destroy() {
    file.closeDescriptor();
    file.release();
  }

  /** What is queued never runs, so nobody shall wait for it. */
  void abandon() {
    pending.forEach(ring::done);
    pending.clear();
  }

  private final class Done implements BooleanSupplier {
    private final long number;
    private boolean done;
    private long lookedNanos = System.nanoTime();

    Done(long number) {
      this.number = number;
      this.done = number == 0; // there was no record
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
