package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.MathLibrary;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.instrument.internal.memory.KnownBlock;
import io.cuvette.instrument.internal.memory.KnownGraphs;
import io.cuvette.instrument.internal.memory.KnownMemory;
import io.cuvette.instrument.internal.memory.Work;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.Beginnings;
import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.KnownKernels;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.order.Turn;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import io.cuvette.instrument.internal.report.Handles;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The state of the sanitizer behind its lock, and the pattern that calls follow: check, report,
 * call the driver, note what it did. Thread-safe; the driver and the consumer are called without
 * the lock.
 */
public final class SanitizerCore {
  /** Used inside the functions given to {@link #locked} and {@link #check} alone. */
  public final KnownStreams streams = new KnownStreams();

  final KnownKernels kernels = new KnownKernels();
  final Handles<MathLibrary> mathHandles = new Handles<>("library handle");

  /** Handles of memory without an address. */
  final Handles<Boolean> allocations = new Handles<>("allocation handle");

  /** Used inside the functions given to {@link #locked} and {@link #check} alone. */
  public final KnownMemory memory = new KnownMemory(streams.order);

  /** Used inside the functions given to {@link #locked} and {@link #check} alone. */
  final KnownGraphs graphs = new KnownGraphs(memory, streams);

  private final ReentrantLock lock = new ReentrantLock();
  private final AtomicBoolean closed = new AtomicBoolean();

  /** What asks whether an event has passed that other processes see: they may have told. */
  final Map<Long, Runnable> shown = new ConcurrentHashMap<>();

  /** What was found within the driver. Under the lock alone. */
  private final Findings late = new Findings();

  /** How many pieces of work were noted. Under the lock alone. */
  private long noted;

  private final Consumer<? super SanitizerReport> consumer;
  private final Set<Misuse> ignored = EnumSet.noneOf(Misuse.class);

  public SanitizerCore(Consumer<? super SanitizerReport> consumer, Misuse... ignored) {
    this.consumer = Objects.requireNonNull(consumer, "consumer");
    this.ignored.addAll(Arrays.asList(ignored));
  }

  /** Takes a block out of the ledger. */
  interface Taking {
    @Nullable KnownBlock take(long address, CallTrace here);
  }

  /** Runs a step under the lock, then reports its findings. */
  <T extends @Nullable Object> T locked(Function<Findings, T> step) {
    Findings findings = new Findings();
    T result;
    lock.lock();
    try {
      result = step.apply(findings);
      findings.takeAll(late);
    } finally {
      lock.unlock();
    }
    findings.deliver(consumer, ignored);
    return result;
  }

  /**
   * Runs a step within the driver, such as in a function of the host, where a consumer must not
   * throw: what it finds is reported by the next call of the program.
   */
  private void within(Consumer<Findings> step) {
    lock.lock();
    try {
      step.accept(late);
    } finally {
      lock.unlock();
    }
  }

  /** Runs a step without a result under the lock, then reports its findings. */
  public void check(Consumer<Findings> step) {
    Object _ =
        locked(findings -> {
          step.accept(findings);
          return this;
        });
  }

  public List<SanitizerReport> leaks() {
    Findings findings = new Findings();
    lock.lock();
    try {
      findLeaks(findings);
    } finally {
      lock.unlock();
    }
    return findings.reports();
  }

  /** Reports leaks, once. */
  public void close() {
    if (closed.compareAndSet(false, true)) {
      check(this::findLeaks);
    }
  }

  /**
   * Checks work, queues it, and notes it once the driver took it. What other threads noted in
   * between was not there to be checked against, nor this work for them: that is checked then.
   */
  void queue(Work work, Runnable call) {
    queueAll(List.of(work), call);
  }

  /** The same for one call that queues several pieces of work. */
  void queueAll(List<Work> works, Runnable call) {
    askForShown();
    List<@Nullable Checked> all = new ArrayList<>();
    works.forEach(work -> all.add(locked(findings -> checked(work, findings))));
    List<Beginnings> launched = works.stream().flatMap(Work::beginnings).toList();
    launch(
        launched,
        call,
        findings -> {
          for (Checked checked : all) {
            if (checked != null) {
              checkAgain(checked, findings);
              note(checked);
            }
          }
        });
  }

  /** Calls the driver, and notes what it did: once it is back, or something of it has begun. */
  void launch(List<Beginnings> begun, Runnable call, Consumer<Findings> note) {
    AtomicBoolean isNoted = new AtomicBoolean();
    Runnable once =
        () ->
            within(findings -> {
              if (!isNoted.getAndSet(true)) {
                note.accept(findings);
              }
            });
    begun.forEach(each -> each.begins(once));
    try {
      call.run();
      once.run();
      check(_ -> {}); // reports what is found
    } finally {
      begun.forEach(each -> each.ends(once));
    }
  }

  void askForShown() {
    shown.values().forEach(Runnable::run);
    check(findings -> {
      if (memory.telling.haveTold()) {
        memory.finished(new Clock(), findings);
      }
    });
  }

  void checkLive(String method, long address, long bytes) {
    CallTrace site = CallTrace.passing(method, "address", address, "bytes", bytes);
    Range range = new Range(address, bytes, Kind.HOLD, false);
    check(findings -> memory.checkLive(range, site, findings));
  }

  /** Checks memory that other processes are about to know, which may write it. */
  void share(CallTrace site, long address) {
    check(findings -> {
      memory.checkAllocation(address, site, findings);
      memory.shared(address);
    });
  }

