package io.cuvette.instrument.internal.order;

import io.cuvette.driver.StreamHandle;
import io.cuvette.instrument.internal.order.Lane.Place;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Which work comes before which, over all streams: a happens-before model with one vector clock for
 * each stream and one for what is known to be finished. Not thread-safe.
 *
 * <pre>
 *   work on a stream     after the stream's earlier work, and after what a wait brought in
 *   record, then wait    the waiter's later work comes after the recorder's earlier work
 *   synchronize, query   the work is finished: before everything queued from now on, by any thread
 *   legacy default       waits for the blocking streams of its device, and they wait for it
 * </pre>
 *
 * <p>What is finished is known of all threads at once, because finished work stays finished.
 */
public final class HappensBefore {

  /** So many streams may be destroyed with work that nobody waits for. */
  private static final int MOST_ENDED = 1024;

  /** Those that are not retired, by device. */
  private final Map<Integer, Set<Lane>> lanes = new HashMap<>();

  /** Those of them that are destroyed, also with their thread. */
  private final Set<Lane> ended = new LinkedHashSet<>();

  /**
   * For what the host does itself, which is over once it is noted and comes after no other work.
   */
  public final Lane host = new Lane(-1, "the host", false, new Place(0, 0));

  /** The places of those that are retired, for others. */
  private final Queue<Place> left = new ArrayDeque<>();

  private int places = 1;

  private final Map<Lane, Gates> gates = new LinkedHashMap<>();

  /** How many launches and nodes of kernels there were, of which is told what they touch. */
  public final AtomicLong launches = new AtomicLong();

  /** How often somebody learned that work is done. */
  private long progress;

  /** What the retired blocking streams of a device came behind, as its legacy stream does. */
  private final Map<Integer, Clock> behindEnded = new HashMap<>();

  private final Map<Integer, Lane> legacy = new HashMap<>();

  /** The per-thread streams, by device. */
  private final Map<Integer, Map<Thread, Lane>> perThread = new HashMap<>();

  public HappensBefore() {
    host.retire();
  }

  Lane create(int device, String name, boolean blocking) {
    Lane lane = new Lane(device, name, blocking, place());
    onDevice(device).add(lane);
    return lane;
  }

  private Place place() {
    Place before = left.poll();
    return before == null ? new Place(places++, 0) : before;
  }

  /** The stream behind the handles 0 and 1, or 2 for this thread. */
  Lane standard(int device, long handle) {
    return handle == StreamHandle.PER_THREAD
        ? ofThread(perThread.computeIfAbsent(device, _ -> new HashMap<>()), device)
        : legacy.computeIfAbsent(device, d -> create(d, "the default stream", true));
  }

  /** What a thread waits for in its stream says nothing about the streams of others. */
  private Lane ofThread(Map<Thread, Lane> all, int device) {
    if (!all.containsKey(Thread.currentThread())) {
      reap();
    }
    return all.computeIfAbsent(
        Thread.currentThread(), _ -> create(device, "the per-thread stream", true));
  }

  static boolean isStandard(long handle) {
    return 0 <= handle && handle <= StreamHandle.PER_THREAD;
  }

  /** What the next work of a stream comes behind: nothing of others if launches queue it. */
  public Turn turn(@Nullable Lane lane) {
    Lane standard = lane == null ? null : legacy.get(lane.device);
    if (lane == null || standard == null || !lane.blocking || lane.capture() != null) {
      return new Turn(lane, null);
    }
    if (lane != standard) {
      return new Turn(lane, standard.known().copy());
    }
    Turn turn = new Turn(lane, behindEnded(lane.device).copy());
    onDevice(lane.device).forEach(turn::add);
    return turn;
  }

  private Clock behindEnded(int device) {
    return behindEnded.computeIfAbsent(device, _ -> new Clock());
  }

  /**
   * A stand-in for a stream whose next work is checked. What it learns for that is for the stream
   * once the driver has the work.
   */
  public Lane ahead(Lane lane) {
    Lane ahead = new Lane(lane, lane.place);
    ahead.seen.merge(turn(lane).work());
    return ahead;
  }

  /** A stand-in for a stream in a part of a launch, which is beside other parts. */
  public Lane part(Lane lane) {
    Lane part = new Lane(lane, place());
    onDevice(lane.device).add(part);
    part.seen.merge(lane.known());
    return part;
  }

  /** Has work that a stream queues from now on come after all that another one has queued. */
  public void await(Lane lane, Lane other) {
    lane.seen.merge(other.known());
  }

