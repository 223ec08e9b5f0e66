package io.cuvette.internal.fence;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.UserObject;
import io.cuvette.internal.base.Failures;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What one capture may use of memory: it is done when the graph, everything instantiated from it,
 * and all launches of that are gone, or the capture failed. Thread-safe.
 */
public final class Capture implements Fence, Retainable {
  /** The driver's number, from 1; 0 for what is built. */
  public final long id;

  /** What it takes memory from. */
  public final CaptureMemory memory;

  private final Lock lock = new ReentrantLock();

  /** The streams that took memory, in that order; under the lock. */
  private final List<Object> streams = new ArrayList<>(2);

  /** A segment of each arena that the captured work uses memory of; under the lock. */
  private final Map<MemorySegment.Scope, MemorySegment> hosts = new LinkedHashMap<>(0);

  /** What was retained for the captured work; under the lock. */
  private final List<Retainable> held = new ArrayList<>(0);

  private volatile boolean ended;

  /**
   * Who keeps the graph of a capture that the library began: the capture itself, then graphs,
   * executables and their launches, all of which the library knows. It needs no user object, with
   * which launches can fail: see docs/decisions/107.
   */
  private final AtomicInteger holders;

  private final boolean own;

  /** What the graph of somebody else retains; null if the driver refused. */
  private final @Nullable UserObject object;

  private final @Nullable CudaException refusal;

  /** What was to be for a capture cannot be any more: its graph is gone. */
  public static final class EndedException extends IllegalStateException {
    private static final long serialVersionUID = 1;

    public EndedException(Object stream) {
      super("the capture of %s has ended, and its graph is gone".formatted(stream));
    }
  }

  private Capture(
      long id,
      CaptureMemory memory,
      boolean own,
      @Nullable UserObject object,
      @Nullable CudaException refusal) {
    this.id = id;
    this.memory = memory;
    this.own = own;
    this.holders = new AtomicInteger(own ? 1 : 0); // first: its memory is not to find it done
    this.object = object;
    this.refusal = refusal;
    memory.add(this);
  }

  /** One that the library began, and which is held once. */
  static Capture own(long id, CaptureMemory memory) {
    return new Capture(id, memory, true, null, null);
  }

  /** One that stands for what is built and not captured, and which is held once. */
  public static Capture built() {
    return own(0, CaptureMemory.ofOne());
  }

  /** One that somebody else began, whose graph retains an object. */
  static Capture foreign(long id, UserObject object) {
    return new Capture(id, CaptureMemory.ofOne(), false, object, null);
  }

  /** One that somebody else began, whose graph can retain nothing. */
  static Capture refused(long id, CudaException refusal) {
    return new Capture(id, CaptureMemory.ofOne(), false, null, refusal);
  }

  /** For a capture that the library began. */
  @Override
  public void retain() {
    holders.incrementAndGet();
  }

  @Override
  public void letGo() {
    int left = holders.decrementAndGet();
    assert left >= 0 : this;
    if (left == 0) {
      letGoOfHeld();
    }
  }

  /** Takes over what the caller retains, until the graph cannot run any more. */
  public void hold(Retainable retained) {
    lock.lock();
    try {
      held.add(retained);
    } finally {
      lock.unlock();
    }
    if (isDone()) {
      letGoOfHeld(); // it ended meanwhile, and nobody comes again
    }
  }

  private void letGoOfHeld() {
    List<Retainable> all;
    lock.lock();
    try {
      all = List.copyOf(held);
      held.clear();
    } finally {
      lock.unlock();
    }
    Failures failures = new Failures();
    all.forEach(one -> failures.run(one::letGo));
    failures.throwFirst();
  }

  /**
   * The number of a stream among those that take memory, from 0: memory is used again in one stream
   * at once, and by the stream of the same number in other captures.
   */
  public int number(Object stream) {
    lock.lock();
    try {
      int known = streams.indexOf(stream);
      if (known < 0) {
        streams.add(stream);
        known = streams.size() - 1;
      }
      return known;
    } finally {
      lock.unlock();
    }
  }

  /** Whether a question about an event, or a wait for it, failed because a graph has the record. */
  public static boolean hasTheRecord(CudaException e) {
    return e.status() == CudaStatus.CAPTURED_EVENT // of a capture that goes on, else
        || e.status() == CudaStatus.INVALID_VALUE;
  }

  /** Keeps the arena of native memory reachable for as long as the graph can run. */
  public void keep(MemorySegment host) {
    lock.lock();
    try {
      hosts.putIfAbsent(host.scope(), host);
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void forEachHost(Consumer<MemorySegment> to) {
    List<MemorySegment> own;
    List<Retainable> others;
    lock.lock();
    try {
      own = List.copyOf(hosts.values());
      others = List.copyOf(held);
    } finally {
      lock.unlock();
    }
    own.forEach(to);
    others.forEach(one -> one.forEachHost(to));
  }

  /**
   * Keeps nothing more once the graph is gone, and whether it is: memory may know this for long.
   */
  boolean forgetIfDone() {
    boolean done = isDone();
    if (done) {
      lock.lock();
      try {
        hosts.clear();
      } finally {
        lock.unlock();
      }
      letGoOfHeld();
    }
    return done;
  }

  /** Nothing more is captured. */
  public void ended() {
    ended = true;
  }

  /** From when on other captures may use its memory that is closed, if they share memory. */
  public Fence isOverFor(@Nullable CaptureMemory other) {
    return other == memory && memory.isOfSeveral() ? new End(this) : this;
  }

  /** The end of a capture, whose graph may be there. */
  private record End(Capture capture) implements Fence {
    @Override
    public boolean isDone() {
      return capture.ended || capture.isDone();
    }

    /** Nobody knows when somebody ends a capture. */
    @Override
    public void await() {}
  }

  @Override
  public boolean isDone() {
    return own ? holders.get() == 0 : object != null && object.isDestroyed();
  }

  /** Nobody knows when somebody destroys a graph. */
  @Override
  public void await() {}

  /**
   * Checks that the end of the graph will be known.
   *
   * @param call what would use memory that nobody could use again
   */
  public Capture checked(String call, Object stream) {
    if (refusal != null) {
      String text =
          "%s: %s is capturing a graph, and the driver does not tell when that is gone (expected:"
                  .formatted(call, stream)
              + " memory that is used outside of captures)";
      throw refusal.status() == CudaStatus.NOT_SUPPORTED
          ? new IllegalStateException(text, refusal)
          : refusal.explained(text); // which may work the next time
    }
    return this;
  }
}
