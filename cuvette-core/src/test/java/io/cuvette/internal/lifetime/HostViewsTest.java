package io.cuvette.internal.lifetime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

/** Whose memory a segment is, and when its views end. */
class HostViewsTest {
  private static final long DRIVER = 1L << 40;
  private static final long BYTES = 64;
  private static final long START = 4096;

  private final HostViews<Forgotten> views = HostViews.create();
  private final Forgotten memory = new Forgotten();
  private final Forgotten other = new Forgotten();

  private static final class Forgotten extends Ending {
    private boolean isOut;

    Forgotten() {
      super(new Object(), null, null);
    }

    @Override
    public String describe() {
      return "memory";
    }

    @Override
    public void release() {}

    @Override
    public boolean isOut() {
      return isOut;
    }
  }

  /** An arena that others use for a while: so often it cannot be closed. */
  private static final class UsedArena implements Arena {
    private final Arena arena = Arena.ofShared();
    private int uses;
    private final Runnable closing;

    UsedArena(int uses) {
      this(uses, () -> {});
    }

    UsedArena(int uses, Runnable closing) {
      this.uses = uses;
      this.closing = closing;
    }

    @Override
    public MemorySegment allocate(long byteSize, long byteAlignment) {
      return arena.allocate(byteSize, byteAlignment);
    }

    @Override
    public MemorySegment.Scope scope() {
      return arena.scope();
    }

    @Override
    public void close() {
      if (uses-- > 0) {
        throw new IllegalStateException("in use");
      }
      closing.run();
      arena.close();
    }
  }

  @SuppressWarnings("restricted") // the memory of no one
  private static MemorySegment at(long from, long to) {
    return MemorySegment.ofAddress(from).reinterpret(to - from);
  }

  @Test
  void memoryOfAnotherCuda_isOfAnother_andOnesOwnIsNot() {
    long start = START + 100 * BYTES; // no other test has memory there
    MemorySegment segment = at(start, start + BYTES);
    views.register(memory, segment);
    assertThat(views.isOfAnother(segment)).isFalse();
    HostViews<Forgotten> others = HostViews.create();
    assertThat(others.isOfAnother(segment)).isTrue();
    assertThat(others.isOfAnother(at(start - BYTES, start + 1))).as("in part").isTrue();
    assertThat(others.isOfAnother(at(start + BYTES, start + 2 * BYTES))).isFalse();
    views.unregister(segment);
    assertThat(others.isOfAnother(segment)).isFalse();
  }

  @Test
  void segmentBesideRegisteredMemory_isNotPartOfIt() {
    views.register(memory, at(START, START + BYTES));
    assertThat(views.isInPart(at(START - BYTES, START))).isFalse();
    assertThat(views.isInPart(at(START + BYTES, START + 2 * BYTES))).isFalse();
    assertThat(views.isInPart(at(START + 3 * BYTES, START + 4 * BYTES))).isFalse();
    assertThat(views.find(at(START + BYTES, START + 2 * BYTES))).isNull();
    assertThat(views.find(at(START - BYTES, START))).isNull();
  }

  @Test
  void segmentThatIsRegisteredInPart_isOfNoMemory_onWhicheverSide() {
    views.register(memory, at(START, START + BYTES));
    assertThat(views.isInPart(at(START - 1, START + 1))).isTrue();
    assertThat(views.isInPart(at(START + BYTES - 1, START + BYTES + 1))).isTrue();
    assertThat(views.isInPart(at(START - 1, START + BYTES + 1))).isTrue();
    assertThat(views.find(at(START - 1, START + 1))).isNull();
    assertThat(views.find(at(START + BYTES - 1, START + BYTES + 1))).isNull();
  }

  @Test
  void segmentWithinRegisteredMemory_isOfThatMemory_whichHasItsOwnAddress() {
    views.register(memory, at(START, START + BYTES));
    views.register(other, at(START + 2 * BYTES, START + 3 * BYTES));
    for (MemorySegment part :
        new MemorySegment[] {
          at(START, START + BYTES), at(START, START + 1), at(START + 63, START + 64)
        }) {
      assertThat(views.find(part)).isSameAs(memory);
      assertThat(views.isInPart(part)).isFalse();
      assertThat(views.addressOf(part)).isEqualTo(part.address());
    }
    assertThat(views.find(at(START + 2 * BYTES, START + 3 * BYTES))).isSameAs(other);
    views.unregister(at(START, START + BYTES));
    assertThat(views.find(at(START, START + BYTES))).isNull();
  }

  /** The address may be another's by then. */
  @Test
  void viewThatIsClosed_isFoundNoMore() {
    Arena arena = Arena.ofShared();
    MemorySegment segment = arena.allocate(BYTES);
    HostViews<Forgotten>.View view = views.add(memory, arena, segment, DRIVER);
    long address = segment.address();
    assertThat(views.find(segment.asSlice(BYTES - 1))).isSameAs(memory);
    assertThat(views.addressOf(segment.asSlice(BYTES - 1))).isEqualTo(DRIVER + BYTES - 1);
    assertThat(views.find(at(address + BYTES, address + BYTES + 1))).isNull();
    assertThat(view.close()).isTrue();
    assertThat(views.find(at(address, address + BYTES))).isNull();
    assertThat(views.addressOf(at(address, address + BYTES))).isEqualTo(address);
  }

  /** Another library has it, and reads it until it gives it back. */
  @Test
  void viewOfMemoryThatIsLent_isLeftOpen_asAllAreClosed() {
    UsedArena mine = new UsedArena(0);
    UsedArena lent = new UsedArena(0);
    var _ = views.add(memory, mine, mine.allocate(BYTES, 1), DRIVER);
    HostViews<Forgotten>.View later = views.add(other, lent, lent.allocate(BYTES, 1), DRIVER);
    other.isOut = true;
    views.closeAll();
    assertThat(mine.scope().isAlive()).isFalse();
    assertThat(lent.scope().isAlive()).isTrue();
    assertThat(later.close()).isTrue();
    assertThat(lent.scope().isAlive()).isFalse();
  }

  /** It ends with its buffer, whoever has it in use. */
  @Test
  void viewThatIsMadeAsAllAreClosed_isNoReasonToFail() {
    UsedArena later = new UsedArena(Integer.MAX_VALUE);
    MemorySegment below = at(START, START + BYTES);
    UsedArena arena = new UsedArena(0, () -> views.add(other, later, below, DRIVER));
    var _ = views.add(memory, arena, arena.allocate(BYTES, 1), DRIVER);
    assertThatCode(views::closeAll).doesNotThrowAnyException();
    assertThat(arena.scope().isAlive()).isFalse();
    assertThat(later.scope().isAlive()).isTrue();
    assertThat(views.find(below)).isSameAs(other);
  }

  @Test
  void viewInUse_isWaitedFor_asAllAreClosed() {
    UsedArena arena = new UsedArena(2);
    var _ = views.add(memory, arena, arena.allocate(BYTES, 1), DRIVER);
    views.closeAll();
    assertThat(arena.scope().isAlive()).isFalse();
  }
}
