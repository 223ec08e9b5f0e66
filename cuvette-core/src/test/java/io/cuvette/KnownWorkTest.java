package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.clock.StreamClock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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

  /** Its memory would stay pending until somebody looks for memory. */
  @Test
  void streamThatWasBusy_isAskedAgain_onceAllIsKnownToBeDone() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      long number = beginWork(buffer);
      old.ask(number);
      assertThat(old.isDone(number, number)).isFalse();
      busy.finish(other);
      old.ask(number);
      assertThat(old.isDone(number, number)).isTrue();
      buffer.fill((byte) 2, other);
      long next = old.now();
      assertThat(old.isDone(next, next)).as("nobody has asked").isFalse();
      old.askIfIdleBefore();
      assertThat(old.isDone(next, next)).isTrue();
    }
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

  /** Each question that is not answered yet takes an event, of which there are so many. */
  @Test
  void workThatIsAskedForVeryOften_takesSixteenEvents() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      busy.begin(other);
      for (int i = 1; i <= 20; i++) {
        buffer.fill((byte) i, other);
        long wanted = old.moment(0).queued();
        int before = calls.records.get();
        old.ask(wanted);
        assertThat(calls.records.get() - before).as("question %d", i).isEqualTo(i <= 16 ? 1 : 0);
      }
    }
  }

  /** What was queued later may take as long as it likes. */
  @Test
  void whatIsKnownToBeDone_isNotWaitedFor() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      busy.begin(other);
      buffer.fill((byte) 1, other);
      Moment done = old.moment(0);
      buffer.fill((byte) 2, other);
      long later = old.moment(0).queued();
      old.ask(later);
      StreamClock.done(done);
      int waits = busy.waits();
      old.await(done.queued());
      assertThat(busy.waits()).isEqualTo(waits);
      assertThat(old.isDone(later, later)).isFalse();
    }
  }

  /** Whoever comes meanwhile waits for its turn, and need not ask any more then. */
  @Test
  @Timeout(60)
  void stream_isAskedByOneThreadAtATime() throws InterruptedException {
    AtomicInteger asked = new AtomicInteger();
    AtomicReference<@Nullable Runnable> whenAsked = new AtomicReference<>();
    try (Cuda own =
        Cuda.open(
            CudaOptions.simulated()
                .withDevice("sim:pace=eager")
                .withDecorator(driver -> asking(driver, asked, whenAsked)))) {
      CudaStream stream = own.device(0).createStream(StreamOptions.NON_BLOCKING);
      own.allocatePinned(BYTES).fill((byte) 1, stream);
      StreamClock clock = stream.state.clock;
      long number = clock.now();
      Thread second = Thread.ofPlatform().unstarted(() -> clock.await(number));
      AtomicInteger meanwhile = new AtomicInteger(-1);
      whenAsked.set(() -> {
        int before = asked.get();
        second.start();
        while (second.getState() == Thread.State.RUNNABLE) {
          Thread.onSpinWait();
        }
        meanwhile.set(asked.get() - before);
      });
      clock.await(number);
      second.join();
      assertThat(meanwhile).hasValue(0);
      assertThat(clock.isDone(number, number)).isTrue();
    }
  }

  private static CudaDriver asking(
      CudaDriver driver, AtomicInteger asked, AtomicReference<@Nullable Runnable> whenAsked) {
    StreamCalls streams =
        new ForwardingStreams(driver.streams()) {
          @Override
          public boolean streamQuery(int device, long stream) {
            asked.incrementAndGet();
            Runnable once = whenAsked.getAndSet(null);
            if (once != null) {
              once.run();
            }
            return super.streamQuery(device, stream);
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public StreamCalls streams() {
        return streams;
      }
    };
  }

  @Test
  void workOfAClosedStream_isDoneAfterAWait() {
    CudaStream brief = stream();
    StreamClock clock = brief.state.clock;
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      busy.begin(brief);
      buffer.fill((byte) 1, brief);
      long number = clock.now();
      brief.close();
      clock.ask(number);
      assertThat(clock.isDone(number, number)).isFalse();
      clock.await(number);
      assertThat(clock.isDone(number, number)).isTrue();
    }
  }

  /** The work before it is done once it is, and not when somebody asks. */
  @Test
  void eventThatIsAsked_saysWhatIsDone() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      long number = beginWork(buffer);
      try (CudaEvent event = other.record()) {
        assertThat(event.isDone()).isFalse();
        assertThat(old.isDone(number, number)).isFalse();
        busy.finish(other);
        assertThat(old.isDone(number, number)).as("nobody has asked").isFalse();
        assertThat(event.isDone()).isTrue();
        assertThat(old.isDone(number, number)).isTrue();
      }
    }
  }

  /** They may have recorded it somewhere else since. */
  @Test
  void eventThatOthersHave_saysNothingOfTheStreamItWasRecordedIn() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      long number = beginWork(buffer);
      for (boolean isShown : new boolean[] {false, true}) {
        CudaStream waiting = stream();
        try (CudaEvent event = other.record()) {
          if (isShown) {
            assertThat(event.handle()).isNotZero();
          }
          waiting.waitFor(event);
          assertThat(isAfter(waiting.state.clock, old, number)).isEqualTo(!isShown);
        }
      }
      CudaEvent shown = other.record();
      assertThat(shown.handle()).isNotZero();
      busy.finish(other);
      assertThat(shown.isDone()).isTrue();
      assertThat(old.isDone(number, number)).isFalse();
      shown.close();
    }
  }

  /** It is done where the graph records it, of which the stream knows nothing. */
  @Test
  void eventThatAGraphHas_saysNothingOfTheStreamItWasRecordedIn() {
    try (Buffer buffer = cuda.allocate(BYTES, other);
        GraphDefinition graph = new GraphDefinition(cuda.device(0))) {
      long number = beginWork(buffer);
      try (CudaEvent event = other.record()) {
        GraphNode _ = graph.root().record(event);
        busy.finish(other);
        assertThat(event.isDone()).isTrue();
        assertThat(old.isDone(number, number)).isFalse();
      }
    }
  }

  /** What is done is the later record, in a stream that has no work. */
  @Test
  void eventThatIsRecordedAgainAsItIsAsked_saysNothingOfTheRecordBefore() {
    try (Buffer buffer = cuda.allocate(BYTES, other)) {
      long number = beginWork(buffer);
      try (CudaEvent event = other.record()) {
        busy.atNextQuery(() -> event.record(home));
        assertThat(event.isDone()).isTrue();
        assertThat(old.isDone(number, number)).isFalse();
      }
    }
  }

  /** What each of some streams knows of each other, as two numbers. */
  private static final class Model {
    private static final int STREAMS = 5;
    private final StreamClock[] clocks;
    private final long[][][] known = new long[STREAMS][STREAMS][2];
    private final long[][] done = new long[STREAMS][2];

    Model(StreamClock[] clocks) {
      this.clocks = clocks;
    }

    private static void raise(long[] numbers, long[] by) {
      numbers[0] = Math.max(numbers[0], by[0]);
      numbers[1] = Math.max(numbers[1], by[1]);
    }

    void follow(int asking, long[][] moment) {
      for (int of = 0; of < STREAMS; of++) {
        if (of != asking) {
          raise(known[asking][of], moment[of]);
        }
      }
    }

    /** What comes before a moment of a stream. */
    long[][] at(int stream, Moment moment) {
      long[][] all = new long[STREAMS][];
      for (int of = 0; of < STREAMS; of++) {
        all[of] = known[stream][of].clone();
      }
      all[stream] = new long[] {moment.noted(), moment.queued()};
      return all;
    }

    void done(long[][] moment) {
      for (int of = 0; of < STREAMS; of++) {
        raise(done[of], moment[of]);
      }
    }

    /** What is done may be forgotten. */
    void check() {
      for (int asking = 0; asking < STREAMS; asking++) {
        for (int of = 0; of < STREAMS; of++) {
          for (int kind = 0; kind < 2; kind++) {
            long most = known[asking][of][kind];
            for (long number = Math.max(1, most - 2); number <= most + 2; number++) {
              boolean isAfter =
                  clocks[asking].isAfter(
                      clocks[of],
                      kind == 0 ? number : StreamClock.NOT_NOTED,
                      kind == 1 ? number : StreamClock.NOT_NOTED);
              boolean isForgotten =
                  known[asking][of][0] <= done[of][0] && known[asking][of][1] <= done[of][1];
              assertThat(isAfter || isForgotten)
                  .as("%d of %d by %d: %d of %d", kind, of, asking, number, most)
                  .isEqualTo(number <= most || isForgotten);
            }
          }
        }
      }
    }
  }

  @Test
  void anyProgram_knowsOfEachStreamTheLatestThatItHeard() {
    SplittableRandom random = new SplittableRandom(1);
    for (int round = 0; round < 40; round++) {
      CudaStream[] streams = new CudaStream[Model.STREAMS];
      Arrays.setAll(streams, _ -> stream());
      StreamClock[] clocks =
          Arrays.stream(streams).map(each -> each.state.clock).toArray(StreamClock[]::new);
      Model model = new Model(clocks);
      List<Moment> moments = new ArrayList<>();
      List<long[][]> knowing = new ArrayList<>();
      for (int step = 0; step < 60; step++) {
        int stream = random.nextInt(Model.STREAMS);
        boolean isHeld = random.nextInt(3) > 0;
        if (isHeld) {
          CudaDriver _ = streams[stream].state.hold();
        }
        Moment moment = clocks[stream].moment(0);
        assertThat(moment.noted() == moment.queued()).isEqualTo(!isHeld);
        if (isHeld) {
          streams[stream].state.unhold();
        }
        moments.add(moment);
        knowing.add(model.at(stream, moment));
        int which = random.nextInt(moments.size());
        int asking = random.nextInt(Model.STREAMS);
        clocks[asking].follow(moments.get(which));
        model.follow(asking, knowing.get(which));
        if (random.nextInt(10) == 0) {
          StreamClock.done(moments.get(which));
          model.done(knowing.get(which));
        }
        model.check();
      }
    }
  }
}
