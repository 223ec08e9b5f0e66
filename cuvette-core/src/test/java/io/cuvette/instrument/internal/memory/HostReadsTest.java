package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import io.cuvette.instrument.internal.report.Findings;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HostReadsTest {
  private static final CallTrace HERE = CallTrace.passing("here");
  private static final int WRITES = 4_000;

  private final KnownStreams known = new KnownStreams();
  private final HostReads reads = new HostReads(known.order);

  private static int pieces(KnownBlock block) {
    AtomicInteger count = new AtomicInteger();
    block.deviceWrites.visit(
        block.address, block.bytes, (from, bytes, time) -> count.getAndIncrement());
    return count.get();
  }

  /** A program may have its work write other pieces of the host's memory for ever. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void writesThatNoPendingReadIsBefore_areForgotten(boolean isReadPending) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(2 * WRITES + 64);
      KnownBlock block = KnownBlock.ofHost(memory, "memFreeHost", HERE);
      long end = block.address + 2 * WRITES;
      for (int i = 0; i < WRITES; i++) {
        if (isReadPending) {
          Lane lane = known.create(0, 0x100 + i, false, null);
          Range last = new Range(end, 64, Kind.READ, false);
          reads.add(block, block, new Access(lane, lane.next(), last, HERE));
          reads.written(block, new Range(block.address + 2 * i, 1, Kind.WRITE, false));
          known.order.finish(known.workOf(lane));
          reads.finished(new Findings());
        } else {
          reads.written(block, new Range(block.address + 2 * i, 1, Kind.WRITE, false));
        }
        assertThat(pieces(block)).isLessThan(600);
      }
    }
  }
}