  /** Has later work of a stream come behind a gate, and so after what the host knows by then. */
  public void gate(Lane lane, BooleanSupplier closed) {
    gates.computeIfAbsent(lane, Gates::new).add(closed);
  }

  /** Whether streams may wait for the host. */
  public boolean hasGates() {
    return !gates.isEmpty();
  }

  /** Whether gates before what a stream is given next are closed. */
  public boolean isClosedBeforeNext(Lane lane) {
    return !gates.isEmpty() && !closedBefore(ahead(lane)).isEmpty();
  }

  /** For each stream whose gates before what a stream has queued are closed: whether they are. */
  public List<BooleanSupplier> closedBefore(Lane lane) {
    List<BooleanSupplier> closed = new ArrayList<>();
    for (Gates some : gates.values()) {
      BooleanSupplier before = some.before(lane);
      if (before != null) {
        closed.add(before);
      }
    }
    return closed;
  }

  /** Whether work that a stream has queued comes after an earlier use, or they take turns. */
  public boolean isBefore(Access earlier, Lane lane) {
    return isKnownBefore(earlier, lane) || takeTurns(earlier.lane(), lane);
  }

  private boolean isKnownBefore(Access earlier, Lane lane) {
    return isFinished(earlier) || lane.seen.covers(earlier.lane(), earlier.number());
  }

  /**
   * Whether of two pieces of work on these streams the driver runs that first which it has first.
   */
  private boolean takeTurns(Lane one, Lane other) {
    Lane standard = legacy.get(one.device);
    boolean isEither = one.of == standard || other.of == standard;
    boolean areBlocking = one.device == other.device && one.blocking && other.blocking;
    return one.of == other.of || (isEither && areBlocking);
  }

  /**
   * Whether the next work of a stream will come after an earlier use, as it may by the rules of the
   * legacy default stream. Nothing is queued by asking, so the stream itself learns nothing.
   */
  public boolean isBeforeNext(Access earlier, Lane lane) {
    Lane standard = legacy.get(lane.device);
    return isBefore(earlier, lane)
        || (lane == standard && behindEnded(lane.device).covers(earlier.lane(), earlier.number()))
        || (standard != null
            && lane.blocking
            && (lane == standard ? onDevice(lane.device) : Set.of(standard))
                .stream().anyMatch(other -> other.blocking && isKnownBefore(earlier, other)));
  }

  public boolean isFinished(Access access) {
    return access.lane().isFinished(access.number());
  }

  /** Another number each time that more work is known to be finished. */
  public long progress() {
    return progress;
  }

  /** All work queued so far on all streams, for a wait whose reach is not known. */
  Clock everything() {
    Clock clock = new Clock();
    lanes.values().forEach(some -> some.forEach(lane -> clock.merge(lane.known())));
    return clock;
  }

  /** All work queued so far on a device. */
  public Clock everythingOn(int device) {
    Clock clock = new Clock();
    onDevice(device).forEach(lane -> clock.merge(lane.known()));
    return clock;
  }

  /** Learns that work is done. */
  public void finish(Clock work) {
    for (Set<Lane> some : lanes.values()) {
      for (Lane lane : some) {
        progress += lane.finish(work.last(lane)) ? 1 : 0;
      }
    }
    reap();
    gates.values().removeIf(Gates::passOpen);
  }

  public void destroy(Lane lane) {
    ended.add(lane);
    reap();
  }

  /** Work of the oldest streams that were destroyed is done at last, whether it is waited for. */
  private void reap() {
    for (Map<Thread, Lane> all : perThread.values()) {
      all.entrySet().removeIf(each -> !each.getKey().isAlive() && ended.add(each.getValue()));
    }
    List<Lane> gone = new ArrayList<>();
    long streams = ended.stream().filter(lane -> lane.of == lane).count();
    for (Lane lane : ended) {
      boolean isPart = lane.of != lane; // which goes with its stream
      boolean isOld = isPart ? lane.of.isRetired() : streams > MOST_ENDED;
      if (lane.isFinished() || (isOld && !gates.containsKey(lane))) {
        streams -= isPart ? 0 : 1;
        lane.retire();
        if (lane.blocking) {
          behindEnded(lane.device).merge(lane.seen);
        }
        gone.add(lane);
      }
    }
    for (Lane lane : gone) {
      ended.remove(lane);
      onDevice(lane.device).remove(lane);
      left.add(lane.left());
    }
  }

  private Set<Lane> onDevice(int device) {
    return lanes.computeIfAbsent(device, _ -> new LinkedHashSet<>());
  }
}
