package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.instrument.ForwardingDevices;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.instrument.ForwardingTransfers;
import io.cuvette.instrument.ForwardingVirtual;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A device whose streams are counters of the work that was queued and is done, and that remembers
 * which work used which memory, and which streams wait for which work. Nothing is done but by
 * {@link #progress}, and what somebody waits for. Thread-safe.
 */
final class ClockDriver extends ForwardingDriver {
  private static final int RARELY = 40;
  private static final long PAUSE_NANOS = 20_000;
  private static final long UNIT = 512;

  private long nextAddress = 1L << 40;
  private long nextEvent = 1;
  private final Map<Long, Clock> streams = new HashMap<>();
  private final List<Clock> busy = new ArrayList<>();
  private final Map<Long, Mark> events = new HashMap<>();

  /** Also those that were never recorded. */
  private final Set<Long> alive = new HashSet<>();

  private final Map<Long, Long> sizes = new HashMap<>();

  /** The last use of each unit of memory by each stream, as long as it is not done. */
  private final Map<Long, List<Use>> uses = new HashMap<>();

  /** Whether streams go on as if there were no waits: what a test plants. */
  private boolean losesWaits;

  /** What was unmapped while work used it. */
  private @Nullable String unmapped;

  private static final class Clock {
    long queued;
    long done;

    /** The work of others that what is queued next comes after. */
    final Map<Clock, Long> after = new HashMap<>();

    /** The waits among the work that is not done, in order. */
    final Deque<Wait> waits = new ArrayDeque<>();
  }

  /** Work of a stream that is done once so much of it is. */
  private record Use(Clock clock, long at) {
    boolean isDone() {
      return clock.done >= at;
    }
  }

  /** A record of an event, and what its stream comes after. */
  private record Mark(Use last, Map<Clock, Long> after) {}

  /** Work that is done once other work is. */
  private record Wait(long at, Use until) {}

  ClockDriver(CudaDriver delegate) {
    super(delegate);
  }

  private Clock clock(long stream) {
    return streams.computeIfAbsent(stream, _ -> new Clock());
  }

  /** Has streams go on as if there were no waits from now on. */
  synchronized void loseWaits() {
    losesWaits = true;
  }

  /** What was unmapped while work used it; null if nothing was. */
  synchronized @Nullable String unmapped() {
    return unmapped;
  }

  /** Does some of the work that is queued. */
  synchronized void progress(SplittableRandom random) {
    if (!busy.isEmpty()) {
      Clock clock = busy.get(random.nextInt(busy.size()));
      advance(clock, clock.done + 1 + random.nextLong(clock.queued - clock.done));
    }
  }

  /** Does the work of a stream up to a number, or to a wait for what is not done. */
  private void advance(Clock clock, long to) {
    long most = to;
    for (Wait wait = clock.waits.peek(); wait != null && wait.at <= to; wait = clock.waits.peek()) {
      if (!wait.until.isDone()) {
        most = wait.at - 1;
        break;
      }
      clock.waits.remove();
    }
    clock.done = Math.max(clock.done, most);
    if (clock.done == clock.queued) {
      busy.remove(clock);
    }
  }

  /** Does work, and what it waits for. */
  private void await(Use use) {
    Clock clock = use.clock;
    for (Wait wait : clock.waits) {
      if (wait.at <= use.at) {
        await(wait.until);
      }
    }
    if (!use.isDone()) {
      advance(clock, use.at);
    }
  }

  private Use queue(Clock clock) {
    if (clock.done == clock.queued) {
      busy.add(clock);
    }
    clock.queued++;
    return new Use(clock, clock.queued);
  }

  private void queueWait(Clock clock, Mark mark) {
    clock.after.keySet().removeIf(each -> each.done >= clock.after.get(each));
    mark.after.forEach((each, at) -> clock.after.merge(each, at, Math::max));
    clock.after.merge(mark.last.clock, mark.last.at, Math::max);
    if (!mark.last.isDone()) {
      clock.waits.add(new Wait(queue(clock).at, mark.last));
    }
  }

  /**
   * The use of memory that may still run when the next work of a stream does; null if there is
   * none: all are done, of the same stream, or what that waits for.
   */
  synchronized @Nullable String useBeside(long address, long bytes, long stream) {
    Clock clock = clock(stream);
    for (long unit = address; unit < address + bytes; unit += UNIT) {
      for (Use use : uses.getOrDefault(unit, List.of())) {
        if (use.clock != clock
            && !use.isDone()
            && clock.after.getOrDefault(use.clock, 0L) < use.at) {
          return "0x%x: work %d of another stream, of which %d is done"
              .formatted(unit, use.at, use.clock.done);
        }
      }
    }
    return null;
  }

  private final TransferCalls transferCalls =
      new ForwardingTransfers(delegate().transfers()) {
        @Override
        public void memsetD8Async(int device, long target, byte value, long count, long stream) {
          synchronized (ClockDriver.this) {
            Clock clock = clock(stream);
            Use now = queue(clock);
            for (long unit = target; unit < target + count; unit += UNIT) {
              List<Use> all = uses.computeIfAbsent(unit, _ -> new ArrayList<>());
              all.removeIf(use -> use.clock == clock || use.isDone());
              all.add(now);
            }
          }
        }
      };

  @Override
  public TransferCalls transfers() {
    return transferCalls;
  }

  private final MemoryCalls memoryCalls =
      new ForwardingMemory(delegate().memory()) {
        @Override
        public long memAlloc(int device, long bytes) {
          synchronized (ClockDriver.this) {
            long address = nextAddress;
            nextAddress += bytes + UNIT;
            sizes.put(address, bytes);
            return address;
          }
        }

        // As the driver, once all work is done.
        @Override
        public void memFree(int device, long address) {
          synchronized (ClockDriver.this) {
            devices().ctxSynchronize(device);
            long bytes = sizes.remove(address);
            for (long unit = address; unit < address + bytes; unit += UNIT) {
              uses.remove(unit);
            }
          }
        }
      };

  @Override
  public MemoryCalls memory() {
    return memoryCalls;
  }

  private final VirtualCalls virtualCalls =
      new ForwardingVirtual(delegate().virtual()) {
        @Override
        public void memUnmap(long address, long bytes) {
          synchronized (ClockDriver.this) {
            for (long unit = address; unit < address + bytes; unit += UNIT) {
              for (Use use : uses.getOrDefault(unit, List.of())) {
                unmapped = use.isDone() ? unmapped : "0x%x: work %d".formatted(unit, use.at);
              }
            }
          }
          super.memUnmap(address, bytes);
        }
      };

  @Override
  public VirtualCalls virtual() {
    return virtualCalls;
  }

  private final DeviceCalls deviceCalls =
      new ForwardingDevices(delegate().devices()) {
        @Override
        public void ctxSynchronize(int device) {
          synchronized (ClockDriver.this) {
            for (Clock clock : busy) {
              clock.done = clock.queued;
              clock.waits.clear();
            }
            busy.clear();
          }
        }
      };

  @Override
  public DeviceCalls devices() {
    return deviceCalls;
  }

  private final StreamCalls streamCalls =
      new ForwardingStreams(delegate().streams()) {
        // The driver uses a handle again; the work of the stream goes on.
        @Override
        public void streamDestroy(int device, long stream) {
          synchronized (ClockDriver.this) {
            streams.remove(stream);
            super.streamDestroy(device, stream);
          }
        }

        @Override
        public boolean streamQuery(int device, long stream) {
          dawdle();
          synchronized (ClockDriver.this) {
            Clock clock = clock(stream);
            return clock.done == clock.queued;
          }
        }

        @Override
        public void streamWaitEvent(int device, long stream, long event) {
          synchronized (ClockDriver.this) {
            Mark mark = events.get(event);
            if (mark != null && !losesWaits) {
              queueWait(clock(stream), mark);
            }
          }
        }

        @Override
        public void streamSynchronize(int device, long stream) {
          synchronized (ClockDriver.this) {
            Clock clock = clock(stream);
            await(new Use(clock, clock.queued));
          }
        }
      };

  @Override
  public StreamCalls streams() {
    return streamCalls;
  }

  private final EventCalls eventCalls =
      new ForwardingEvents(delegate().events()) {
        @Override
        public long eventCreate(int device, int flags) {
          dawdle();
          synchronized (ClockDriver.this) {
            alive.add(nextEvent);
            return nextEvent++;
          }
        }

        @Override
        public void eventRecord(int device, long event, long stream) {
          dawdle();
          synchronized (ClockDriver.this) {
            Clock clock = clock(stream);
            clock.after.keySet().removeIf(each -> each.done >= clock.after.get(each));
            events.put(event, new Mark(new Use(clock, clock.queued), Map.copyOf(clock.after)));
          }
        }

        @Override
        public boolean eventQuery(int device, long event) {
          dawdle();
          synchronized (ClockDriver.this) {
            Mark mark = events.get(event);
            return mark == null || mark.last.isDone();
          }
        }

        @Override
        public void eventSynchronize(int device, long event) {
          synchronized (ClockDriver.this) {
            Mark mark = events.get(event);
            if (mark != null) {
              await(mark.last);
            }
          }
        }

        @Override
        public void eventDestroy(int device, long event) {
          synchronized (ClockDriver.this) {
            events.remove(event);
            alive.remove(event);
          }
        }
      };

  @Override
  public EventCalls events() {
    return eventCalls;
  }

  /** Others go on meanwhile: what a thread has looked at is no longer so when it goes on. */
  private static void dawdle() {
    int chance = ThreadLocalRandom.current().nextInt(RARELY);
    if (chance == 0) {
      LockSupport.parkNanos(PAUSE_NANOS);
    } else if (chance < RARELY / 5) {
      Thread.yield();
    }
  }

  /** How many events were made and not destroyed. */
  synchronized int liveEvents() {
    return alive.size();
  }
}
