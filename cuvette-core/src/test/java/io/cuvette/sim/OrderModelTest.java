package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Random programs of streams and events, beside what the rules of CUDA put before each operation.
 */
@Timeout(60)
class OrderModelTest {
  private static final int OPERATIONS = 150;
  private static final int EVENTS = 5;

  private final List<Stream> streams = new ArrayList<>();
  private final List<Event> events = new ArrayList<>();
  private final Set<Integer> functions = ConcurrentHashMap.newKeySet();
  private final Set<String> wrong = ConcurrentHashMap.newKeySet();

  /** A stream, and all that is before what it gets next. */
  private record Stream(int device, long handle, boolean isBlocking, BitSet before) {
    boolean isLegacy() {
      return handle == 0;
    }
  }

  /** An event, and all that was before its last record. */
  private record Event(int device, long handle, BitSet before) {}

  private void open(SimulatedDriver driver) {
    for (int device = 0; device < 2; device++) {
      streams.add(new Stream(device, 0, false, new BitSet()));
      for (int flags : new int[] {0, 0, 1, 1}) {
        long handle = driver.streams().streamCreateWithPriority(device, flags, 0);
        streams.add(new Stream(device, handle, flags == 0, new BitSet()));
      }
      for (int i = 0; i < EVENTS; i++) {
        events.add(new Event(device, driver.events().eventCreate(device, 0), new BitSet()));
      }
    }
  }

  /** Streams that are ordered by the default one come behind it, and it behind all of them. */
  private void next(Stream stream) {
    for (Stream other : streams) {
      boolean isOrdered =
          (stream.isLegacy() && other.isBlocking) || (stream.isBlocking && other.isLegacy());
      if (isOrdered && stream.device == other.device) {
        stream.before.or(other.before);
      }
    }
  }

  private boolean isDone(int operation, MemorySegment words) {
    return functions.contains(operation) || words.getAtIndex(ValueLayout.JAVA_INT, operation) != 0;
  }

  private void check(String what, BitSet before, MemorySegment words) {
    before.stream()
        .filter(operation -> !isDone(operation, words))
        .forEach(operation -> wrong.add(what + " is not behind " + operation));
  }

  private void step(SimulatedDriver driver, Random random, int number, MemorySegment words) {
    Stream stream = streams.get(random.nextInt(streams.size()));
    Event event = events.get(random.nextInt(events.size()));
    switch (random.nextInt(12)) {
      case 0, 1, 2 -> {
        next(stream);
        BitSet before = (BitSet) stream.before.clone();
        driver
            .streams()
            .launchHostFunc(
                stream.device,
                stream.handle,
                () -> {
                  check("function " + number, before, words);
                  functions.add(number);
                });
        stream.before.set(number);
      }
      case 3, 4, 5 -> {
        next(stream);
        long address = words.address() + 4L * number;
        driver.transfers().memsetD32Async(stream.device, address, 1, 1, stream.handle);
        stream.before.set(number);
      }
      case 6, 7 -> {
        if (event.device == stream.device) {
          next(stream);
          driver.events().eventRecord(event.device, event.handle, stream.handle);
          event.before.clear();
          event.before.or(stream.before);
        }
      }
      case 8, 9 -> {
        // No operation if the event is done: what comes next has what is before it.
        driver.streams().streamWaitEvent(stream.device, stream.handle, event.handle);
        stream.before.or(event.before);
      }
      default -> askOrWait(driver, random, stream, event, words);
    }
  }

  private void askOrWait(
      SimulatedDriver driver, Random random, Stream stream, Event event, MemorySegment words) {
    switch (random.nextInt(9)) {
      case 0 -> {
        if (stream.isLegacy()) {
          next(stream);
        }
        driver.streams().streamSynchronize(stream.device, stream.handle);
        check("end of a stream", stream.before, words);
      }
      case 1 -> {
        driver.events().eventSynchronize(event.device, event.handle);
        check("end of an event", event.before, words);
      }
      case 2 -> {
        if (driver.events().eventQuery(event.device, event.handle)) {
          check("event that is done", event.before, words);
        }
      }
      case 3 -> {
        driver.devices().ctxSynchronize(stream.device);
        streams.stream()
            .filter(other -> other.device == stream.device)
            .forEach(other -> check("end of a device", other.before, words));
      }
      default -> {
        if (driver.streams().streamQuery(stream.device, stream.handle)) {
          check("stream that is done", stream.before, words);
        }
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"eager, 0", "mixed, 0", "lazy, 0", "mixed, 2", "lazy, 3"})
  void operations_runBehindAllThatIsBeforeThem(String pace, int queues) {
    for (int seed = 0; seed < 5; seed++) {
      streams.clear();
      events.clear();
      functions.clear();
      String settings =
          "devices=2,memory=64MiB,seed=%d,pace=%s,queues=%d".formatted(seed, pace, queues);
      try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse(settings))) {
        open(driver);
        MemorySegment words = driver.memory().memHostAlloc(0, 4L * OPERATIONS, 1).fill((byte) 0);
        Random random = new Random(seed);
        for (int number = 0; number < OPERATIONS; number++) {
          step(driver, random, number, words);
        }
        driver.devices().ctxSynchronize(0);
        driver.devices().ctxSynchronize(1);
        streams.forEach(stream -> check("the end", stream.before, words));
        assertThat(wrong).as("seed %d", seed).isEmpty();
      }
    }
  }
}
