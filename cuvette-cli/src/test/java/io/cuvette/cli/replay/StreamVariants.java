package io.cuvette.cli.replay;

import java.util.SplittableRandom;
import java.util.function.LongToIntFunction;

/** Spreads a trace of one stream over several. Stateless. */
enum StreamVariants {
  /** In turns. */
  TURNS(4),
  /** At random. */
  RANDOM(4),
  /** One after the other, as the layers or batches of a program. */
  PHASES(4),
  /** The small blocks on one stream, the large ones on another. */
  SIZES(2),
  /** Nearly all on one stream. */
  RARE(4),
  /** Many streams. */
  MANY(16);

  private final int streams;

  StreamVariants(int streams) {
    this.streams = streams;
  }

  /** The trace on several streams. */
  Trace of(Trace trace) {
    int[] streamOf = new int[trace.operations()];
    int[] streamOfSlot = new int[trace.slotCount()];
    LongToIntFunction next = chooser();
    for (int i = 0; i < streamOf.length; i++) {
      int slot = trace.slots()[i];
      if (trace.bytes()[i] != Trace.FREE) {
        streamOfSlot[slot] = next.applyAsInt(trace.bytes()[i]);
      }
      streamOf[i] = streamOfSlot[slot];
    }
    long[] ids = new long[streams];
    for (int i = 0; i < streams; i++) {
      ids[i] = i == 0 ? 0 : 0x7f00_0000_0000L + 16L * i;
    }
    return new Trace(
        trace.name(),
        trace.bytes(),
        trace.slots(),
        streamOf,
        trace.lines(),
        trace.slotCount(),
        ids,
        trace.peakLiveBytes(),
        trace.failures());
  }

  /** Chooses the stream of the next allocation by its size. */
  private LongToIntFunction chooser() {
    SplittableRandom random = new SplittableRandom(1);
    int[] count = {0};
    return bytes -> {
      int n = count[0]++;
      return switch (this) {
        case TURNS, MANY -> n % streams;
        case RANDOM -> random.nextInt(streams);
        case PHASES -> n / 2000 % streams;
        case SIZES -> bytes < 100_000 ? 1 : 0;
        case RARE -> n % 50 == 0 ? 1 + n / 50 % (streams - 1) : 0;
      };
    };
  }
}
