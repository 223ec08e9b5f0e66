package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.engine.Engine;
import io.cuvette.internal.lifetime.ForeignUsers;
import io.cuvette.internal.session.Device;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a Cuda does with the driver below it as it ends, and that this ends last. */
@Timeout(60)
class CloseOfAllTest {
  private static final int BYTES = 4096;
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(40);

  private static final List<String> WAITS =
      List.of("ctxSynchronize 0", "streamSynchronize 0", "eventSynchronize 0", "memFree 0");

  /** The calls that the driver made, with the first number that they were given. */
  private final List<String> calls = new CopyOnWriteArrayList<>();

  /** The calls that fail next. */
  private final Set<String> failing = ConcurrentHashMap.newKeySet();

  /** The events and the memory that the driver has made and not got back. */
  private final Set<Object> live = ConcurrentHashMap.newKeySet();

  private volatile Runnable atQuestion = () -> {};
  private volatile Runnable atWait = () -> {};
  private final Cuda cuda =
      Cuda.open(CudaOptions.simulated().withDevice("sim:devices=2").withDecorator(this::over));
  private final CudaDevice device = cuda.device(0);

  @AfterEach
  void close() {
    cuda.close();
  }

  private CudaDriver over(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      String name = method.getName();
      if (failing.remove(name)) {
        throw new CudaException(CudaStatus.NOT_PERMITTED, name, "the test's");
      }
      if (name.equals("memPoolGetAttribute")) {
        atQuestion.run();
      }
      if (arguments.length > 0 && WAITS.contains(name + " " + arguments[0])) {
        atWait.run();
      }
      Object result = DriverProxy.forward(driver, method, arguments);
      if (name.equals("eventCreate") || name.equals("memAlloc")) {
        live.add(Objects.requireNonNull(result));
      } else if (name.equals("eventDestroy") || name.equals("memFree")) {
        live.remove(arguments[1]);
      }
      calls.add(arguments.length > 0 ? name + " " + arguments[0] : name);
      return result;
    });
  }

  private DeviceMemoryResource pool(CudaDevice of) {
    return new DeviceMemoryResource(of, DeviceMemoryResourceOptions.DEFAULTS);
  }

  /** No pool comes before, which would destroy them. */
  @Test
  void eventsThatAreKeptForLater_areDestroyed_andTheDriverEndsOnce_andLast() {
    Device core = CudaDevice.coreOf(device);
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
    try (Buffer buffer = MemoryResource.direct().allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      other.waitFor(stream);
      device.synchronize();
    }
    for (int i = 0; i < 3; i++) {
      core.spareEvents.give(cuda.driver().events().eventCreate(0, 2));
    }
    assertThat(core.spareEvents.count()).isGreaterThanOrEqualTo(3);
    cuda.close();
    assertThat(live).isEmpty();
    assertThat(calls).endsWith("close").containsOnlyOnce("close");
    cuda.close();
    assertThat(calls).containsOnlyOnce("close");
  }

  @Test
  void waitForADevice_givesBackWhatIsIdleThere_andNothingOfOthers() {
    for (int id = 0; id < 2; id++) {
      CudaDevice each = cuda.device(id);
      CudaStream stream = each.createStream(StreamOptions.NON_BLOCKING);
      pool(each).allocate(BYTES, stream).close();
    }
    assertThat(calls).doesNotContain("memFreeAsync 0", "memFreeAsync 1");
    cuda.device(1).synchronize();
    assertThat(calls).contains("memFreeAsync 1").doesNotContain("memFreeAsync 0");
    cuda.device(0).synchronize();
    assertThat(calls).containsOnlyOnce("memFreeAsync 0").containsOnlyOnce("memFreeAsync 1");
  }

  private void awaitEnd() {
    boolean isOver = Await.until(() -> calls.contains("close"), PATIENCE_NANOS);
    assertThat(isOver).isTrue();
    assertThat(calls).endsWith("close");
    assertThat(live).isEmpty();
  }

  @Test
  void memoryThatCodeOutsideOfJavaHas_keepsAll_untilItIsGivenBack() {
    Buffer out = MemoryResource.direct().allocate(BYTES, device.nullStream());
    ForeignLoan first = ForeignLoan.of(out);
    ForeignLoan second = ForeignLoan.of(out);
    cuda.close();
    cuda.close();
    assertThat(cuda.isClosed()).isTrue();
    assertThatThrownBy(() -> ForeignLoan.of(out)).isInstanceOf(IllegalStateException.class);
    first.giveBack();
    assertThat(Await.until(first::isOver, PATIENCE_NANOS)).isTrue();
    assertThat(live).containsExactly(out.address());
    assertThat(calls).doesNotContain("close");
    second.giveBack();
    awaitEnd();
  }

  /** They are there as long as memory is out, and yet are of a Cuda that is closed. */
  @Test
  void streamsOfACudaThatIsClosed_areRefused_alsoWhileMemoryIsOut() {
    MemoryPool pool = new MemoryPool(cuda);
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    CudaStream built = device.nullStream();
    Buffer out = MemoryResource.direct().allocate(BYTES, built);
    ForeignLoan loan = ForeignLoan.of(out);
    cuda.close();
    calls.clear();
    for (CudaStream each : List.of(stream, built)) {
      Map<String, ThrowingCallable> all = new LinkedHashMap<>();
      all.put("use", each::use);
      all.put("name", () -> Nvtx.name(each, "name"));
      all.put("onComplete", each::onComplete);
      all.put("addCallback", () -> each.addCallback(() -> {}));
      all.put("record", each::record);
      all.put("waitFor", () -> each.waitFor(each == built ? stream : built));
      all.put("synchronize", each::synchronize);
      all.put("isDone", each::isDone);
      all.put("isCapturing", each::isCapturing);
      all.put("allocate", () -> pool.allocate(BYTES, each));
      all.put("no bytes", () -> pool.allocate(0, each));
      all.put("direct", () -> MemoryResource.direct().allocate(BYTES, each));
      all.put("fill", () -> out.fill((byte) 1, each));
      all.forEach((name, call) ->
          assertThatThrownBy(call)
              .as("%s of %s", name, each)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed"));
    }
    assertThat(calls).isEmpty();
    loan.giveBack();
    awaitEnd();
  }

  /** Whoever gives the memory back is nobody to tell. */
  @Test
  void whatFailsBeforeAnEndThatIsLeft_isTold() {
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    pool(device).allocate(BYTES, stream).close();
    Buffer out = MemoryResource.direct().allocate(BYTES, device.nullStream());
    ForeignLoan loan = ForeignLoan.of(out);
    failing.add("memFreeAsync");
    assertThatThrownBy(cuda::close)
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("the test's");
    assertThat(live).contains(out.address());
    assertThat(calls).doesNotContain("close");
    loan.giveBack();
    awaitEnd();
  }

  /** It is in the driver, which knows the pool no more if that is destroyed. */
  @Test
  void threadThatAsksAboutAPool_isWaitedFor_beforeThatIsDestroyed() throws InterruptedException {
    PoolAttributes attributes = pool(device).attributes();
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    atQuestion =
        () -> {
          atQuestion = () -> {};
          inside.countDown();
          Await.until(() -> goOn.getCount() == 0);
        };
    long[] reserved = {-1};
    Thread asking = Thread.ofPlatform().start(() -> reserved[0] = attributes.reservedMemCurrent());
    inside.await();
    Thread closing = Thread.ofPlatform().start(cuda::close);
    Await.until(() -> cuda.isClosed() || !closing.isAlive());
    closing.join(20);
    assertThat(calls).noneMatch(call -> call.startsWith("memPoolDestroy"));
    goOn.countDown();
    asking.join();
    closing.join();
    assertThat(reserved[0]).isZero();
    assertThat(calls).anyMatch(call -> call.startsWith("memPoolDestroy")).endsWith("close");
  }

  /** A driver that destroys it before that crashes. */
  @Test
  void poolWhoseMemoryIsLeftOpen_isDestroyedAfterAWaitForItsFrees() {
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    DeviceMemoryResource pool = pool(device);
    long handle = pool.handle();
    pool.allocate(BYTES, stream).fill((byte) 1, stream);
    calls.clear();
    cuda.close();
    int freed = calls.lastIndexOf("memFreeAsync 0");
    int destroyed = calls.indexOf("memPoolDestroy " + handle);
    assertThat(freed).isPositive().isLessThan(destroyed);
    assertThat(calls.subList(freed, destroyed)).containsAnyElementsOf(WAITS);
    assertThat(calls).endsWith("close");
  }

  /** Whether something waits for a use that code outside of Java gave back a moment ago. */
  private static boolean waitsForReturns(Cuda cuda, Runnable step) {
    ForeignUsers users = cuda.engine().session().foreignUsers();
    AtomicBoolean isOver = new AtomicBoolean();
    users.enter();
    users.beginReturn();
    Thread returning =
        Thread.ofPlatform()
            .start(() -> {
              boolean _ = Await.until(() -> false, 20_000_000);
              isOver.set(true);
              users.leaveReturned();
            });
    step.run();
    boolean waited = isOver.get();
    Await.until(() -> !returning.isAlive());
    return waited;
  }

  /** For a second, which a thread can miss that gets no processor: in one of some rounds. */
  @Test
  void memoryThatIsBeingGivenBack_isWaitedFor() {
    boolean[] waited = new boolean[4];
    for (int round = 0; round < 5; round++) {
      Engine engine = cuda.engine();
      Cuda own = Cuda.open(CudaOptions.simulated());
      waited[0] |= waitsForReturns(cuda, engine::awaitReturns);
      waited[1] |= waitsForReturns(cuda, () -> engine.awaitFrees(CudaDevice.coreOf(device)));
      waited[2] |= waitsForReturns(cuda, () -> engine.awaitFrees(null));
      waited[3] |= waitsForReturns(own, own::close);
    }
    assertThat(waited).containsOnly(true);
  }

  /** A thread may read there what the work writes. */
  @Test
  void workIsWaitedFor_beforeSegmentsAreClosed_andNothingIsRefusedUntilThen() {
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    PinnedBuffer pinned = cuda.allocatePinned(BYTES);
    MemorySegment segment = pinned.segment();
    pool(device).allocate(BYTES, stream).fill((byte) 1, stream);
    List<Boolean> open = new CopyOnWriteArrayList<>();
    atWait = () -> open.add(segment.scope().isAlive() && !cuda.isClosed());
    cuda.close();
    assertThat(segment.scope().isAlive()).isFalse();
    assertThat(open).startsWith(true).endsWith(false);
  }

  /** A stream that captures cannot be waited for, nor be destroyed without losing its graph. */
  @Test
  void captureThatIsOpen_endsBeforeItsStream() {
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    CudaStream joined = device.createStream(StreamOptions.NON_BLOCKING);
    Buffer buffer = MemoryResource.direct().allocate(BYTES, stream);
    stream.beginCapture(CaptureOptions.DEFAULTS);
    buffer.fill((byte) 1, stream);
    joined.waitFor(stream);
    calls.clear();
    cuda.close();
    List<String> ends = calls.stream().map(call -> call.split(" ", 2)[0]).toList();
    assertThat(ends)
        .containsOnlyOnce("streamEndCapture", "graphDestroy")
        .containsSubsequence("streamEndCapture", "graphDestroy", "streamDestroy", "streamDestroy");
    assertThat(calls).endsWith("close");
    assertThat(live).isEmpty();
  }
}
