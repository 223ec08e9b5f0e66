package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a collection for want of memory finds. */
class ReclaimTest {
  private static final int OBJECTS = 200;

  private static final class Forgotten extends Lifetime {
    Forgotten(Object of, LeakTracker leaks) {
      super(of, leaks.queue, null);
    }

    @Override
    String describe() {
      return "object";
    }

    @Override
    void release() {}
  }

  /** The collector hands over one after the other: the first that is there is not all. */
  @Test
  void oneCollection_findsAllThatWasForgotten() {
    LeakTracker leaks = new LeakTracker(LeakLevel.COUNT, _ -> {}, () -> {});
    List<Forgotten> lifetimes = new ArrayList<>();
    for (int i = 0; i < OBJECTS; i++) {
      lifetimes.add(new Forgotten(new Object(), leaks));
    }
    boolean found =
        Reclaim.search(
                leaks,
                () -> lifetimes.stream().anyMatch(one -> one.refersTo(null) && !one.ended()),
                () -> leaks.found() == OBJECTS ? Boolean.TRUE : null)
            != null;
    assertThat(found).isTrue();
    assertThat(leaks.found()).isEqualTo(OBJECTS);
    assertThat(lifetimes).allMatch(Lifetime::ended);
  }
}
