package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;

/** What an allocation from any pool of the driver does where the memory is not there. */
@Timeout(60)
class OrderedShortageTest {
  private static final long MOST = 40 * MIB;
  private static final long TOO_MUCH = 1L << 40;
  private static final int RELAXED = 2;

  /** Each way to the driver's pools. */
  private static Map<String, MemoryResource> all(AsyncMemoryPool pool, DeviceMemoryResource own) {
    Map<String, MemoryResource> all = new LinkedHashMap<>();
    all.put("pool", pool);
    all.put("resource", own);
    all.put("current", MemoryResource.async());
    return all;
  }

  private static void isOut(MemoryResource resource, CudaStream stream, String name) {
    assertThatThrownBy(() -> resource.allocate(TOO_MUCH, stream))
        .as(name)
        .isInstanceOf(OutOfDeviceMemoryException.class);
  }

  /** Somebody else's buffers are none of this library. */
  @CudaTest(memory = "64MiB", simulatedOnly = true)
  void memoryThatOthersFreedInTheStream_isWaitedFor(
      Cuda cuda, ScriptedDriver script, @NonBlocking CudaStream stream) {
    CudaDriver driver = cuda.driver();
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
        MemoryPool cached = new MemoryPool(cuda);
        DeviceMemoryResource own = new DeviceMemoryResource(cuda.device(0))) {
      cached.allocate(MIB, stream).close();
      all(pool, own)
          .forEach((name, resource) -> {
            long pools = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, 0));
            long taken = driver.ordered().memAllocFromPoolAsync(0, MOST, pools, stream.handle());
            try (Gate gate = Gate.on(stream)) {
              driver.ordered().memFreeAsync(0, taken, stream.handle());
              for (String wait : new String[] {"streamSynchronize", "eventSynchronize"}) {
                script.answer(
                    wait,
                    call -> {
                      gate.open();
                      return call.proceed();
                    });
              }
              try (Buffer buffer = resource.allocate(MOST, stream)) {
                assertThat(buffer.byteSize()).as(name).isEqualTo(MOST);
              }
            }
            assertThat(cached.freeBytes()).as("what others keep is not needed").isEqualTo(MIB);
            cuda.device(0).synchronize();
            driver.pools().memPoolDestroy(pools);
            pool.freeAllBlocks();
            own.trimTo(0);
          });
    }
  }

  /** The stream goes on when the callback has returned. */
  @CudaTest(simulatedOnly = true)
  void shortageInsideACallback_doesNotWaitForTheCallback(
      Cuda cuda, AsyncMemoryPool pool, DeviceMemoryResource own, @NonBlocking CudaStream stream)
      throws Exception {
    stream
        .addCallback(() -> all(pool, own).forEach((name, each) -> isOut(each, stream, name)))
        .get(40, TimeUnit.SECONDS);
    stream.synchronize();
    assertThat(cuda.leaksFound()).isZero();
  }

  /** A wait would be the end of the capture. */
  @CudaTest(simulatedOnly = true)
  void shortageInACapture_leavesTheCaptureValid(
      AsyncMemoryPool pool, DeviceMemoryResource own, @NonBlocking CudaStream stream) {
    try (CudaGraph graph =
            stream.capture(
                () -> all(pool, own).forEach((name, each) -> isOut(each, stream, name)));
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      stream.synchronize();
    }
  }

  /** Nothing is for it, and no other order is there to be used. */
  @CudaTest(simulatedOnly = true)
  void captureThatIsInvalid_isTheDriversToRefuse(
      Cuda cuda, AsyncMemoryPool pool, DeviceMemoryResource own, @NonBlocking CudaStream stream) {
    CudaDriver driver = cuda.driver();
    driver.captures().streamBeginCapture(0, stream.handle(), RELAXED);
    assertThatThrownBy(() -> driver.streams().streamSynchronize(0, stream.handle()))
        .isInstanceOf(CudaException.class);
    all(pool, own)
        .forEach((name, each) ->
            assertThatThrownBy(() -> each.allocate(64, stream))
                .as(name)
                .isInstanceOfSatisfying(
                    CudaException.class,
                    e -> assertThat(e.status()).isEqualTo(CudaStatus.STREAM_CAPTURE_INVALIDATED)));
    assertThatThrownBy(() -> driver.captures().streamEndCapture(0, stream.handle()))
        .isInstanceOf(CudaException.class);
    all(pool, own).values().forEach(each -> each.allocate(64, stream).close());
    stream.synchronize();
  }

  /** Nothing that comes back could make room for it. */
  @CudaTest(simulatedOnly = true)
  void requestBeyondTheLimit_isRefusedAtOnce_andWaitsForNothing(
      ScriptedDriver script,
      AsyncMemoryPool pool,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    pool.setLimit(MemoryLimit.ofBytes(MIB));
    try (Gate _ = Gate.on(other)) {
      Buffer buffer = pool.allocate(MIB, stream);
      buffer.recordUse(other);
      buffer.close();
      script.note("eventSynchronize", "streamSynchronize", "streamWaitEvent");
      for (long bytes : new long[] {MIB + 1, 2 * MIB, TOO_MUCH}) {
        assertThatThrownBy(() -> pool.allocate(bytes, stream))
            .isInstanceOf(OutOfDeviceMemoryException.class);
      }
      assertThat(script.notes()).isEmpty();
      assertThat(other.isDone()).isFalse();
    }
    pool.allocate(MIB, stream).close();
    stream.synchronize();
  }

  @CudaTest(simulatedOnly = true)
  void allocationAtTheLimit_waitsForWhatAnotherThreadGivesBack(
      ScriptedDriver script, AsyncMemoryPool pool, @NonBlocking CudaStream stream)
      throws Exception {
    pool.setLimit(MemoryLimit.ofBytes(MIB));
    pool.allocate(MIB, stream).close();
    FutureTask<Long> allocated =
        new FutureTask<>(() -> {
          try (Buffer buffer = pool.allocate(MIB / 2, stream)) {
            return buffer.byteSize();
          }
        });
    try (Hold hold = script.hold("memFreeAsync")) {
      Thread givingBack = Thread.ofPlatform().start(() -> pool.freeAllBlocks());
      hold.awaitBegun();
      Thread allocating = Thread.ofPlatform().start(allocated);
      while (allocating.isAlive() && allocating.getState() != Thread.State.TIMED_WAITING) {
        Thread.onSpinWait();
      }
      hold.release();
      givingBack.join();
    }
    assertThat(allocated.get()).isEqualTo(MIB / 2);
    stream.synchronize();
  }
}
