package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Memory of another library, which gets it back once, when nobody here uses it. */
class ImportedMemoryTest {
  private final Arena others = Arena.ofShared();
  private final MemorySegment theirs = others.allocate(8);
  private final AtomicInteger given = new AtomicInteger();
  private final ImportedMemory memory =
      new ImportedMemory(theirs.address(), 8, given::incrementAndGet);

  @AfterEach
  void close() {
    others.close();
  }

  @Test
  void closedMemory_goesBackOnce() {
    assertThat(memory.segment().address()).isEqualTo(theirs.address());
    assertThat(memory.segment().byteSize()).isEqualTo(8);
    assertThat(memory.isClosed()).isFalse();
    memory.close();
    memory.close();
    assertThat(memory.isClosed()).isTrue();
    assertThat(memory.segment().scope().isAlive()).isFalse();
    assertThat(given).hasValue(1);
    assertThatThrownBy(memory::hold)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("memory of another library is closed");
  }

  /** Such as by a call of C on another thread. */
  @Test
  void memoryWhoseSegmentIsInUse_isNotClosed_andCanBeLater() {
    Runnable letGo = DlpackStructure.calls().holdArena(memory.segment());
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(memory::close).isInstanceOf(IllegalStateException.class);
      assertThat(memory.isClosed()).isFalse();
      assertThat(given).hasValue(0);
    }
    letGo.run();
    memory.close();
    assertThat(memory.isClosed()).isTrue();
    assertThat(given).hasValue(1);
  }

  @Test
  void heldMemory_goesBackAfterTheLastHold() {
    memory.hold();
    memory.hold();
    memory.close();
    assertThat(memory.isClosed()).isTrue();
    assertThatThrownBy(memory::hold).isInstanceOf(IllegalStateException.class);
    memory.unhold();
    assertThat(given).hasValue(0);
    memory.unhold();
    assertThat(given).hasValue(1);
  }
}
