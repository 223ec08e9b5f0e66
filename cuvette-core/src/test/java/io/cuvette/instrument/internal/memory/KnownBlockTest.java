package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.order.Access;
import io.cuvette.instrument.internal.order.Access.Kind;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import io.cuvette.instrument.internal.report.CallTrace;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the host sees of a block, which may be a part of it, and blocks where others were. */
class KnownBlockTest {
  private static final CallTrace HERE = CallTrace.passing("here");

  private static KnownBlock block(long address, long bytes) {
    return new KnownBlock(address, bytes, "memFree", HERE);
  }

  private static @Nullable MemorySegment seen(KnownBlock block, long address, long bytes) {
    return block.seen(new Range(address, bytes, Kind.READ, false));
  }

  @ParameterizedTest
  @CsvSource({
    "0x1000, 1600, 0x1000, 1600",
    "0x1064, 1500, 0x1000, 1600",
    "0x1065, 1499, 0x1065, 1499",
    "0x1066, 1498, 0x1065, 1499",
    "0x163f, 2, 0x15eb, 86",
    "0x1066, 1, 0x1066, 1"
  })
  void launch_countsFromTheBeginningOfAPartOn_andAPointerWithoutAnEndAlone(
      long address, long bytes, long from, long all) {
    Lane lane = new KnownStreams().create(0, 0x100, false, null);
    Range range = new Range(address, bytes, Kind.USE, false);
    TouchedBytes touched = new TouchedBytes(0);
    Access kept = block(0x1000, 1600).widened(new Access(lane, 3, range, HERE, touched, List.of()));
    assertThat(kept.range()).isEqualTo(new Range(from, all, Kind.USE, false));
    assertThat(kept.watcher()).isSameAs(touched);
    assertThat(kept.number()).isEqualTo(3);
  }

  /** The host sees 64 bytes of it, from 0x1100 on. */
  @ParameterizedTest
  @CsvSource({
    "0x1100, 64, 0",
    "0x1100, 1, 0",
    "0x1101, 63, 1",
    "0x113f, 1, 63",
    "0x1140, 0, 64",
    "0x1101, 64, -1",
    "0x113f, 2, -1",
    "0x1140, 1, -1",
    "0x1100, 65, -1",
    "0x10ff, 1, -1",
    "0x10ff, 2, -1",
    "0x1000, 64, -1"
  })
  void bytesAsTheHostSeesThem_areThoseOfThePartThatItSees(long address, long bytes, long from) {
    KnownBlock block = block(0x1000, 1024);
    assertThat(block.isOfHost()).isFalse();
    assertThat(seen(block, address, bytes)).as("nothing was seen yet").isNull();
    MemorySegment view = MemorySegment.ofArray(new byte[64]);
    block.seenAs(view, 0x1100);
    assertThat(block.isOfHost()).isTrue();
    assertThat(seen(block, address, bytes)).isEqualTo(from < 0 ? null : view.asSlice(from, bytes));
  }

  /** The driver has freed them where it gives their memory again. */
  @ParameterizedTest
  @CsvSource({
    "0x1000, true",
    "0x0fff, true",
    "0x0f00, false",
    "0x1200, true",
    "0x13ff, true",
    "0x1400, false"
  })
  void blockWhereOthersAre_takesTheirPlace(long address, boolean isThere) {
    for (boolean isFreed : new boolean[] {false, true}) {
      BlockLedger ledger = new BlockLedger();
      KnownBlock before = block(0x1000, 0x400);
      ledger.add(before);
      if (isFreed) {
        assertThat(ledger.free(0x1000, HERE)).isSameAs(before);
      }
      KnownBlock next = block(address, 0x100);
      ledger.add(next);
      assertThat(ledger.liveAround(address)).isSameAs(next);
      KnownBlock left = isFreed ? ledger.freedAround(0x1000) : ledger.liveAround(0x1000);
      assertThat(left == before).as("freed: %s", isFreed).isEqualTo(!isThere);
    }
  }

  @Test
  void freedBlocks_areRemembered_untilThereAreTooMany() {
    BlockLedger ledger = new BlockLedger();
    for (long i = 1; i <= 4_097; i++) {
      ledger.add(block(i << 12, 64));
      assertThat(ledger.free(i << 12, HERE)).isNotNull();
      assertThat(ledger.freedAt(1 << 12) != null).as("%d freed", i).isEqualTo(i <= 4_096);
      assertThat(ledger.freedAround((i << 12) + 63)).isNotNull();
    }
  }

  /** Nobody can use what was never written, so that its free waits for nothing that matters. */
  @Test
  void blockOfADevice_waitsForItAsLongAsNothingOfItIsWritten() {
    KnownBlock block = block(0x1000, 64).ofDevice(3);
    assertThat(block.waitsFor()).isEqualTo(3);
    block.written(0x1020, 1);
    assertThat(block.waitsFor()).isEqualTo(-1);
    assertThat(block(0x1000, 64).waitsFor()).isEqualTo(-1);
  }

  /** Thousands of them are remembered. */
  @Test
  void blockThatTheDriverHasFreed_keepsNothingOfItsPartsAndUses() {
    KnownBlock block = new KnownBlock(0x1000, 64, "memFree", CallTrace.passing("memAlloc"));
    AccessHistory before = block.uses;
    assertThat(block.divide(0)).isSameAs(block.parts());
    block.ended();
    assertThat(block.parts()).isNull();
    assertThat(block.uses).isNotSameAs(before);
  }
}
