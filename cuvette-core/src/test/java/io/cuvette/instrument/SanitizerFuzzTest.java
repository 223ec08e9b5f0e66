package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Random programs, judged by the sanitizer and by a plain model: the model keeps of each stream and
 * event the set of all work before it, and forgets nothing.
 */
class SanitizerFuzzTest extends SanitizerTestBase {
  private record Op(long first, long last, boolean write) {
    boolean conflicts(Op other) {
      return first <= other.last && other.first <= last && (write || other.write);
    }
  }

  private static final int STREAMS = 4;
  private static final int BLOCKS = 2;

  private final List<Op> ops = new ArrayList<>();
  private final BitSet done = new BitSet();
  private final List<BitSet> beforeStream = new ArrayList<>();
  private final List<BitSet> beforeEvent = new ArrayList<>();
  private final long[] streams = new long[STREAMS];
  private final long[] events = new long[3];
  private final long[] blocks = new long[BLOCKS];
  private int blockBytes;
  private int grainBytes;

  /** 92 are none of the waits by the host. */
  private int kinds;

  private int mostBytes;
  private int races;

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  void raceIsReported_exactlyWhereTheModelSeesOne(long seed) {
    blockBytes = 1024;
    grainBytes = 256;
    mostBytes = 1024;
    kinds = 100;
    check(seed);
  }

  /** So many ranges that uses between which nothing can come count as one. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void raceIsReported_alsoOfManySmallRanges(long seed) {
    blockBytes = 1 << 14;
    grainBytes = 1;
    mostBytes = 100;
    kinds = 92;
    check(seed);
  }

  private void check(long seed) {
    Random random = new Random(seed);
    begin();

    for (int step = 0; step < 3000; step++) {
      reports.clear();
      boolean expected = step(random);
      assertThat(reports.stream().anyMatch(r -> r.misuse() == Misuse.RACE))
          .as("seed=%d step=%d", seed, step)
          .isEqualTo(expected);
    }
    assertThat(races).as("the program has both kinds of steps").isBetween(5, 2900);
  }

  /** The last stream is the legacy default stream, which waits for the others but the first. */
  private void begin() {
    for (int i = 0; i < STREAMS; i++) {
      streams[i] = i == 0 ? stream() : i == STREAMS - 1 ? 0 : blockingStream();
      beforeStream.add(new BitSet());
    }
    for (int i = 0; i < events.length; i++) {
      events[i] = event();
      beforeEvent.add(new BitSet());
    }
    for (int i = 0; i < BLOCKS; i++) {
      blocks[i] = driver.memory().memAlloc(0, blockBytes);
    }
  }

  private boolean step(Random random) {
    int stream = random.nextInt(STREAMS);
    int event = random.nextInt(events.length);
    int kind = random.nextInt(kinds);
    if (kind < 60) {
      return use(random, stream);
    } else if (kind < 75) {
      driver.events().eventRecord(0, events[event], streams[stream]);
      join(stream);
      beforeEvent.set(event, (BitSet) beforeStream.get(stream).clone());
    } else if (kind < 92) {
      driver.streams().streamWaitEvent(0, streams[stream], events[event]);
      join(stream);
      beforeStream.get(stream).or(beforeEvent.get(event));
    } else if (kind < 95) {
      driver.events().eventSynchronize(0, events[event]);
      done.or(beforeEvent.get(event));
    } else if (kind < 98) {
      driver.streams().streamSynchronize(0, streams[stream]);
      if (stream == STREAMS - 1) {
        join(stream);
      }
      done.or(beforeStream.get(stream));
    } else if (kind < 99) {
      driver.devices().ctxSynchronize(0);
      beforeStream.forEach(done::or);
    }
    return false;
  }

  private boolean use(Random random, int stream) {
    int block = random.nextInt(BLOCKS);
    int offset = random.nextInt(blockBytes / grainBytes) * grainBytes;
    int bytes = 1 + random.nextInt(Math.min(mostBytes, blockBytes - offset));
    boolean write = random.nextInt(3) == 0;
    long address = blocks[block] + offset;
    if (write) {
      driver.transfers().memsetD8Async(0, address, (byte) 1, bytes, streams[stream]);
    } else {
      driver.transfers().memcpyDtoHAsync(0, HOST.asSlice(0, bytes), address, streams[stream]);
    }
    join(stream);
    Op op = new Op(address, address + bytes - 1, write);
    boolean race = false;
    for (int i = 0; i < ops.size(); i++) {
      boolean before = done.get(i) || beforeStream.get(stream).get(i);
      race |= !before && ops.get(i).conflicts(op);
    }
    beforeStream.get(stream).set(ops.size());
    ops.add(op);
    races += race ? 1 : 0;
    return race;
  }

  private void join(int stream) {
    int legacy = STREAMS - 1;
    for (int other = 1; other < STREAMS; other++) {
      if (stream == legacy) {
        beforeStream.get(stream).or(beforeStream.get(other));
      } else if (stream != 0) {
        beforeStream.get(stream).or(beforeStream.get(legacy));
      }
    }
  }
}
