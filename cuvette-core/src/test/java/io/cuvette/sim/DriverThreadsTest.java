package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.Latches;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The threads of a driver, and those of a program that wait in its calls. */
@Timeout(120)
class DriverThreadsTest {
  private static final long MIB = 1L << 20;
  private static final long PATIENCE_MILLIS = 30_000;
  private static final int READ_ONLY = 8;

  private final Set<Thread> before = threads();
  private final Queue<Throwable> thrown = new ConcurrentLinkedQueue<>();
  private final Thread.UncaughtExceptionHandler handler =
      Thread.getDefaultUncaughtExceptionHandler();

  private final SimulatedDriver driver = open("devices=2,queuePatience=600000");

  DriverThreadsTest() {
    Thread.setDefaultUncaughtExceptionHandler((_, e) -> thrown.add(e));
  }

  @AfterEach
  void close() throws InterruptedException {
    driver.close();
    for (Thread thread : started()) {
      thread.join(PATIENCE_MILLIS);
      assertThat(thread.isAlive()).as(thread.getName()).isFalse();
    }
    Thread.setDefaultUncaughtExceptionHandler(handler);
    assertThat(thrown).isEmpty();
  }

  private static SimulatedDriver open(String settings) {
    return SimulatedDriver.open(SimulatedOptions.parse(settings).withMemoryBytes(64 * MIB));
  }

