package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Callbacks while threads fill the queues that these hold: a thread that waits in the driver for
 * room keeps all other calls out, as on a GPU.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FullQueuesTest {
  private static final int MANY = 200;

  private SimulatedDriver driver;
  private Cuda cuda;

  private void open(String settings, long patienceMillis) {
    driver = SimulatedDriver.open(SimulatedOptions.parse(settings));
    cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
    cuda.engine().session().frees().setPatienceNanos(TimeUnit.MILLISECONDS.toNanos(patienceMillis));
  }

  @AfterEach
  void close() {
    cuda.close();
    assertThat(driver.report()).isEmpty();
  }

  private CudaStream stream() {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  @ParameterizedTest
  @CsvSource({"1, 1, 1", "1, 4, 1", "8, 1, 4", "8, 4, 4"})
  void callbacksThatCallTheDriver_areNotKeptOutByThreadsThatAddMore(
      int queues, int threads, int streams) throws Exception {
    open("queues=%d,queueLength=64".formatted(queues), 10_000);
    List<CudaStream> all = IntStream.range(0, streams).mapToObj(_ -> stream()).toList();
    AtomicInteger ran = new AtomicInteger();
    List<Throwable> failures = new CopyOnWriteArrayList<>();
    List<Thread> adding = new ArrayList<>();
    for (int i = 0; i < threads * streams; i++) {
      CudaStream stream = all.get(i % streams);
      Runnable callback =
          () -> {
            MemoryResource.direct().allocate(64, stream).close();
            ran.incrementAndGet();
          };
      adding.add(
          Thread.ofPlatform()
              .uncaughtExceptionHandler((_, e) -> failures.add(e))
              .start(() -> {
                for (int n = 0; n < MANY; n++) {
                  stream.addCallback(callback);
                }
              }));
    }
    for (Thread thread : adding) {
      thread.join();
    }
    all.forEach(CudaStream::synchronize);
    assertThat(failures).isEmpty();
    assertThat(ran).hasValue(threads * streams * MANY);
  }

  /** To look at page-locked memory is no call of the driver. */
  @ParameterizedTest
  @ValueSource(ints = {8, 64})
  void callbacksThatReadMemory_areNotKeptOutByAThreadThatQueuesMore(int length) {
    open("queues=1,queueLength=" + length, 10_000);
    List<Byte> seen = new ArrayList<>();
    List<Byte> expected = new ArrayList<>();
    try (CudaStream stream = stream();
        Buffer buffer = cuda.allocate(64, stream);
        PinnedBuffer host = cuda.allocatePinned(64)) {
      for (int i = 0; i < MANY; i++) {
        byte value = (byte) i;
        expected.add(value);
        buffer.fill(value, stream);
        host.copyFrom(buffer, stream);
        stream.addCallback(() -> seen.add(host.segment().get(ValueLayout.JAVA_BYTE, 63)));
      }
      stream.synchronize();
    }
    assertThat(seen).isEqualTo(expected);
  }

  @Test
  void callbackThatWaitsForTheThreadThatAddsMore_isWaitedForOnce() {
    open("queues=0", 200);
    CudaStream stream = stream();
    CountDownLatch added = new CountDownLatch(1);
    List<Integer> seen = new ArrayList<>();
    stream.addCallback(() -> await(added));
    for (int i = 0; i < MANY; i++) { // at 200 ms each it would take too long
      int number = i;
      stream.addCallback(() -> seen.add(number));
    }
    added.countDown();
    stream.synchronize();
    assertThat(seen).hasSize(MANY).isSorted();
  }

  @Test
  void callbackThatAddsMany_doesNotWaitForItself() {
    open("queues=0", 600_000);
    CudaStream stream = stream();
    AtomicInteger ran = new AtomicInteger();
    stream.addCallback(() -> {
      for (int i = 0; i < MANY; i++) {
        stream.addCallback(ran::incrementAndGet);
      }
    });
    stream.synchronize(); // the first, which has queued the others
    stream.synchronize();
    assertThat(ran).hasValue(MANY);
  }

  /** That program stands still on a GPU: its queue is full of other work than callbacks. */
  @Test
  void closingTheCuda_endsAStandstill() throws Exception {
    open("queues=1,queueLength=8,queuePatience=86400000", 200);
    CudaStream stream = stream();
    Buffer buffer = cuda.allocate(64, stream);
    CountDownLatch filled = new CountDownLatch(1);
    CompletableFuture<Void> held =
        stream.addCallback(() -> {
          await(filled);
          MemoryResource.direct().allocate(64, stream).close();
        });
    List<Throwable> seen = new CopyOnWriteArrayList<>();
    Thread filling =
        Thread.ofPlatform()
            .uncaughtExceptionHandler((_, e) -> seen.add(e))
            .start(() -> {
              while (true) {
                buffer.fill((byte) 1, stream);
              }
            });
    while (filling.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    filled.countDown();
    cuda.close();
    filling.join();
    assertThat(held).isDone();
    assertThat(seen).hasSize(1).hasOnlyElementsOfType(IllegalStateException.class);
  }

  private void await(CountDownLatch latch) {
    try {
      boolean _ = latch.await(60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
