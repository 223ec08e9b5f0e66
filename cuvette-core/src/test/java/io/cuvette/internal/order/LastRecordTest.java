package io.cuvette.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.EngineMemory;
import io.cuvette.StreamOptions;
import io.cuvette.internal.clock.Moment;
import io.cuvette.internal.stream.DriverStream;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What comes before the last record of an event is known, or it is not said. */
class LastRecordTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream first = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream second = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final DriverStream one = EngineMemory.streamOf(first);
  private final DriverStream two = EngineMemory.streamOf(second);
  private final LastRecord last = new LastRecord();

  @AfterEach
  void close() {
    cuda.close();
  }

  private void assertIsOf(DriverStream stream) {
    Moment moment = Objects.requireNonNull(last.moment());
    assertThat(moment.clock()).isSameAs(stream.clock);
  }

  private void assertIsUnknown() {
    assertThat(last.moment()).isNull();
  }

  @Test
  void record_isKnownOnceItIsMade_untilTheNextBegins() {
    assertIsUnknown();
    for (DriverStream stream : new DriverStream[] {one, two, one, one}) {
      last.record(stream, this::assertIsUnknown);
      assertIsOf(stream);
    }
  }

  /** Which of them the driver made last, nobody knows. */
  @Test
  void recordsAtOnce_areNotKnown_norIsWhichCameFirst() {
    last.record(
        one,
        () -> {
          last.record(two, () -> {});
          assertIsUnknown();
          last.record(one, () -> {});
          assertIsUnknown();
        });
    assertIsUnknown();
    last.record(two, () -> {});
    assertIsOf(two);
  }

  @Test
  void recordThatFails_isNotKnown_andHindersNoneAfterIt() {
    last.record(one, () -> {});
    assertThatThrownBy(() ->
            last.record(
                two,
                () -> {
                  throw new IllegalStateException("by the test");
                }))
        .hasMessage("by the test");
    assertIsUnknown();
    last.record(two, () -> {});
    assertIsOf(two);
  }

  /** Others may queue work there that the library knows nothing of. */
  @Test
  void recordInAStreamThatOthersHave_isNotKnown() {
    last.record(one, () -> {});
    assertThat(second.handle()).isNotZero();
    last.record(two, () -> {});
    assertIsUnknown();
    last.record(one, () -> {});
    assertIsOf(one);
  }

  @Test
  void eventThatOthersCanRecord_isNeverKnownAgain() {
    last.record(one, () -> {});
    last.share();
    assertIsUnknown();
    last.record(one, () -> {});
    assertIsUnknown();
  }
}
