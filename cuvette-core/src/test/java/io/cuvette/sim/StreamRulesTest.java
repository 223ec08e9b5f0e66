package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;

/** What is true of whatever is done in a stream. */
class StreamRulesTest extends SimTestBase {
  private static final int RELAXED = 2;
  private static final int MOST_QUESTIONS = 500;
  private static final long[] LEGACY = {0, 1};

  private final SimulatedKernels.Registered registered =
      SimulatedKernels.register(SimOperations.NOTHING);
  private final SimOperations operations = new SimOperations(driver, 0);
  private final Map<String, LongConsumer> uncapturable = operations.uncapturable();
  private final long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);

  @org.junit.jupiter.api.AfterEach
  void unregister() {
    registered.close();
  }

  private Map<String, LongConsumer> all() {
    Map<String, LongConsumer> all = works();
    all.putAll(operations.questions());
    return all;
  }

  private Map<String, LongConsumer> works() {
    Map<String, LongConsumer> works = new LinkedHashMap<>(operations.works());
    works.putAll(uncapturable);
    return works;
  }

  private void begin(long stream) {
    driver.captures().streamBeginCapture(0, stream, RELAXED);
  }

  private void assertSpoiled(long stream) {
    assertFails(
        CudaStatus.STREAM_CAPTURE_INVALIDATED,
        "during",
        () -> driver.captures().streamEndCapture(0, stream));
  }

  /** The legacy stream would wait for a stream whose work is only recorded. */
  @Test
  void nothingIsDoneInTheLegacyStream_whileABlockingStreamIsCaptured() {
    String before = SimOperations.state(driver, 0);
    all()
        .forEach((name, operation) -> {
          for (long legacy : LEGACY) {
            begin(blocking);
            assertFails(
                CudaStatus.STREAM_CAPTURE_IMPLICIT, "legacy", () -> operation.accept(legacy));
            assertSpoiled(blocking);
            assertThat(SimOperations.state(driver, 0)).as(name).isEqualTo(before);
          }
        });
    all().forEach((_, operation) -> operation.accept(0));
  }

  @Test
  void legacyStream_doesAllBesideCapturesThatItWouldNotWaitFor() {
    long apart = stream(0);
    long elsewhere = driver.streams().streamCreateWithPriority(1, 0, 0);
    begin(apart);
    driver.captures().streamBeginCapture(1, elsewhere, RELAXED);
    all().forEach((_, operation) -> operation.accept(0));
    assertThat(driver.captures().streamIsCapturing(0, 0)).isZero();
    assertThat(driver.captures().streamIsCapturing(0, apart)).isEqualTo(1);
    assertThat(driver.captures().streamIsCapturing(1, elsewhere)).isEqualTo(1);
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, apart));
    driver.graphs().graphDestroy(driver.captures().streamEndCapture(1, elsewhere));
  }

  @Test
  void nothingIsRecorded_byACaptureThatIsSpoiled() {
    String before = SimOperations.state(driver, 0);
    operations
        .works()
        .forEach((name, operation) -> {
          begin(blocking);
          assertFails(
              CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
              "captured",
              () -> driver.streams().streamSynchronize(0, blocking));
          assertFails(
              CudaStatus.STREAM_CAPTURE_INVALIDATED, "during", () -> operation.accept(blocking));
          assertFails(
              CudaStatus.STREAM_CAPTURE_INVALIDATED,
              "during",
              () -> driver.captures().streamUpdateCaptureDependencies(0, blocking, new long[0]));
          assertThat(driver.captures().streamGetCaptureDependencies(0, blocking)).isEmpty();
          assertThat(driver.captures().streamIsCapturing(0, blocking)).isEqualTo(2);
          assertSpoiled(blocking);
          assertThat(SimOperations.state(driver, 0)).as(name).isEqualTo(before);
        });
  }

  @Test
  void streamThatIsNone_isRefused_andNothingIsDone() {
    String before = SimOperations.state(driver, 0);
    long gone = stream(0);
    driver.streams().streamDestroy(0, gone);
    all()
        .forEach((name, operation) -> {
          for (long wrong : new long[] {NO_HANDLE, 3, -1, operations.target, gone}) {
            assertFails(CudaStatus.INVALID_HANDLE, "stream", () -> operation.accept(wrong));
          }
          assertThat(SimOperations.state(driver, 0)).as(name).isEqualTo(before);
        });
  }

  /** Of all streams that are held the legacy stream waits for those that block, and no others. */
  @Test
  void legacyStream_isDoneWithAllBlockingStreams() {
    long thread = 2;
    long apart = stream(0);
    operations
        .works()
        .forEach((name, operation) -> {
          for (long stream : new long[] {blocking, thread}) {
            CountDownLatch goOn = hold(0, stream);
            operation.accept(stream);
            for (long busy : new long[] {0, 1, stream}) {
              assertThat(driver.streams().streamQuery(0, busy)).as(name).isFalse();
            }
            driver.streams().streamSynchronize(0, apart);
            assertThat(driver.streams().streamQuery(0, apart)).as(name).isTrue();
            goOn.countDown();
            driver.streams().streamSynchronize(0, 0);
            assertThat(driver.streams().streamQuery(0, stream)).as(name).isTrue();
          }
        });
    CountDownLatch goOn = hold(0, apart);
    driver.streams().streamSynchronize(0, 0);
    assertThat(driver.streams().streamQuery(0, 0)).isTrue();
    assertThat(driver.streams().streamQuery(0, apart)).isFalse();
    goOn.countDown();
  }

  /** On a device that is quick all is done when its call returns, whatever it is. */
  @Test
  void quickDevice_isDoneWithAnyWork_whenItsCallReturns() {
    try (SimulatedDriver quick = open("eager")) {
      SimOperations all = new SimOperations(quick, 0);
      Map<String, LongConsumer> works = new LinkedHashMap<>(all.works());
      works.putAll(all.uncapturable());
      works.remove("host function"); // which another thread runs
      long stream = quick.streams().streamCreateWithPriority(0, 1, 0);
      works.forEach((name, work) -> {
        work.accept(stream);
        assertThat(quick.streams().streamQuery(0, stream)).as(name).isTrue();
      });
    }
  }

  /** A program that only asks gets there, with any of the questions. */
  @Test
  void askingForTheEndOfWork_bringsIt_howeverItIsAsked() {
    for (String pace : List.of("eager", "mixed", "lazy")) {
      try (SimulatedDriver own = open(pace)) {
        long address = own.memory().memAlloc(0, 64);
        long start = own.events().eventCreate(0, 0);
        long end = own.events().eventCreate(0, 0);
        own.events().eventRecord(0, start, 0);
        own.streams().streamSynchronize(0, 0);
        List<BooleanSupplier> questions =
            List.of(
                () -> own.streams().streamQuery(0, 0),
                () -> own.events().eventQuery(0, end),
                () -> isTimed(own, start, end),
                () -> isTimed(own, end, start));
        for (BooleanSupplier question : questions) {
          for (int i = 0; i < 8; i++) {
            own.transfers().memsetD8Async(0, address, (byte) i, 64, 0);
          }
          own.events().eventRecord(0, end, 0);
          long began = System.nanoTime();
          int asked = 0;
          while (!question.getAsBoolean()) {
            asked++;
          }
          assertThat(asked).isLessThan(MOST_QUESTIONS);
          assertThat(System.nanoTime() - began).isLessThan(TimeUnit.SECONDS.toNanos(20));
        }
      }
    }
  }

  private static boolean isTimed(SimulatedDriver driver, long start, long end) {
    try {
      return Float.isFinite(driver.events().eventElapsedTime(0, start, end));
    } catch (CudaException e) {
      assertThat(e.status()).isEqualTo(CudaStatus.NOT_READY);
      return false;
    }
  }

  private static SimulatedDriver open(String pace) {
    return SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB,pace=" + pace));
  }
}