  private static Set<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("cuvette-sim-"))
        .collect(Collectors.toSet());
  }

  private List<Thread> started() {
    return threads().stream().filter(thread -> !before.contains(thread)).toList();
  }

  private static long stream(SimulatedDriver on) {
    return on.streams().streamCreateWithPriority(0, 1, 0);
  }

  /** Holds a stream until the word is 1. */
  private static MemorySegment hold(SimulatedDriver on, long stream) {
    MemorySegment word = on.memory().memHostAlloc(0, 4, 0).fill((byte) 0);
    on.streams().streamWaitValue32(0, stream, word.address(), 1, 1);
    return word;
  }

  /** Who queues something makes a thread here, which would live on with what it had inherited. */
  @Test
  void threads_inheritNothing() {
    InheritableThreadLocal<String> local = new InheritableThreadLocal<>();
    List<String> seen = new CopyOnWriteArrayList<>();
    Runnable look = () -> seen.add(Objects.requireNonNullElse(local.get(), "nothing"));
    SimulatedKernel kernel = SimulatedKernel.of("looks", _ -> look.run());
    local.set("the caller's");
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      driver.streams().launchHostFunc(0, 0, look);
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      long found = driver.kernels().libraryGetKernel(library, "looks");
      LaunchShape one = new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
      driver
          .kernels()
          .launchKernel(0, 0, found, one, new LaunchParameters(MemorySegment.NULL, List.of()));
      driver.streams().streamSynchronize(0, 0);
    } finally {
      local.remove();
    }
    assertThat(seen).containsExactly("nothing", "nothing");
  }

  /** However many functions and streams there are. */
  @Test
  void driver_hasOneThreadForEachPurpose() {
    CountDownLatch all = new CountDownLatch(200);
    List<MemorySegment> words = new ArrayList<>(); // a thread that has nothing to do may end
    for (int i = 0; i < 20; i++) {
      long stream = stream(driver);
      words.add(hold(driver, stream));
      for (int k = 0; k < 10; k++) {
        driver.streams().launchHostFunc(0, stream, all::countDown);
        Map<String, Long> names =
            started().stream()
                .collect(Collectors.groupingBy(Thread::getName, Collectors.counting()));
        assertThat(names.values()).allMatch(count -> count == 1);
        assertThat(names).hasSizeLessThanOrEqualTo(3);
      }
    }
    words.forEach(word -> word.set(ValueLayout.JAVA_INT, 0, 1));
    Latches.await(all);
  }

  /** Whatever was queued: work, functions, waits that nobody ends, in queues of either kind. */
  @Test
  void closedDriver_hasNoThreads() throws InterruptedException {
    for (String settings : List.of("devices=1", "queues=2,queuePatience=60000")) {
      SimulatedDriver on = open(settings);
      MemorySegment _ = hold(on, stream(on));
      long memory = on.memory().memAlloc(0, 64);
      for (int i = 0; i < 4; i++) {
        long stream = stream(on);
        MemorySegment _ = hold(on, stream);
        on.transfers().memsetD8Async(0, memory, (byte) 1, 64, stream);
        on.streams().launchHostFunc(0, stream, () -> {});
      }
      List<Thread> threads = started();
      assertThat(threads).isNotEmpty();
      on.close();
      for (Thread thread : threads) {
        thread.join(PATIENCE_MILLIS);
        assertThat(thread.isAlive()).as(thread.getName()).isFalse();
      }
      assertThat(started()).isEmpty();
    }
  }

  /** It ends like every other, and those of another device are run. */
  @Test
  void functionDuringWhichItsDeviceFails_endsAsUsual() {
    CountDownLatch runs = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream(driver),
            () -> {
              runs.countDown();
              Latches.await(goOn);
            });
    Latches.await(runs);
    MemorySegment constant = Arena.ofAuto().allocate(64, 64);
    driver.memory().memHostRegister(0, constant, READ_ONLY);
    long other = stream(driver);
    driver.transfers().memsetD8Async(0, constant.address(), (byte) 1, 64, other);
    SimTestBase.assertFails(
        CudaStatus.ILLEGAL_ADDRESS, "", () -> driver.streams().streamSynchronize(0, other));
    goOn.countDown();
    for (int i = 0; i < 3; i++) {
      CountDownLatch ran = new CountDownLatch(1);
      driver.streams().launchHostFunc(1, 0, ran::countDown);
      Latches.await(ran);
      driver.devices().ctxSynchronize(1);
    }
  }

  /** Each call that waits: for a word, for a function, for a record, for memory in use. */
  private Map<String, Consumer<Long>> waits(long event, long memory) {
    return Map.of(
        "cuStreamSynchronize",
        stream -> driver.streams().streamSynchronize(0, stream),
        "cuEventSynchronize",
        _ -> driver.events().eventSynchronize(0, event),
        "cuCtxSynchronize",
        _ -> driver.devices().ctxSynchronize(0),
        "cuMemFree",
        _ -> driver.memory().memFree(0, memory));
  }

  private static Thread waiting(Runnable call) throws InterruptedException {
    Thread thread = Thread.ofPlatform().start(call);
    while (thread.isAlive() // what does not wait has ended
        && thread.getState() != Thread.State.WAITING
        && thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.sleep(1);
    }
    return thread;
  }

  /** Who is interrupted waits on, and is interrupted afterwards; whatever it waits for. */
  @Test
  void interruptedThread_waitsToTheEnd_andStaysInterrupted() throws InterruptedException {
    for (boolean isFunction : new boolean[] {false, true}) {
      for (String call : waits(0, 0).keySet()) {
        long stream = stream(driver);
        long event = driver.events().eventCreate(0, 0);
        long memory = driver.memory().memAlloc(0, 64);
        CountDownLatch function = new CountDownLatch(isFunction ? 1 : 0);
        MemorySegment word = hold(driver, stream);
        if (isFunction) {
          word.set(ValueLayout.JAVA_INT, 0, 1);
          driver.streams().launchHostFunc(0, stream, () -> Latches.await(function));
        }
        driver.transfers().memsetD8Async(0, memory, (byte) 1, 64, stream);
        driver.events().eventRecord(0, event, stream);
        AtomicBoolean isInterrupted = new AtomicBoolean();
        Runnable waits =
            () -> {
              Objects.requireNonNull(waits(event, memory).get(call)).accept(stream);
              isInterrupted.set(Thread.currentThread().isInterrupted());
            };
        Thread thread = waiting(waits);
        for (int i = 0; i < 3; i++) {
          thread.interrupt();
          thread.join(5);
        }
        assertThat(thread.isAlive()).as(call).isTrue();
        assertThat(driver.streams().streamQuery(0, stream)).isFalse();
        word.set(ValueLayout.JAVA_INT, 0, 1);
        function.countDown();
        thread.join(PATIENCE_MILLIS);
        assertThat(thread.isAlive()).as(call).isFalse();
        assertThat(isInterrupted).as(call).isTrue();
        assertThat(driver.events().eventQuery(0, event)).isTrue();
      }
    }
  }

  /** Also if what it waits for is a function that never ends. */
  @Test
  void closeOfTheDriver_endsEachWait() throws InterruptedException {
    for (boolean isFunction : new boolean[] {false, true}) {
      SimulatedDriver on = open("devices=1");
      long stream = stream(on);
      CountDownLatch never = new CountDownLatch(1);
      if (isFunction) {
        on.streams().launchHostFunc(0, stream, () -> Latches.await(never));
      } else {
        MemorySegment _ = hold(on, stream);
      }
      AtomicReference<Throwable> seen = new AtomicReference<>();
      Thread thread =
          waiting(() -> {
            try {
              on.streams().streamSynchronize(0, stream);
            } catch (CudaException e) {
              seen.set(e);
            }
          });
      thread.join(30); // a function is waited for with patience first
      on.close();
      thread.join(PATIENCE_MILLIS / 2);
      assertThat(thread.isAlive()).isFalse();
      assertThat(seen.get()).isInstanceOf(CudaException.class).hasMessageContaining("closed");
      assertThatExceptionOfType(CudaException.class).isThrownBy(() -> stream(on));
      never.countDown();
    }
  }
}
