package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.clock.StreamClock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What is known of streams is not asked for. */
@Timeout(60)
class AskedStreamsTest extends OrderingFixture {
  /** As much as an elastic pool maps at least: none of it is left. */
  private static final long PAGE = 2L << 20;

  private final StreamClock clock = other.state.clock;

  private void assertNothingAsked() {
    assertThat(calls.queries).hasValue(0);
    assertThat(calls.records).hasValue(0);
    assertThat(calls.creates).hasValue(0);
  }

  /** The memory of another stream, which is busy, would do no better. */
  @ParameterizedTest
  @EnumSource(Kind.class)
  void memoryThatIsKnownToBeDone_isTakenWithoutAQuestion(Kind kind) {
    MemoryResource pool = pool(kind);
    CudaStream third = stream();
    Buffer done = pool.allocate(PAGE, home);
    Buffer still = pool.allocate(PAGE, home);
    busy.begin(other);
    busy.begin(third);
    done.fill((byte) 1, other);
    still.fill((byte) 2, third);
    long address = done.address();
    done.close();
    still.close();
    StreamClock.done(clock.moment(0));
    calls.reset();
    try (Buffer again = pool.allocate(PAGE, home)) {
      assertThat(again.address()).isEqualTo(address);
      assertNothingAsked();
    }
  }

  @Test
  void workThatWasFoundDone_isNotAskedForAgain() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      for (byte round = 1; round <= 3; round++) {
        buffer.fill(round, other);
        long number = clock.now();
        clock.ask(number);
        assertThat(clock.isDone(number, number)).isTrue();
        calls.reset();
        clock.ask(number);
        clock.ask(number - 1);
        assertNothingAsked();
      }
    }
  }

  /** The other one goes on without an answer. */
  @Test
  void threadThatComesWhileAnotherAsks_asksNothing() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      long first = beginWork(buffer);
      clock.ask(first);
      long second = clock.moment(0).queued();
      int[] asked = new int[1];
      calls.atQuery.set(() -> {
        calls.reset();
        clock.ask(second);
        clock.askIfIdleBefore();
        asked[0] = calls.queries.get() + calls.records.get() + calls.creates.get();
      });
      clock.ask(first);
      assertThat(asked[0]).isZero();
      assertThat(clock.isDone(first, first)).isFalse();
    }
  }

  /** A stream that is busy most of the time costs nothing as its memory is freed. */
  @Test
  void closedStreamThatWasBusyWhenItWasAskedLast_isNotAskedAsMemoryIsFreed() {
    CudaStream brief = stream();
    StreamClock ofBrief = brief.state.clock;
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      busy.begin(brief);
      buffer.fill((byte) 1, brief);
      ofBrief.ask(ofBrief.now());
      buffer.fill((byte) 2, brief);
      Moment last = ofBrief.moment(0);
      ofBrief.ask(last.queued());
      busy.finish(brief); // the first of two is done
      busy.atNextQuery(() -> busy.atNextQuery(() -> busy.begin(brief)));
      ofBrief.ask(last.queued());
      brief.close();
      busy.finish(brief);
      ofBrief.askIfIdleBefore();
      assertThat(ofBrief.isDone(last.noted(), last.queued())).as("nobody has asked").isFalse();
      ofBrief.ask(last.queued());
      assertThat(ofBrief.isDone(last.noted(), last.queued())).isTrue();
    }
  }

  /** A question about it would take an event as well. */
  @Test
  void streamThatOthersHave_isMarked_andAskedWithTheNextLook() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      assertThat(other.handle()).isNotZero();
      buffer.fill((byte) 1, other);
      long number = clock.now();
      calls.reset();
      clock.ask(number);
      assertThat(calls.records).hasValue(1);
      assertThat(calls.queries).hasValue(0);
      clock.ask(number);
      assertThat(clock.isDone(number, number)).isTrue();
      assertThat(calls.records).hasValue(1);
      assertThat(calls.queries).hasValue(1);
    }
  }
}
