package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.clock.StreamClock;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a stream knows of others, each by its own numbers: too much of it loses memory. */
class KnownWorkTest extends OrderingFixture {
  private final StreamClock asking = stream().state.clock;
  private final StreamClock young = home.state.clock;
  private final StreamClock old = other.state.clock;
  private final StreamClock last = stream().state.clock;

  /** One of the streams has come much further than the others. */
  @BeforeEach
  void begin() {
    for (int i = 0; i < 10; i++) {
      Moment _ = old.moment(0);
    }
  }

  private static boolean isAfter(StreamClock asking, StreamClock other, long number) {
    boolean isAfter = asking.isAfter(other, number, number);
    assertThat(asking.isAfter(other, number, StreamClock.NOT_NOTED)).isEqualTo(isAfter);
    assertThat(asking.isAfter(other, StreamClock.NOT_NOTED, number)).isEqualTo(isAfter);
    return isAfter;
  }

  /** Has a stream wait for another: it knows what the other's clock shows, and no more. */
  private static long follow(StreamClock asking, StreamClock other) {
    long number = other.now();
    asking.follow(other.moment(0));
    assertKnown(asking, other, number);
    return number;
  }

  private static void assertKnown(StreamClock asking, StreamClock other, long number) {
    assertThat(isAfter(asking, other, number)).isTrue();
    assertThat(isAfter(asking, other, number + 1)).isFalse();
  }

  @Test
  void streams_areKnownByTheirOwnNumbers_inWhateverOrderTheyAreWaitedFor() {
    assertThat(isAfter(asking, young, 1)).isFalse();
    long ofYoung = follow(asking, young);
    long ofOld = follow(asking, old);
    assertKnown(asking, young, ofYoung);
    long ofLast = follow(asking, last);
    assertKnown(asking, young, ofYoung);
    assertKnown(asking, old, ofOld);
    long again = follow(asking, young);
    assertThat(again).isGreaterThan(ofYoung);
    assertKnown(asking, old, ofOld);
    assertKnown(asking, last, ofLast);
    assertThat(isAfter(asking, asking, 1)).as("its own work").isFalse();
  }

  @Test
  void whatAnotherKnows_isKnownWithIt_atThatMoment() {
    long ofOld = follow(young, old);
    long ofYoung = follow(asking, young);
    assertKnown(asking, old, ofOld);
    long later = follow(young, old);
    assertKnown(asking, old, ofOld);
    assertKnown(asking, young, ofYoung);
    long afterThat = follow(asking, young);
    assertThat(afterThat).isGreaterThan(ofYoung);
    assertKnown(asking, old, later);
  }

  /** Whether the stream itself knew more, or the one that it waits for. */
  @Test
  void ofTwoWaitsForOneStream_theLaterIsKnown() {
    long first = follow(young, old);
    long second = follow(asking, old);
    assertThat(second).isGreaterThan(first);
    long _ = follow(asking, young);
    assertKnown(asking, old, second);
    long _ = follow(last, old);
    long third = follow(last, old);
    long _ = follow(asking, last);
    assertKnown(asking, old, third);
  }

  /** Whatever the stream does next. */
  @Test
  void whatWasFoundDone_staysDone() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      buffer.fill((byte) 1, other);
      long number = old.now();
      assertThat(old.isDone(number, number)).as("nobody has asked").isFalse();
      old.askIfIdleBefore();
      assertThat(old.isDone(number, number)).isTrue();
      busy.begin(other);
      buffer.fill((byte) 2, other);
      assertThat(old.isDone(number, number)).isTrue();
      long next = old.now();
      old.askIfIdleBefore();
      assertThat(next).isGreaterThan(number);
      assertThat(old.isDone(next, next)).isFalse();
    }
  }

  /** Nobody asks for it any more. */
  @Test
  void whatIsDone_isForgotten() {
    Moment moment = old.moment(0);
    long number = moment.queued();
    asking.follow(moment);
    StreamClock.done(moment);
    assertKnown(asking, old, number);
    long _ = follow(asking, young);
    assertThat(isAfter(asking, old, number)).isFalse();
    assertThat(old.isDone(number, number)).isTrue();
    assertThat(young.isDone(young.now(), young.now())).as("has no work").isTrue();
  }

  /** Else a stream would take what it does later for done. */
  @Test
  void whatAStreamHearsOfItself_isNothing() {
    long _ = follow(young, asking);
    long _ = follow(asking, young);
    assertThat(isAfter(asking, asking, 1)).isFalse();
  }

  @Test
  void whatComesBeforeSomethingDone_isDone() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      busy.begin(other);
      buffer.fill((byte) 1, other);
      long number = follow(young, old);
      assertThat(old.isDone(number, number)).isFalse();
      StreamClock.done(young.moment(0));
      assertThat(old.isDone(number, number)).isTrue();
      assertThat(old.isDone(number + 1, number + 1)).isFalse();
    }
  }

  @Test
  void workOfAClosedStream_isDoneOnceItsLastIs() {
    CudaStream brief = stream();
    StreamClock clock = brief.state.clock;
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      busy.begin(brief);
      buffer.fill((byte) 1, brief);
      long number = clock.now();
      brief.close();
      clock.askIfIdleBefore();
      assertThat(clock.isDone(number, number)).isFalse();
      busy.finish(brief);
      clock.ask(number);
      assertThat(clock.isDone(number, number)).isTrue();
      assertThat(clock.isDone(number + 9, number + 9)).as("there is no more").isTrue();
    }
  }

  @Test
  void closedStreamThatIsIdle_isFoundDoneAtOnce() {
    CudaStream brief = stream();
    StreamClock clock = brief.state.clock;
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      buffer.fill((byte) 1, brief);
      long number = clock.now();
      brief.close();
      clock.askIfIdleBefore();
      assertThat(clock.isDone(number, number)).isTrue();
    }
  }
}
