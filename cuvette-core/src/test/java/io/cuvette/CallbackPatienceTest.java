package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.instrument.ForwardingDevices;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.callback.Callback;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Waits that never end, inside a callback and for one, have a bound. */
@Timeout(60)
class CallbackPatienceTest {
  private static final long PATIENCE_MILLIS = 200;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaDevice device = cuda.device(0);
  private final CountDownLatch never = new CountDownLatch(1);

  CallbackPatienceTest() {
    cuda.engine()
        .session()
        .frees()
        .setPatienceNanos(TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS));
  }

  private CudaStream stream() {
    return device.createStream(StreamOptions.NON_BLOCKING);
  }

  @Test
  void streamThatWaitsForTheCallback_isNotWaitedForInside() {
    CudaStream stream = stream();
    CudaStream other = stream();
    CompletableFuture<Void> waits =
        stream.addCallback(() -> {
          other.waitFor(stream); // which goes on when this has returned
          other.synchronize();
        });
    assertThatThrownBy(() -> await(waits))
        .hasCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("not done after 200 ms")
        .hasMessageContaining("a callback of " + stream);
    other.synchronize();
    cuda.close();
  }

  @Test
  void callbackThatNeverReturns_doesNotKeepTheCudaFromClosing() throws Exception {
    CudaStream stuck = stream();
    CountDownLatch started = new CountDownLatch(1);
    CompletableFuture<Void> stays =
        stuck.addCallback(() -> {
          started.countDown();
          Latches.await(never);
          assertThatThrownBy(() -> cuda.allocate(64)).isInstanceOf(IllegalStateException.class);
        });
    CompletableFuture<Void> behind = stuck.addCallback(() -> {});
    Latches.await(started);
    cuda.close();
    assertThatThrownBy(() -> await(behind))
        .hasCauseInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed before the stream reached");
    assertThat(stays).isNotDone();
    never.countDown();
    await(stays);
  }

  /** Patience is for callbacks: the work before them may take as long as it likes. */
  @Test
  void workThatIsLong_isWaitedForByTheEnd_andTheCallbackBehindItRuns() throws Exception {
    cuda.close();
    CompletableFuture<Integer> asked = new CompletableFuture<>();
    CudaOptions two = CudaOptions.simulated().withDevice("sim:devices=2");
    Cuda slow = Cuda.open(two.withDecorator(driver -> noting(driver, asked)));
    slow.engine().session().frees().setPatienceNanos(TimeUnit.MILLISECONDS.toNanos(20));
    CudaStream stream = slow.device(1).createStream(StreamOptions.NON_BLOCKING);
    slow.driver().streams().launchHostFunc(1, stream.handle(), () -> Latches.await(never));
    AtomicInteger ran = new AtomicInteger();
    CompletableFuture<Void> behind = stream.addCallback(ran::incrementAndGet);
    Thread closing = Thread.ofPlatform().start(slow::close);
    assertThat(Await.until(() -> asked.isDone() || behind.isDone(), TimeUnit.SECONDS.toNanos(40)))
        .isTrue();
    assertThat(behind).as("the watcher looks, and gives nothing up").isNotDone();
    assertThat(closing.isAlive()).isTrue();
    never.countDown();
    await(behind);
    closing.join();
    assertThat(ran).hasValue(1);
  }

  /** The work that its stream does first may take as long as it likes. */
  @Test
  void callbackThatHasNotBegun_isNotOverdue() {
    Callback callback = new Callback(stream().state, null, false);
    long before = System.nanoTime();
    for (long nanos : new long[] {before + PATIENCE_MILLIS, 0, -1, Long.MIN_VALUE}) {
      assertThat(callback.isOlder(nanos)).as("%d", nanos).isFalse(); // the clock may be below 0
    }
    assertThat(callback.begin()).isTrue();
    assertThat(callback.isOlder(before)).isFalse();
    assertThat(callback.isOlder(System.nanoTime() + 1)).isTrue();
    cuda.close();
  }

  /** A pool at its limit cannot be helped there by what the callback itself put off. */
  @Test
  void allocationThatOnlyLaterFreesWouldHelp_isOutOfMemory() throws Exception {
    cuda.engine().session().frees().setPatienceNanos(TimeUnit.SECONDS.toNanos(60));
    CudaStream stream = stream();
    MemoryPool pool = new MemoryPool(cuda);
    pool.setLimit(new MemoryLimit.Bytes(1 << 20));
    pool.allocate(1 << 19, stream).close();
    CompletableFuture<Void> done =
        stream.addCallback(() ->
            assertThatThrownBy(() -> pool.allocate(1 << 20, stream))
                .isInstanceOf(OutOfDeviceMemoryException.class));
    await(done);
    stream.synchronize();
    pool.allocate(1 << 20, stream).close();
    cuda.close();
  }

  /** Only a query finds it, for the driver does not call back then. */
  @Test
  void deviceThatFailsLongAfterACallbackWasAdded_failsIt_andNoneOfAnotherDevice() throws Exception {
    cuda.close();
    CompletableFuture<Integer> asked = new CompletableFuture<>();
    CudaOptions two = CudaOptions.simulated().withDevice("sim:devices=2");
    Cuda watched = Cuda.open(two.withDecorator(driver -> noting(driver, asked)));
    watched
        .engine()
        .session()
        .frees()
        .setPatienceNanos(TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS)); // of a close alone
    CudaDevice second = watched.device(1);
    CudaStream stream = second.createStream(StreamOptions.NON_BLOCKING);
    CudaStream breaking = second.createStream(StreamOptions.NON_BLOCKING);
    CompletableFuture<Void> running = stream.addCallback(() -> Latches.await(never));
    AtomicInteger ran = new AtomicInteger();
    CompletableFuture<Void> behind = stream.addCallback(ran::incrementAndGet);
    CudaStream well = watched.device(0).createStream(StreamOptions.NON_BLOCKING);
    CompletableFuture<Void> runningWell = well.addCallback(() -> Latches.await(never));
    CompletableFuture<Void> behindWell = well.addCallback(() -> {});
    assertThat(asked.get(40, TimeUnit.SECONDS)).as("when all was well").isEqualTo(second.id());
    watched
        .driver()
        .streams()
        .launchHostFunc(
            second.id(),
            breaking.handle(),
            () -> {
              throw new IllegalStateException("breaks the device");
            });
    assertThatThrownBy(() -> await(behind)).hasCauseInstanceOf(CudaException.class);
    assertThat(behindWell).isNotDone();
    never.countDown();
    await(running);
    await(runningWell);
    await(behindWell);
    well.synchronize();
    assertThat(ran).as("it was given up").hasValue(0);
    AtomicBoolean holds = new AtomicBoolean();
    await(well.addCallback(() -> holds.set(watched.engine().session().frees().areHolding())));
    assertThat(holds).as("each that was given up has gone on once").isTrue();
    assertThatThrownBy(watched::close).isInstanceOf(CudaException.class);
    assertThat(ran).hasValue(0);
  }

  private static CudaDriver noting(CudaDriver driver, CompletableFuture<Integer> asked) {
    DeviceCalls devices =
        new ForwardingDevices(driver.devices()) {
          @Override
          public MemoryInfo memGetInfo(int device) {
            MemoryInfo info = super.memGetInfo(device);
            if (device == 1) {
              asked.complete(device);
            }
            return info;
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public DeviceCalls devices() {
        return devices;
      }
    };
  }

  private static void await(CompletableFuture<Void> future) throws Exception {
    future.get(40, TimeUnit.SECONDS);
  }
}
