package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.Await;
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
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FullQueuesTest {
  private static final int MANY = 200;

  /** As long as a thread that gets no processor may take. */
  private static final long LONG_MILLIS = 40_000;

  private SimulatedDriver driver;
  private Cuda cuda;

  private void open(String settings, long patienceMillis) {
    driver = SimulatedDriver.open(SimulatedOptions.parse(settings));
    cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
    setPatience(patienceMillis);
  }

  private void setPatience(long millis) {
    cuda.engine().session().frees().setPatienceNanos(TimeUnit.MILLISECONDS.toNanos(millis));
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
    open("queues=%d,queueLength=64".formatted(queues), LONG_MILLIS);
    addManyThatCallTheDriver(threads, IntStream.range(0, streams).mapToObj(_ -> stream()).toList());
  }

  private void addManyThatCallTheDriver(int threads, List<CudaStream> streams) throws Exception {
    AtomicInteger ran = new AtomicInteger();
    List<Throwable> failures = new CopyOnWriteArrayList<>();
    List<Thread> adding = new ArrayList<>();
    for (int i = 0; i < threads * streams.size(); i++) {
      CudaStream stream = streams.get(i % streams.size());
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
    streams.forEach(CudaStream::synchronize);
    assertThat(failures).isEmpty();
    assertThat(ran).hasValue(threads * streams.size() * MANY);
  }

  /** To look at page-locked memory is no call of the driver. */
  @ParameterizedTest
  @ValueSource(ints = {8, 64})
  void callbacksThatReadMemory_areNotKeptOutByAThreadThatQueuesMore(int length) {
    open("queues=1,queueLength=" + length, LONG_MILLIS);
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

  /** If each of them were waited for it would take too long. */
  @Test
  void callbackThatWaitsForTheThreadThatAddsMore_isWaitedForOnce_andTheNextAgain()
      throws Exception {
    open("queues=1,queueLength=512", 500);
    CudaStream stream = stream();
    CountDownLatch added = new CountDownLatch(1);
    List<Integer> seen = new ArrayList<>();
    stream.addCallback(() -> Latches.await(added));
    for (int i = 0; i < MANY; i++) {
      int number = i;
      stream.addCallback(() -> seen.add(number));
    }
    added.countDown();
    stream.synchronize();
    assertThat(seen).hasSize(MANY).isSorted();
    setPatience(LONG_MILLIS);
    addManyThatCallTheDriver(4, List.of(stream)); // what does not wait would fill the queue
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

  @Test
  void threadThatFillsAStreamThatItHolds_goesOn_whereEachStreamHasAQueue() {
    open("queues=0,queueLength=8", 600_000);
    CudaStream stream = stream();
    Buffer buffer = cuda.allocate(64, stream);
    CountDownLatch filled = new CountDownLatch(1);
    CompletableFuture<Void> held = stream.addCallback(() -> Latches.await(filled));
    for (int i = 0; i < 20; i++) {
      buffer.fill((byte) i, stream);
    }
    assertThat(held).isNotDone();
    filled.countDown();
    buffer.close();
    stream.synchronize();
    held.join();
  }

  /** That program stands still on a GPU: its queue is full of other work than callbacks. */
  @Test
  void closingTheCuda_endsAStandstill() throws Exception {
    open("queues=1,queueLength=8,queuePatience=86400000", 2_000); // the watcher looks meanwhile
    CudaStream stream = stream();
    Buffer buffer = cuda.allocate(64, stream);
    CountDownLatch filled = new CountDownLatch(1);
    CompletableFuture<Void> held =
        stream.addCallback(() -> {
          Latches.await(filled);
          MemoryResource.direct().allocate(64, stream).close();
        });
    CompletableFuture<Void> behind = stream.addCallback(() -> {}); // for it the devices are asked
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
    boolean areDone =
        Await.until(
            () -> held.isDone() && behind.isDone(), TimeUnit.MILLISECONDS.toNanos(LONG_MILLIS));
    assertThat(areDone).isTrue();
    assertThat(seen).hasSize(1).hasOnlyElementsOfType(IllegalStateException.class);
  }
}
