package io.cuvette.instrument.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.internal.report.CallTrace;
import org.junit.jupiter.api.Test;

/** Which of the blocks that were freed are remembered: so many, and not without end. */
class BlockLedgerTest {
  private static final int REMEMBERED = 4096;
  private static final long BYTES = 16;

  private final CallTrace here = CallTrace.of("memFree");
  private final BlockLedger ledger = new BlockLedger();

  private static long address(int number) {
    return 2 * BYTES * (number + 1);
  }

  private KnownBlock freed(int number) {
    KnownBlock block = new KnownBlock(address(number), BYTES, "memFree", here);
    ledger.add(block);
    assertThat(ledger.free(address(number), here)).isSameAs(block);
    return block;
  }

  @Test
  void blocksThatWereFreedLast_areRemembered_andNoOthers() {
    KnownBlock first = freed(0);
    for (int i = 1; i < REMEMBERED; i++) {
      KnownBlock _ = freed(i);
    }
    assertThat(ledger.freedAt(address(0))).isSameAs(first);
    KnownBlock last = freed(REMEMBERED);
    assertThat(ledger.freedAt(address(0))).isNull();
    assertThat(ledger.freedAround(address(0) + 1)).isNull();
    assertThat(ledger.freedAt(address(1))).isNotNull();
    assertThat(ledger.freedAround(address(REMEMBERED) + 1)).isSameAs(last);
  }

  /** The one before was there too, and is forgotten in its turn. */
  @Test
  void blockWhoseAddressWasUsedAgain_isRememberedByItsOwnTurn() {
    KnownBlock before = freed(0);
    for (int i = 1; i < REMEMBERED; i++) {
      KnownBlock _ = freed(i);
    }
    KnownBlock after = freed(0);
    assertThat(after).isNotSameAs(before);
    assertThat(ledger.freedAt(address(0))).isSameAs(after);
    for (int i = 1; i < REMEMBERED; i++) {
      KnownBlock _ = freed(i);
    }
    assertThat(ledger.freedAt(address(0))).isSameAs(after);
    KnownBlock _ = freed(REMEMBERED);
    assertThat(ledger.freedAt(address(0))).isNull();
  }

  @Test
  void blockThatIsNotThere_isNotFreed() {
    assertThat(ledger.free(address(0), here)).isNull();
    assertThat(ledger.freedAt(address(0))).isNull();
    KnownBlock block = freed(0);
    assertThat(ledger.free(address(0), here)).isNull();
    ledger.restore(block);
    assertThat(ledger.liveAt(address(0))).isSameAs(block);
    assertThat(ledger.freedAt(address(0))).isNull();
  }
}
