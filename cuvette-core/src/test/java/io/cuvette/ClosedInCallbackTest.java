package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.TracingDriver;
import io.cuvette.internal.base.Await;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.Arena;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Memory that a callback closes is freed once that has returned: it must not wait for the driver.
 */
@Timeout(60)
class ClosedInCallbackTest {
  private static final int BYTES = 4 << 20;
  private static final Pattern WAITING =
      Pattern.compile("(memFree|memFreeHost|memHostUnregister|memUnmap|.*Synchronize)\\(");
  private static final long PATIENCE_NANOS = 40_000_000_000L;

  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final AtomicReference<Thread> calling = new AtomicReference<>();
  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDriver(driver)
              .withDecorator(below -> TracingDriver.of(below, call -> note(call.call()))));
  private final CudaStream stream = cuda.device(0).createStream();
  private final CudaStream other = cuda.device(0).createStream();

  @AfterEach
  void close() {
    cuda.close();
  }

  private void note(String call) {
    if (Thread.currentThread() == calling.get() && WAITING.matcher(call).lookingAt()) {
      calls.add(call);
    }
  }

  private Buffer ofClosed(MemoryPool pool) {
    try (pool) {
      return pool.allocate(BYTES, stream);
    }
  }

  private Buffer ofClosed(ElasticMemoryPool pool) {
    try (pool) {
      return pool.allocate(BYTES, stream);
    }
  }

  private Buffer ofClosed(PinnedMemoryPool pool) {
    try (pool) {
      return pool.allocate(BYTES);
    }
  }

  private Buffer growable() {
    GrowableBuffer buffer = cuda.device(0).growable(BYTES);
    buffer.grow(BYTES);
    return buffer;
  }

  private Map<String, Supplier<Buffer>> kinds() {
    Map<String, Supplier<Buffer>> all = new LinkedHashMap<>();
    all.put("plain", () -> MemoryResource.direct().allocate(BYTES, stream));
    all.put("page-locked", () -> cuda.directPinned().allocate(BYTES));
    all.put("registered", () -> cuda.registerHost(Arena.ofAuto().allocate(BYTES)));
    all.put("growable", this::growable);
    all.put("of a closed pool", () -> ofClosed(new MemoryPool(cuda)));
    all.put("of a closed elastic pool", () -> ofClosed(new ElasticMemoryPool(cuda)));
    all.put("of a closed page-locked pool", () -> ofClosed(new PinnedMemoryPool(cuda)));
    return all;
  }

  @Test
  void memoryOfEachKind_isFreedAfterTheCallback_withoutAWaitThere() {
    var _ = stream.addCallback(() -> {}); // what callbacks need is there from now on
    stream.synchronize();
    long free = cuda.device(0).memoryInfo().freeBytes();
    long host = driver.liveHostBytes();
    int live = driver.liveAllocations();
    for (boolean isUsed : new boolean[] {false, true}) {
      kinds()
          .forEach((kind, make) -> {
            Buffer buffer = make.get();
            if (isUsed) {
              buffer.fill((byte) 1, stream);
              other.waitFor(stream);
              buffer.fill((byte) 2, other);
              other.synchronize();
            }
            var _ =
                stream.addCallback(() -> {
                  calling.set(Thread.currentThread());
                  buffer.close();
                  calling.set(null);
                });
            stream.synchronize();
            boolean isFreed = Await.until(() -> isFreed(free, host, live), PATIENCE_NANOS);
            assertThat(calls).as(kind).isEmpty();
            assertThat(isFreed).as(kind).isTrue();
            assertThat(buffer.isClosed()).isTrue();
          });
    }
  }

  private boolean isFreed(long free, long host, int live) {
    cuda.device(0).synchronize();
    return cuda.device(0).memoryInfo().freeBytes() >= free
        && driver.liveHostBytes() <= host
        && driver.liveAllocations() <= live;
  }
}
