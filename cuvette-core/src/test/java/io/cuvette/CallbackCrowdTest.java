package io.cuvette;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.callback.Callbacks;
import io.cuvette.internal.session.DeferredFrees;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Several callbacks of one stream, what waits for them, and what they leave to do. */
@Timeout(60)
class CallbackCrowdTest {
  private static final int MANY = 40;

  /** More than the watcher needs until it looks for a gap. */
  private static final int LOOKS = 20;

  /** More than are queued in a stream at once, and the one that runs. */
  private static final int MOST_QUEUED = 20;

  /** So long that no thread of a test which gets no processor is taken for one that hangs. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(40);

  private static final long MOMENT_NANOS = TimeUnit.MILLISECONDS.toNanos(30);

  private final AtomicInteger launches = new AtomicInteger();

  /** Whether the driver keeps what it is to call, and does not call it. */
  private final AtomicBoolean keeps = new AtomicBoolean();

  private final List<Runnable> kept = new CopyOnWriteArrayList<>();

  /** The call that fails as long as it is there. */
  private volatile String failing = "";

  private volatile Runnable atFree = () -> {};
  private final CountDownLatch goOn = new CountDownLatch(1);
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::over));
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);

  CallbackCrowdTest() {
    cuda.engine().session().frees().setPatienceNanos(PATIENCE_NANOS);
  }

  @AfterEach
  void close() {
    failing = "";
    goOn.countDown();
    cuda.close();
  }

  private CudaDriver over(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      String name = method.getName();
      if (name.equals(failing)) {
        throw new CudaException(CudaStatus.NOT_SUPPORTED, name, "the test's");
      }
      if (name.startsWith("memFree")) {
        Runnable now = atFree;
        atFree = () -> {};
        now.run();
      }
      if (name.equals("launchHostFunc")) {
        launches.incrementAndGet();
        if (keeps.get()) {
          kept.add((Runnable) arguments[2]);
          return null;
        }
      }
      return DriverProxy.forward(driver, method, arguments);
    });
  }

  private static void await(CompletableFuture<?> future) throws Exception {
    future.get(40, TimeUnit.SECONDS);
  }

  private static boolean isAtRest(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING || !thread.isAlive();
  }

  /** A driver whose queue is full lets no other call in. */
  @Test
  void threadThatAddsMany_waitsBeforeItCallsTheDriver() throws Exception {
    List<CompletableFuture<Void>> all = new CopyOnWriteArrayList<>();
    CountDownLatch begun = new CountDownLatch(1);
    all.add(
        stream.addCallback(() -> {
          begun.countDown();
          Latches.await(goOn);
        }));
    Latches.await(begun);
    Thread adding =
        Thread.ofPlatform()
            .start(() -> {
              for (int i = 0; i < MANY; i++) {
                all.add(stream.addCallback(() -> {}));
              }
            });
    int few = MOST_QUEUED / 2;
    Await.until(() -> launches.get() > few && isAtRest(adding));
    assertThat(adding.isAlive()).isTrue();
    assertThat(launches.get()).isBetween(few, MOST_QUEUED);
    CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
    await(other.addCallback(() -> {}));
    goOn.countDown();
    adding.join();
    for (CompletableFuture<Void> each : all) {
      await(each);
    }
    assertThat(all).hasSize(MANY + 1);
  }

  /** It would wait for itself. */
  @Test
  void callbackThatAddsMany_doesNotWait() throws Exception {
    List<CompletableFuture<Void>> all = new CopyOnWriteArrayList<>();
    long[] nanos = new long[1];
    await(
        stream.addCallback(() -> {
          long start = System.nanoTime();
          for (int i = 0; i < MANY; i++) {
            all.add(stream.addCallback(() -> {}));
          }
          nanos[0] = System.nanoTime() - start;
        }));
    for (CompletableFuture<Void> each : all) {
      await(each);
    }
    assertThat(all).hasSize(MANY);
    assertThat(nanos[0]).isLessThan(PATIENCE_NANOS / 2);
  }

  /** Whatever a device can wait at, and whoever may begin to capture the stream. */
  @ParameterizedTest
  @CsvSource({"false, false", "false, true", "true, false", "true, true"})
  void streamGoesOn_whenItsCallbackHasReturned(boolean cannotWait, boolean isExposed)
      throws Exception {
    failing = cannotWait ? "streamWaitValue32" : "";
    List<String> order = new CopyOnWriteArrayList<>();
    long handle = isExposed ? stream.handle() : stream.state.handle;
    PinnedBuffer written = cuda.allocatePinned(1);
    MemorySegment bytes = written.segment();
    for (byte round = 1; round <= 2; round++) {
      byte mark = round;
      order.clear();
      CompletableFuture<Void> first =
          stream.addCallback(() -> {
            boolean isPassed = Await.until(() -> bytes.get(JAVA_BYTE, 0) == mark, MOMENT_NANOS);
            order.add(isPassed ? "passed" : "first");
          });
      cuda.driver().transfers().memsetD8Async(0, written.address(), mark, 1, handle);
      CompletableFuture<Void> second =
          stream.addCallback(() -> order.add("second after " + bytes.get(JAVA_BYTE, 0)));
      CompletableFuture<Void> done = stream.onComplete();
      await(first);
      await(second);
      await(done);
      stream.synchronize();
      assertThat(order).containsExactly("first", "second after " + mark);
    }
  }

  /** The stream came to it behind another one, and was given up before that had returned. */
  @Test
  void callbackThatWasGivenUp_isNotRunInItsTurn() throws Exception {
    keeps.set(true);
    AtomicInteger ran = new AtomicInteger();
    CompletableFuture<Void> first = stream.addCallback(() -> Latches.await(goOn));
    CompletableFuture<Void> behind = stream.addCallback(ran::incrementAndGet);
    assertThat(kept).hasSize(2);
    kept.forEach(Runnable::run);
    failing = "memGetInfo";
    assertThatThrownBy(() -> await(behind)).hasCauseInstanceOf(CudaException.class);
    failing = "";
    goOn.countDown();
    await(first);
    stream.synchronize();
    device.synchronize();
    assertThat(ran).hasValue(0);
  }

  /** It is free as far as the program knows: the wait for the device was there for it. */
  @Test
  void waitForADevice_isOneForWhatCallbacksPutOff() throws Exception {
    assertThat(Tries.oneSucceeds(this::isOverAfterWhatACallbackPutOff)).isTrue();
  }

  /** Whether another thread's wait for the device ends after the free, which has a second. */
  private boolean isOverAfterWhatACallbackPutOff() throws Exception {
    Buffer buffer = MemoryResource.direct().allocate(512, stream);
    AtomicBoolean isFreed = new AtomicBoolean();
    AtomicBoolean seen = new AtomicBoolean();
    List<Thread> waiting = new CopyOnWriteArrayList<>();
    Runnable asFreed =
        () -> {
          Thread thread =
              Thread.ofPlatform()
                  .start(() -> {
                    device.synchronize();
                    seen.set(isFreed.get());
                  });
          waiting.add(thread);
          Await.until(() -> isAtRest(thread));
          isFreed.set(true);
        };
    await(
        stream.addCallback(() -> {
          buffer.close();
          atFree = asFreed;
        }));
    Await.until(isFreed::get);
    waiting.getFirst().join();
    return seen.get();
  }

  /** What it asks of the driver would be what the free waits for. */
  @Test
  void callbackOfAnotherThread_doesNotHoldAStream_whileMemoryIsFreed() throws Exception {
    await(stream.addCallback(() -> {}));
    MemoryPool pool = new MemoryPool(cuda);
    pool.allocate(512, device.nullStream()).close();
    device.synchronize();
    Map<String, Runnable> frees = new LinkedHashMap<>();
    frees.put("plain", MemoryResource.direct().allocate(512, stream)::close);
    frees.put("managed", cuda.allocateManaged(512)::close);
    frees.put("pinned", cuda.directPinned().allocate(512)::close);
    frees.put("a pool's", pool::freeAllBlocks);
    frees.put("the wait for a device", device::synchronize);
    for (Map.Entry<String, Runnable> each : frees.entrySet()) {
      List<Boolean> waits = new ArrayList<>();
      List<Thread> threads = new ArrayList<>();
      atFree =
          () -> {
            Thread adding = Thread.ofPlatform().start(() -> stream.addCallback(() -> {}));
            Await.until(() -> isAtRest(adding));
            waits.add(adding.isAlive());
            threads.add(adding);
          };
      each.getValue().run();
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(waits).as(each.getKey()).containsExactly(true);
      stream.synchronize();
    }
  }

  /** Closes memory, which finds no gap to be freed in. */
  private static void leaveOne(Cuda of) {
    DeferredFrees frees = of.engine().session().frees();
    Buffer buffer = MemoryResource.direct().allocate(512, of.device(0).nullStream());
    frees.beginHold();
    buffer.close();
    assertThat(frees.isAnyLeft()).isTrue();
  }

  /** Else that is up to the watcher, seconds later. */
  @Test
  void callbackThatReturns_leavesNothingToFree_ifThereIsAGap() throws Exception {
    assertThat(Tries.oneSucceeds(this::isFreedSoonAfterACallback)).isTrue();
  }

  private boolean isFreedSoonAfterACallback() throws Exception {
    try (Cuda fresh = Cuda.open(CudaOptions.simulated())) { // whose watcher has not begun
      DeferredFrees frees = fresh.engine().session().frees();
      leaveOne(fresh);
      frees.endHold();
      await(fresh.device(0).createStream(StreamOptions.NON_BLOCKING).addCallback(() -> {}));
      return Await.until(() -> !frees.isAnyLeft(), TimeUnit.SECONDS.toNanos(2));
    }
  }

  @Test
  void whatIsLeftToFree_isTheEndsOfTheCuda() throws Exception {
    assertThat(Tries.oneSucceeds(this::isFreedByTheEnd)).isTrue();
  }

  /** False as well if a thread of callbacks is faster. */
  private boolean isFreedByTheEnd() throws Exception {
    Cuda fresh = Cuda.open(CudaOptions.simulated().withDecorator(this::over));
    DeferredFrees frees = fresh.engine().session().frees();
    leaveOne(fresh);
    await(fresh.device(0).createStream(StreamOptions.NON_BLOCKING).addCallback(() -> {}));
    AtomicInteger freed = new AtomicInteger();
    atFree = freed::incrementAndGet;
    frees.endHold();
    boolean isLeft = frees.isAnyLeft();
    fresh.close();
    return isLeft && freed.get() == 1 && !frees.isAnyLeft();
  }

  /** Where no callback returns any more that would. */
  @Test
  void whatIsLeftToFree_isFreedByTheWatcher_inAWhile() throws Exception {
    await(stream.addCallback(() -> {}));
    leaveOne(cuda);
    DeferredFrees frees = cuda.engine().session().frees();
    frees.endHold();
    Callbacks callbacks = cuda.engine().callbacks();
    Method look = Callbacks.class.getDeclaredMethod("look");
    look.setAccessible(true);
    for (int i = 0; i < LOOKS; i++) {
      Object _ = look.invoke(callbacks);
    }
    assertThat(Await.until(() -> !frees.isAnyLeft(), PATIENCE_NANOS)).isTrue();
  }
}
