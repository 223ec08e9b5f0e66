package io.cuvette.internal.fence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What a graph keeps is let go of as often as it was retained, whatever becomes of it between. */
class RetainedTest {
  private final Retained retained = new Retained();

  private static final class Counted implements Retainable {
    private final @Nullable MemorySegment host;
    private final boolean fails;
    private int holders = 1;

    Counted() {
      this(null, false);
    }

    Counted(@Nullable MemorySegment host, boolean fails) {
      this.host = host;
      this.fails = fails;
    }

    @Override
    public void retain() {
      holders++;
    }

    @Override
    public void letGo() {
      holders--;
      if (fails) {
        throw new IllegalStateException("on purpose");
      }
    }

    @Override
    public void forEachHost(Consumer<MemorySegment> to) {
      if (host != null) {
        to.accept(host);
      }
    }
  }

  @Test
  void whatIsTakenTwice_isKeptOnce() {
    Counted one = new Counted();
    retained.take(one);
    assertThat(one.holders).isEqualTo(1);
    one.retain();
    retained.take(one);
    assertThat(one.holders).isEqualTo(1);
    retained.release();
    assertThat(one.holders).isZero();
    retained.release();
    assertThat(one.holders).isZero();
  }

  @Test
  void whatIsTakenForNow_isKeptUntilItIsDropped_orTheEnd() {
    Counted dropped = new Counted();
    Counted kept = new Counted();
    assertThat(retained.drop(dropped)).isFalse();
    retained.takeForNow(dropped);
    retained.takeForNow(kept);
    assertThat(retained.drop(dropped)).isTrue();
    assertThat(retained.drop(dropped)).isFalse();
    assertThat(dropped.holders).as("it is the caller's").isEqualTo(1);
    retained.release();
    assertThat(dropped.holders).isEqualTo(1);
    assertThat(kept.holders).isZero();
  }

  @Test
  void copy_keepsAllForItself_alsoWhatChanges() {
    Counted one = new Counted();
    Counted changing = new Counted();
    retained.take(one);
    retained.takeForNow(changing);
    Retained copy = retained.copy();
    assertThat(List.of(one.holders, changing.holders)).containsOnly(2);
    retained.release();
    assertThat(List.of(one.holders, changing.holders)).containsOnly(1);
    assertThat(copy.drop(changing)).as("no node of a copy has changed").isFalse();
    copy.release();
    assertThat(List.of(one.holders, changing.holders)).containsOnly(0);
  }

  @Test
  void captureThatTakesAGraphIn_keepsWhatThatDoes() {
    Counted one = new Counted();
    retained.take(one);
    Capture capture = Capture.built();
    retained.keepIn(capture);
    assertThat(one.holders).isEqualTo(2);
    retained.release();
    assertThat(one.holders).isEqualTo(1);
    capture.letGo();
    assertThat(one.holders).isZero();
  }

  @Test
  void whatFailsToEnd_isTold_andTheRestEndsToo() {
    List<Counted> all = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Counted one = new Counted(null, i % 2 == 0);
      all.add(one);
      if (i < 2) {
        retained.take(one);
      } else {
        retained.takeForNow(one);
      }
    }
    assertThatThrownBy(retained::release)
        .hasMessage("on purpose")
        .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
    assertThat(all).allMatch(one -> one.holders == 0);
    retained.release();
    assertThat(all).allMatch(one -> one.holders == 0);
  }

  /** Of what a capture holds, too. */
  @Test
  void arenasOfAllThatIsKept_haveToBeOpen() {
    Capture capture = Capture.built();
    List<MemorySegment> seen = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment own = arena.allocate(8);
      MemorySegment held = Arena.ofAuto().allocate(8);
      capture.keep(own);
      capture.keep(own.asSlice(4)); // of the same arena
      capture.hold(new Counted(held, false));
      capture.forEachHost(seen::add);
      assertThat(seen).containsExactly(own, held);
      retained.take(capture);
      retained.checkHosts();
    }
    assertThatThrownBy(retained::checkHosts).isInstanceOf(IllegalStateException.class);
    retained.release();
    assertThat(capture.isDone()).isTrue();
  }
}
