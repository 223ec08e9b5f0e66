package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.Latches;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.internal.queue.SimStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Streams that share few queues of a bounded length, as those of a GPU do. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SharedQueuesTest {
  private static final int UNTIL_EQUAL = 1;
  private static final int SHORT = 200;
  private static final int TRIES = 50;

  private final List<SimulatedDriver> drivers = new ArrayList<>();
  private final CountDownLatch over = new CountDownLatch(1);

  @AfterEach
  void close() {
    over.countDown();
    drivers.forEach(SimulatedDriver::close);
  }

  private SimulatedDriver open(String settings) {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse(settings));
    drivers.add(driver);
    return driver;
  }

  private static long stream(SimulatedDriver driver, int device) {
    return driver.streams().streamCreateWithPriority(device, SimStream.NON_BLOCKING, 0);
  }

  private static MemorySegment word(SimulatedDriver driver, int value) {
    MemorySegment word = driver.memory().memHostAlloc(0, 4, 0);
    word.set(ValueLayout.JAVA_INT, 0, value);
    return word;
  }

  private static void waitForOne(
      SimulatedDriver driver, int device, long stream, MemorySegment word) {
    driver.streams().streamWaitValue32(device, stream, word.address(), 1, UNTIL_EQUAL);
  }

  private static void copy(SimulatedDriver driver, MemorySegment to, MemorySegment from, long on) {
    driver.transfers().memcpyAsync(0, to.address(), from.address(), 4, on);
  }

  private static void poll(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      Thread.onSpinWait();
    }
  }

  private static boolean isParked(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING
        || thread.getState() == Thread.State.WAITING;
  }

  /** Or for others that do, and not for the lock of the driver alone. */
  private static boolean waitsForRoom(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING;
  }

  /** Stream 1 waits at a word that only work of stream 2 writes, which was queued later. */
  private void waitForLaterWork(SimulatedDriver driver) {
    MemorySegment flag = word(driver, 0);
    MemorySegment one = word(driver, 1);
    long first = stream(driver, 0);
    long second = stream(driver, 0);
    waitForOne(driver, 0, first, flag);
    copy(driver, flag, one, second);
    driver.streams().streamSynchronize(0, second);
    driver.streams().streamSynchronize(0, first);
  }

  @ParameterizedTest
  @EnumSource(SimulatedPace.class)
  void waitForWorkBehindInTheSameQueue_isReported(SimulatedPace pace) {
    String name = pace.name().toLowerCase(java.util.Locale.ROOT);
    SimulatedDriver driver = open("queues=1,queuePatience=%d,pace=%s".formatted(SHORT, name));
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "nothing moved for 200 ms: queue 0 of 1 of device 0: first in it is cuStreamWaitValue32(",
        () -> waitForLaterWork(driver));
  }

  @ParameterizedTest
  @CsvSource({"0", "2", "8"})
  void inQueuesOfTheirOwn_itPasses(int queues) {
    waitForLaterWork(open("queues=%d,queuePatience=%d".formatted(queues, SHORT)));
  }

  /** Whoever fills it goes on after a while, and no standstill is reported. */
  @ParameterizedTest
  @ValueSource(ints = {SHORT, 16})
  void fullQueueOfItsOwn_keepsNobodyFromWhatItWaitsFor(int patience) {
    SimulatedDriver driver = open("queues=0,queueLength=8,queuePatience=" + patience);
    MemorySegment flag = word(driver, 0);
    MemorySegment one = word(driver, 1);
    MemorySegment seen = word(driver, 0);
    long held = stream(driver, 0);
    waitForOne(driver, 0, held, flag);
    for (int i = 0; i < 20; i++) {
      copy(driver, seen, one, held);
    }
    assertThat(seen.get(ValueLayout.JAVA_INT, 0)).isZero();
    copy(driver, flag, one, stream(driver, 0));
    driver.streams().streamSynchronize(0, held);
    assertThat(seen.get(ValueLayout.JAVA_INT, 0)).isEqualTo(1);
  }

  /** Only where streams share queues do all calls wait for whoever waits for room. */
  @Test
  void threadThatWaitsForRoom_keepsNoOtherOut_whereEachStreamHasAQueue() throws Exception {
    SimulatedDriver driver = open("queues=0,queueLength=4");
    MemorySegment seen = word(driver, 0);
    boolean wasBeside = false;
    for (int i = 0; i < TRIES && !wasBeside; i++) { // it goes on after a tenth of a second
      MemorySegment flag = word(driver, 0);
      long held = stream(driver, 0);
      waitForOne(driver, 0, held, flag);
      Thread filling =
          Thread.ofPlatform()
              .start(() -> {
                for (int n = 0; n < 8; n++) {
                  copy(driver, seen, flag, held);
                }
              });
      poll(() -> waitsForRoom(filling) || !filling.isAlive());
      assertThat(driver.streams().streamQuery(0, 0)).isTrue();
      wasBeside = waitsForRoom(filling);
      filling.join();
      flag.set(ValueLayout.JAVA_INT, 0, 1);
      driver.streams().streamSynchronize(0, held);
    }
    assertThat(wasBeside).isTrue();
  }

  @Test
  void streamsTakeQueuesInTurn() {
    SimulatedDriver driver = open("queues=2,queuePatience=" + SHORT);
    stream(driver, 0); // beside the null stream, whose queue is the first
    long between = stream(driver, 0);
    driver.streams().streamDestroy(0, between);
    waitForLaterWork(driver);
    long held = stream(driver, 0);
    long other = stream(driver, 0);
    long same = stream(driver, 0);
    MemorySegment flag = word(driver, 0);
    waitForOne(driver, 0, held, flag);
    copy(driver, flag, word(driver, 1), same);
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT, "of 2 of device 0", () -> pollUntilDone(driver, same));
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT, "nothing moved", () -> driver.streams().streamQuery(0, other));
  }

  private static void pollUntilDone(SimulatedDriver driver, long stream) {
    poll(() -> driver.streams().streamQuery(0, stream));
  }

  @Test
  void hostFunctionThatWaitsForWorkBehindIt_isReported() {
    SimulatedDriver driver = open("queues=1,queuePatience=" + SHORT);
    MemorySegment flag = word(driver, 0);
    long first = stream(driver, 0);
    long second = stream(driver, 0);
    driver.streams().launchHostFunc(0, first, () -> Latches.await(over));
    copy(driver, flag, word(driver, 1), second);
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "first in it is a host function",
        () -> driver.streams().streamSynchronize(0, second));
  }

  /** A blocking stream waits once for each end of the legacy stream's work, that not for itself. */
  @Test
  void streamsAndTheLegacyStream_waitForEachOtherOnce() {
    SimulatedDriver driver = open("queues=2,queuePatience=" + SHORT);
    long blocking = driver.streams().streamCreateWithPriority(0, 0, 0);
    long besideLegacy = stream(driver, 0);
    long besideBlocking = stream(driver, 0);
    MemorySegment to = word(driver, 0);
    MemorySegment from = word(driver, 1);
    long legacyId = driver.streams().streamGetId(0, 0);
    long blockingId = driver.streams().streamGetId(0, blocking);
    long besideId = driver.streams().streamGetId(0, besideLegacy);
    driver.streams().launchHostFunc(0, 0, () -> Latches.await(over));
    copy(driver, to, from, 0);
    copy(driver, to, from, blocking);
    copy(driver, to, from, blocking);
    copy(driver, to, from, besideLegacy); // from now on nothing moves; there is one call more
    copy(driver, to, from, besideBlocking);
    String text =
        "a host function, in the stream of ID %d, and behind that 2 operations, also of the streams"
                .formatted(legacyId)
            + " of ID %d; queue 1 of 2 of device 0: first in it is a wait for operation 2 of"
                .formatted(besideId)
            + " the stream of ID %d, in the stream of ID %d, and behind that 3 operations"
                .formatted(legacyId, blockingId);
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        text,
        () -> driver.streams().streamSynchronize(0, besideBlocking));
  }

  @Test
  void otherDevices_goOn() {
    SimulatedDriver driver = open("devices=2,queues=1,queuePatience=" + SHORT);
    MemorySegment flag = word(driver, 0);
    waitForOne(driver, 1, stream(driver, 1), flag);
    long behind = stream(driver, 1);
    long address = driver.memory().memAlloc(1, 64);
    driver.transfers().memsetD8Async(1, address, (byte) 1, 64, behind);
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "of device 1",
        () -> driver.streams().streamSynchronize(1, behind));
    copy(driver, flag, word(driver, 1), stream(driver, 0));
    driver.devices().ctxSynchronize(0);
    assertThat(flag.get(ValueLayout.JAVA_INT, 0)).isEqualTo(1);
  }

  /** The thread is in the call that found the queue full, where nobody could ever help it. */
  @Test
  void fullQueueBehindAWait_isReported() {
    SimulatedDriver driver = open("queues=4,queueLength=3,queuePatience=" + SHORT);
    MemorySegment flag = word(driver, 0);
    MemorySegment one = word(driver, 1);
    MemorySegment to = word(driver, 0);
    long stream = stream(driver, 0);
    waitForOne(driver, 0, stream, flag);
    SimTestBase.assertFails(
        CudaStatus.LAUNCH_TIMEOUT,
        "; threads that wait for room in it: 1",
        () -> {
          for (int i = 0; i < 5; i++) {
            copy(driver, to, one, stream);
          }
        });
  }

  /** Calls that wait for nothing themselves. */
  private static List<Runnable> calls(SimulatedDriver driver) {
    return List.of(
        () -> driver.memory().memAlloc(0, 64),
        () -> driver.memory().memHostAlloc(0, 64, 0),
        () -> driver.devices().memGetInfo(0),
        () -> driver.streams().streamQuery(0, 0),
        () -> driver.streams().streamCreateWithPriority(0, 1, 0),
        () -> driver.events().eventCreate(0, 0),
        () -> driver.ordered().memAllocAsync(0, 64, 0),
        () -> driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0)),
        () -> driver.graphs().graphCreate(),
        () -> driver.virtual().memAddressReserve(2L << 20, 0, 0));
  }

  @Test
  void whileAThreadWaitsForRoom_allCallsWait() throws Exception {
    SimulatedDriver driver = open("queues=1,queueLength=2");
    CountDownLatch goOn = new CountDownLatch(1);
    long held = stream(driver, 0);
    long filled = stream(driver, 0);
    driver.streams().launchHostFunc(0, held, () -> Latches.await(goOn));
    AtomicInteger queued = new AtomicInteger();
    List<Integer> ran = new CopyOnWriteArrayList<>();
    Thread filling =
        Thread.ofPlatform()
            .start(() -> {
              for (int i = 0; i < 20; i++) {
                int number = i;
                driver.streams().launchHostFunc(0, filled, () -> ran.add(number));
                queued.incrementAndGet();
              }
            });
    poll(() -> queued.get() == 1 && waitsForRoom(filling));
    List<Integer> others = new CopyOnWriteArrayList<>();
    List<Thread> calling = new ArrayList<>();
    for (Runnable call : calls(driver)) {
      int number = calling.size();
      calling.add(
          Thread.ofPlatform()
              .start(() -> {
                call.run();
                others.add(number);
              }));
    }
    calling.forEach(thread -> poll(() -> waitsForRoom(thread)));
    assertThat(queued.get()).isEqualTo(1);
    assertThat(others).isEmpty();
    goOn.countDown();
    filling.join();
    for (Thread thread : calling) {
      thread.join();
    }
    assertThat(others).hasSize(calling.size());
    driver.streams().streamSynchronize(0, filled);
    assertThat(ran).hasSize(20).isSorted();
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "1, 16", "8, 4", "8, 1024", "32, 1"})
  void hostFunctionsOfManyStreams_allRunInOrder(int queues, int length) throws Exception {
    SimulatedDriver driver = open("queues=%d,queueLength=%d".formatted(queues, length));
    int threads = 4;
    int streams = 25;
    int functions = 20;
    List<List<Integer>> ran = new CopyOnWriteArrayList<>();
    List<Thread> started = new ArrayList<>();
    List<Throwable> failures = new CopyOnWriteArrayList<>();
    for (int t = 0; t < threads; t++) {
      started.add(
          Thread.ofPlatform()
              .uncaughtExceptionHandler((_, e) -> failures.add(e))
              .start(() -> {
                List<Long> mine = new ArrayList<>();
                List<List<Integer>> seen = new ArrayList<>();
                for (int s = 0; s < streams; s++) {
                  mine.add(stream(driver, 0));
                  seen.add(new CopyOnWriteArrayList<>());
                }
                for (int i = 0; i < functions; i++) {
                  for (int s = 0; s < streams; s++) {
                    int number = i;
                    List<Integer> in = seen.get(s);
                    driver.streams().launchHostFunc(0, mine.get(s), () -> in.add(number));
                  }
                }
                mine.forEach(stream -> driver.streams().streamSynchronize(0, stream));
                mine.forEach(stream -> driver.streams().streamDestroy(0, stream));
                ran.addAll(seen);
              }));
    }
    for (Thread thread : started) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    assertThat(ran).hasSize(threads * streams);
    assertThat(ran).allSatisfy(seen -> assertThat(seen).hasSize(functions).isSorted());
  }

  @Test
  void closingTheDriver_endsThreadsThatWaitForRoom() throws Exception {
    SimulatedDriver driver = open("queues=1,queueLength=1");
    MemorySegment flag = word(driver, 0);
    long stream = stream(driver, 0);
    waitForOne(driver, 0, stream, flag);
    List<Thread> blocked = new ArrayList<>();
    List<Throwable> seen = new CopyOnWriteArrayList<>();
    for (int i = 0; i < 4; i++) {
      Thread thread =
          Thread.ofPlatform()
              .uncaughtExceptionHandler((_, e) -> seen.add(e))
              .start(() -> {
                while (true) {
                  driver.streams().launchHostFunc(0, stream, () -> {});
                }
              });
      poll(() -> isParked(thread));
      blocked.add(thread);
    }
    driver.close();
    for (Thread thread : blocked) {
      thread.join();
    }
    assertThat(seen)
        .hasSize(4)
        .allSatisfy(
            e -> assertThat(((CudaException) e).status()).isEqualTo(CudaStatus.DEINITIALIZED));
  }

  /** The threads are inside of calls that wait for room when the streams and the Cuda end. */
  @Test
  void closingStreamsAndCuda_besideThreadsThatFillAQueue_losesNothing() throws Exception {
    SimulatedDriver driver = open("queues=1,queueLength=8");
    CountDownLatch goOn = new CountDownLatch(1);
    List<Throwable> seen = new CopyOnWriteArrayList<>();
    List<Thread> filling = new ArrayList<>();
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
        Buffer buffer = cuda.allocate(64);
        CudaStream held = cuda.device(0).createStream();
        CudaStream filled = cuda.device(0).createStream()) {
      var _ = held.addCallback(() -> Latches.await(goOn));
      for (int i = 0; i < 3; i++) {
        Thread thread =
            Thread.ofPlatform()
                .uncaughtExceptionHandler((_, e) -> seen.add(e))
                .start(() -> {
                  while (true) {
                    buffer.fill((byte) 1, filled);
                  }
                });
        poll(() -> isParked(thread));
        filling.add(thread);
      }
      goOn.countDown();
    }
    for (Thread thread : filling) {
      thread.join();
    }
    assertThat(seen).hasSize(3).hasOnlyElementsOfType(IllegalStateException.class);
    assertThat(driver.report()).isEmpty();
  }

  @Test
  void destroyedStream_leavesItsWorkInTheQueue() {
    SimulatedDriver driver = open("queues=1,pace=lazy");
    MemorySegment to = word(driver, 0);
    long first = stream(driver, 0);
    long second = stream(driver, 0);
    copy(driver, to, word(driver, 7), first);
    driver.streams().streamDestroy(0, first);
    AtomicInteger found = new AtomicInteger();
    driver.streams().launchHostFunc(0, second, () -> found.set(to.get(ValueLayout.JAVA_INT, 0)));
    driver.streams().streamSynchronize(0, second);
    assertThat(found).hasValue(7);
  }

  /** Each wait is behind what it waits for, whatever streams share a queue. */
  @Test
  void waitsForEvents_neverStandStill() {
    for (int seed = 0; seed < 60; seed++) {
      SplittableRandom random = new SplittableRandom(seed);
      SimulatedDriver driver =
          open(
              "devices=2,seed=%d,queues=%d,queueLength=%d"
                  .formatted(seed, 1 + random.nextInt(4), 1 + random.nextInt(20)));
      long[] streams = new long[10];
      long[] events = new long[10];
      for (int i = 0; i < streams.length; i++) {
        streams[i] =
            i < 2 ? 0 : driver.streams().streamCreateWithPriority(i % 2, random.nextInt(2), 0);
        events[i] = driver.events().eventCreate(i % 2, 0);
      }
      AtomicInteger ran = new AtomicInteger();
      int functions = 0;
      for (int step = 0; step < 300; step++) {
        int from = random.nextInt(streams.length);
        int to = random.nextInt(streams.length);
        switch (random.nextInt(4)) {
          case 0 -> driver.events().eventRecord(from % 2, events[from], streams[from]);
          case 1 -> driver.streams().streamWaitEvent(to % 2, streams[to], events[from]);
          case 2 -> driver.streams().streamQuery(to % 2, streams[to]);
          default -> {
            driver.streams().launchHostFunc(to % 2, streams[to], ran::incrementAndGet);
            functions++;
          }
        }
      }
      driver.devices().ctxSynchronize(0);
      driver.devices().ctxSynchronize(1);
      assertThat(ran).as("seed %d", seed).hasValue(functions);
      driver.close();
    }
  }
}
