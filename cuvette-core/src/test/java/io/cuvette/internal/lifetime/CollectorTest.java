package io.cuvette.internal.lifetime;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When the collector runs for who is short of memory, and how long the others wait. */
@Timeout(60)
class CollectorTest {
  private static final int TRIES = 10;
  private static final long SHORT_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  private final Collector collector = Collector.PROCESS;

  /** The nanoseconds of a call. */
  private long nanos() {
    long start = System.nanoTime();
    collector.collectOrJoin();
    return System.nanoTime() - start;
  }

  @Test
  void collectionThatHelped_isFollowedByTheNextAtOnce() {
    for (int i = 0; i < 2; i++) {
      collector.helped();
      long before = collector.begun();
      assertThat(collector.hasEndedSince(before)).isFalse();
      collector.collectOrJoin();
      assertThat(collector.begun()).isEqualTo(before + 1);
      assertThat(collector.hasEndedSince(before)).isTrue();
    }
  }

  /** On a machine that is busy the rest may be over before the next call. */
  @Test
  void collectionThatHelpedNobody_isFollowedByARest_asLongAsItTook() {
    boolean rested = false;
    for (int i = 0; i < TRIES && !rested; i++) {
      collector.helped();
      long collecting = nanos();
      long before = collector.begun();
      long resting = nanos();
      rested = collector.begun() == before && resting - collecting < SHORT_NANOS;
    }
    assertThat(rested).isTrue();
  }

  @Test
  void interruptedThread_collectsOrRests_andStaysInterrupted() {
    for (int i = 0; i < 2; i++) {
      Thread.currentThread().interrupt();
      collector.collectOrJoin();
      assertThat(Thread.interrupted()).isTrue();
    }
  }
}
