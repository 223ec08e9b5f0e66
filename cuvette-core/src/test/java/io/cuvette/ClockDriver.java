package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.ForwardingDevices;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.instrument.ForwardingTransfers;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * A device whose streams are counters of the work that was queued and is done, and that remembers
 * which work used which memory. Nothing is done but by {@link #progress}, and what somebody waits
 * for. Thread-safe.
 */
final class ClockDriver extends ForwardingDriver {
  private static final long UNIT = 512;

  private long nextAddress = 1L << 40;
  private long nextEvent = 1;
  private final Map<Long, Clock> streams = new HashMap<>();
  private final List<Clock> busy = new ArrayList<>();
  private final Map<Long, Use> events = new HashMap<>();
  private final Map<Long, Long> sizes = new HashMap<>();

  /** The last use of each unit of memory by each stream, as long as it is not done. */
  private final Map<Long, List<Use>> uses = new HashMap<>();

  private static final class Clock {
    long queued;
    long done;
  }

  /** Work of a stream that is done once so much of it is. */
  private record Use(Clock clock, long at) {
    boolean isDone() {
      return clock.done >= at;
    }
  }

  ClockDriver(CudaDriver delegate) {
    super(delegate);
  }

  private Clock clock(long stream) {
    return streams.computeIfAbsent(stream, _ -> new Clock());
  }

  /** Does some of the work that is queued. */
  synchronized void progress(SplittableRandom random) {
    if (!busy.isEmpty()) {
      int index = random.nextInt(busy.size());
      Clock clock = busy.get(index);
      clock.done += 1 + random.nextLong(clock.queued - clock.done);
      if (clock.done == clock.queued) {
        busy.set(index, busy.getLast());
        busy.removeLast();
      }
    }
  }

  /**
   * The use of memory that may still run when the next work of a stream does; null if there is
   * none: all are done, or of the same stream.
   */
  synchronized @Nullable String useBeside(long address, long bytes, long stream) {
    Clock clock = clock(stream);
    for (long unit = address; unit < address + bytes; unit += UNIT) {
      for (Use use : uses.getOrDefault(unit, List.of())) {
        if (use.clock != clock && !use.isDone()) {
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
            if (clock.done == clock.queued) {
              busy.add(clock);
            }
            clock.queued++;
            for (long unit = target; unit < target + count; unit += UNIT) {
              List<Use> all = uses.computeIfAbsent(unit, _ -> new ArrayList<>());
              all.removeIf(use -> use.clock == clock || use.isDone());
              all.add(new Use(clock, clock.queued));
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

  private final DeviceCalls deviceCalls =
      new ForwardingDevices(delegate().devices()) {
        @Override
        public void ctxSynchronize(int device) {
          synchronized (ClockDriver.this) {
            busy.forEach(clock -> clock.done = clock.queued);
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
          synchronized (ClockDriver.this) {
            Clock clock = clock(stream);
            return clock.done == clock.queued;
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
          synchronized (ClockDriver.this) {
            return nextEvent++;
          }
        }

        @Override
        public void eventRecord(int device, long event, long stream) {
          synchronized (ClockDriver.this) {
            Clock clock = clock(stream);
            events.put(event, new Use(clock, clock.queued));
          }
        }

        @Override
        public boolean eventQuery(int device, long event) {
          synchronized (ClockDriver.this) {
            Use mark = events.get(event);
            return mark == null || mark.isDone();
          }
        }

        @Override
        public void eventSynchronize(int device, long event) {
          synchronized (ClockDriver.this) {
            Use mark = events.get(event);
            if (mark != null) {
              await(mark);
            }
          }
        }

        @Override
        public void eventDestroy(int device, long event) {
          synchronized (ClockDriver.this) {
            events.remove(event);
          }
        }
      };

  @Override
  public EventCalls events() {
    return eventCalls;
  }

  private void await(Use use) {
    Clock clock = use.clock;
    if (!use.isDone()) {
      clock.done = use.at;
      if (clock.done == clock.queued) {
        busy.remove(clock);
      }
    }
  }

  /** How many events are recorded and not destroyed. */
  synchronized int liveEvents() {
    return events.size();
  }
}