  /** Frees memory at once, behind work that a kernel may just have told the host is done. */
  void free(String method, long address, CallTrace site, Runnable call) {
    askForShown();
    check(findings -> memory.checkFree(address, method, site, findings));
    free(memory::free, address, site, call);
  }

  /** Frees memory: out of the ledger first, since its address may be given out at once. */
  void free(Taking taking, long address, CallTrace site, Runnable call) {
    KnownBlock block = locked(_ -> taking.take(address, site));
    try {
      call.run();
    } catch (RuntimeException e) {
      if (block != null) {
        check(_ -> memory.restore(block));
      }
      throw e;
    }
    if (block != null) {
      check(_ -> block.ended());
    }
  }

  /** Destroys a handle in the same way, and gives what it stood for. */
  <T> @Nullable T destroy(Handles<T> handles, long handle, CallTrace site, Runnable call) {
    check(findings -> handles.checkDestroy(handle, site, findings));
    Handles.Entry<T> entry = locked(_ -> handles.destroy(handle, site));
    try {
      call.run();
    } catch (RuntimeException e) {
      if (entry != null) {
        check(_ -> handles.restore(entry));
      }
      throw e;
    }
    return entry == null ? null : entry.value();
  }

  /** The stream of a call that needs it to be live. */
  @Nullable Lane lane(String method, int device, long stream) {
    CallTrace site = CallTrace.passing(method, "device", device, "stream", stream);
    return locked(findings -> streams.lane(device, stream, site, findings));
  }

  /** The work that is done when a stream is. */
  Clock workOf(String method, int device, long stream) {
    CallTrace site = CallTrace.passing(method, "device", device, "stream", stream);
    return locked(findings -> streams.workOf(streams.lane(device, stream, site, findings)));
  }

  /** What the next work of a stream comes behind. */
  Turn turn(@Nullable Lane lane) {
    return locked(_ -> streams.order.turn(lane));
  }

  /** The work that is done when an event is. */
  Clock workBefore(String method, long event) {
    CallTrace site = CallTrace.passing(method, "event", event);
    return locked(findings -> streams.workBefore(streams.events.use(event, site, findings)));
  }

  /** Notes queued work that may have anybody change memory. */
  void unseen(@Nullable Lane lane, CallTrace site) {
    if (lane != null && lane.capture() == null) {
      check(_ -> memory.hostReads.unseen(lane, site));
    }
  }

  /** The work that is done once memory is freed: that of its device, if the memory was not used. */
  Clock workAwaitedByFreeing(long address) {
    return streams.order.everythingOn(memory.waitsFor(address));
  }

  void finish(Clock work) {
    check(findings -> memory.finished(work, findings));
  }

  /** The same for a function of the host that begins. */
  void finishWithin(Clock work) {
    within(findings -> memory.finished(work, findings));
  }

  boolean finishIf(boolean done, Clock work) {
    if (done) {
      finish(work);
    }
    return done;
  }

  /** Notes what holds a stream until the host lets it go on. */
  void gate(@Nullable Lane lane, BooleanSupplier closed) {
    if (lane != null && lane.capture() == null) {
      check(_ -> streams.order.gate(lane, closed));
    }
  }

  /**
   * Work that was checked.
   *
   * @param noted how much had been noted then; -1 if gates may have opened since
   * @param isRight whether nothing was found
   */
  private record Checked(Work work, Lane lane, Turn turn, long noted, boolean isRight) {}

  private @Nullable Checked checked(Work work, Findings findings) {
    work.resolve(memory.views);
    Lane lane = streams.lane(work.device, work.stream, work.site, findings);
    Turn turn = streams.order.turn(lane);
    checkWork(work, lane, turn, findings);
    long before = streams.order.hasGates() ? -1 : noted;
    return lane == null ? null : new Checked(work, lane, turn, before, findings.isEmpty());
  }

  private void checkAgain(Checked checked, Findings findings) {
    boolean isChanged = checked.isRight && checked.noted != noted;
    Lane lane = checked.lane;
    if (isChanged && lane.capture() == null && !streams.order.isClosedBeforeNext(lane)) {
      checkRaces(checked.work, lane, findings);
    }
  }

  private void checkRaces(Work work, Lane lane, Findings findings) {
    if (work.watcher() == null) { // else it is known later
      work.ranges().forEach(range -> memory.checkRace(range, lane, work.site, findings));
    }
  }

  private void checkWork(Work work, @Nullable Lane lane, Turn turn, Findings findings) {
    for (Range range : work.ranges()) {
      memory.checkLive(range, work.site, findings);
      memory.mappings.checkAccess(range, work, findings);
    }
    if (lane != null && lane.capture() == null) {
      if (!streams.order.isClosedBeforeNext(lane)) { // else it may be written until then
        checkRaces(work, lane, findings);
        memory.contents.check(work, findings);
      }
      memory.begins(work, lane, turn);
    }
  }

  private void note(Checked checked) {
    Work work = checked.work;
    Lane lane = checked.lane;
    noted++;
    checked.turn.take();
    if (lane.capture() == null) {
      work.expected();
      memory.use(lane, work.ranges(), work.site, work.watcher());
    }
    memory.contents.written(work);
  }

  private void findLeaks(Findings findings) {
    memory.leaks(findings);
    streams.leaks(findings);
    kernels.libraries.leaks(findings);
    mathHandles.leaks(findings);
    allocations.leaks(findings);
  }
}
