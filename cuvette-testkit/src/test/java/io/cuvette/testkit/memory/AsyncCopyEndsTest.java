package io.cuvette.testkit.memory;

import static io.cuvette.testkit.memory.AsyncCopiesTest.closesSoon;
import static io.cuvette.testkit.memory.AsyncCopiesTest.get;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.SweepReport;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** How copies with a completion end that do not come to their own: cancelled, failed, closed. */
@Timeout(170)
class AsyncCopyEndsTest {
  private static final int MIB = 1 << 20;
  private static final int BYTES = 9 * MIB + 12_345;
  private static final Pattern WRITTEN = Pattern.compile("bytes 0 to (\\d+) were written");

  private static Throwable failure(CompletableFuture<Void> done) {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    try {
      done.whenComplete((_, e) -> failure.set(e)).get(60, TimeUnit.SECONDS);
    } catch (Exception e) {
      assertThat(failure.get()).as("%s", e).isNotNull();
    }
    return failure.get();
  }

  private static int written(Throwable failure) {
    Matcher found = WRITTEN.matcher(failure.getMessage());
    assertThat(found.find()).as(failure.getMessage()).isTrue();
    return Integer.parseInt(found.group(1));
  }

  @CudaTest
  void cancelledBeforeItBegins_writesNothing(Cuda cuda, CudaStream stream) throws Exception {
    Arena arena = Arena.ofShared();
    MemorySegment host = arena.allocate(MIB);
    host.fill((byte) 9);
    try (Buffer buffer = cuda.allocate(MIB, stream)) {
      buffer.fill((byte) 1);
      CompletableFuture<Void> done;
      try (Gate _ = Gate.on(stream)) {
        done = buffer.copyFromAsync(host, stream);
        assertThat(done.cancel(true)).isTrue();
        assertThat(done.cancel(false)).as("again").isTrue();
        assertThat(done.isDone()).as("both ends are in use").isFalse();
      }
      assertThat(failure(done))
          .isInstanceOf(CancellationException.class)
          .hasMessage("cancelled: copy of 1048576 bytes: no byte was written");
      assertThat(done.isCancelled()).isTrue();
      assertThat(done.cancel(true)).as("it is").isTrue();
      get(buffer.copyToAsync(host, stream));
      assertThat(host.mismatch(MemorySegment.ofArray(filled()))).isEqualTo(-1);
    }
    closesSoon(arena);
  }

  private static byte[] filled() {
    byte[] ones = new byte[MIB];
    Arrays.fill(ones, (byte) 1);
    return ones;
  }

  @CudaTest
  void whatADeviceHas_cannotBeCancelled(Cuda cuda, CudaStream stream) throws Exception {
    try (PinnedBuffer pinned = cuda.allocatePinned(MIB);
        Buffer buffer = cuda.allocate(MIB, stream)) {
      CompletableFuture<Void> done;
      try (Gate _ = Gate.on(stream)) {
        done = buffer.copyFromAsync(pinned, stream);
        assertThat(done.cancel(true)).isFalse();
      }
      get(done);
      assertThat(done.isCancelled()).isFalse();
      assertThat(done.cancel(true)).as("it is done").isFalse();
    }
  }

  /** At the first call for a chunk, the second one and so on: what is written is a prefix. */
  @CudaTest(seeds = 3)
  void cancelledOrFailedOnTheWay_saysWhatWasWritten(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) throws Exception {
    byte[] pattern = Bytes.random(1, BYTES);
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    try (Buffer buffer = cuda.allocate(BYTES, stream)) {
      for (boolean cancels : new boolean[] {true, false}) {
        for (int at = 1; at <= 5; at++) {
          for (boolean in : new boolean[] {true, false}) {
            buffer.fill((byte) 0);
            host.copyFrom(MemorySegment.ofArray(pattern));
            if (!in) {
              buffer.copyFrom(host);
              host.fill((byte) 0);
            }
            CompletableFuture<CompletableFuture<Void>> running = new CompletableFuture<>();
            endAt(at, cancels, driver, running);
            CompletableFuture<Void> done =
                in ? buffer.copyFromAsync(host, stream) : buffer.copyToAsync(host, stream);
            running.complete(done);
            Throwable failure = failure(done);
            driver.unscript("memcpyAsync");
            String what = "%s at %d, in: %s, %s".formatted(cancels, at, in, failure);
            if (in) {
              host.fill((byte) 0);
              buffer.copyTo(host);
            }
            if (failure == null) {
              assertThat(cancels && at == 5).as(what).isTrue();
              assertThat(done.isCancelled()).isFalse();
              assertThat(host.mismatch(MemorySegment.ofArray(pattern))).isEqualTo(-1);
              continue;
            }
            assertThat(failure instanceof CancellationException).as(what).isEqualTo(cancels);
            boolean none = failure.getMessage().contains("no byte was written");
            int written = none ? 0 : written(failure);
            long differs = host.mismatch(MemorySegment.ofArray(pattern));
            assertThat(differs == -1 ? BYTES : differs).as(what).isGreaterThanOrEqualTo(written);
            if (in) {
              assertThat(written).as(what).isEqualTo((cancels ? at : at - 1) * 2 * MIB);
              assertThat(differs).as(what).isEqualTo(written);
            }
          }
        }
      }
      stream.synchronize();
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    }
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("cuvette-copying-")) {
        assertThat(thread.join(Duration.ofSeconds(10))).as("%s ends", thread).isTrue();
      }
    }
  }

  /** Cancels the copy, or fails, at a call for a chunk. */
  private static void endAt(
      int at,
      boolean cancels,
      ScriptedDriver driver,
      CompletableFuture<CompletableFuture<Void>> running) {
    AtomicInteger calls = new AtomicInteger();
    driver.answer(
        "memcpyAsync",
        call -> {
          if (calls.incrementAndGet() == at) {
            if (!cancels) {
              throw new CudaException(
                  CudaStatus.INVALID_VALUE, "memcpyAsync", "scripted by the test");
            }
            running.join().cancel(true);
          }
          return call.proceed();
        });
  }

  @CudaTest
  void fileThatShrinks_isAFailureThatSaysWhatWasWritten(
      Cuda cuda, CudaStream stream, @TempDir Path folder) throws Exception {
    Path path = folder.resolve("file");
    try (Arena arena = Arena.ofShared();
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      MemorySegment file = AsyncCopiesTest.mapped(path, BYTES, arena);
      CompletableFuture<Void> done;
      try (Gate _ = Gate.on(stream)) {
        done = buffer.copyFromAsync(file, stream);
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
          channel.truncate(5L * MIB);
        }
      }
      assertThatThrownBy(() -> get(done))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("has shrunk")
          .hasMessageContaining("copy of %d bytes to the device".formatted(BYTES))
          .hasMessageContaining("written");
    }
  }

  @Tag("simulated")
  @Test
  void whateverCallFails_nothingIsLostOrLeft() throws Exception {
    SweepReport report =
        FaultSweeps.onSimulator("seed=1")
            .recoveringFrom(CudaStatus.INVALID_VALUE, "deviceGetAttribute", "pointerGetAttribute")
            .recoveringFrom(CudaStatus.NOT_SUPPORTED, "streamWaitValue32")
            .run(FaultSweeps.usingTidily(AsyncCopyEndsTest::use))
            .orThrow();
    assertThat(report.faults()).isGreaterThan(50);
  }

  private static void use(Cuda cuda) throws Exception {
    MemorySegment pageable = Arena.ofAuto().allocate(3 * MIB);
    try (CudaStream stream = cuda.currentDevice().createStream();
        PinnedBuffer pinned = cuda.allocatePinned(1000);
        Buffer buffer = cuda.allocate(3 * MIB, stream)) {
      get(buffer.copyFromAsync(pinned.segment(), stream));
      get(buffer.copyFromAsync(pageable, stream));
      get(buffer.copyToAsync(pageable.asSlice(0, 1000), stream));
    }
  }

  @Tag("simulated")
  @Test
  void closedMeanwhile_everyCompletionComes() throws Exception {
    for (int seed = 1; seed <= 20; seed++) {
      List<CompletableFuture<Void>> all = new ArrayList<>();
      Arena arena = Arena.ofShared();
      MemorySegment host = arena.allocate(3 * MIB);
      try (Cuda cuda = open(seed)) {
        for (int i = 0; i < 10; i++) {
          try (CudaStream stream = cuda.currentDevice().createStream();
              Buffer buffer = cuda.allocate(3 * MIB, stream)) {
            all.add(buffer.copyFromAsync(host, stream));
            all.add(buffer.copyToAsync(host, stream));
          }
        }
      }
      for (CompletableFuture<Void> each : all) {
        Throwable failure = failure(each);
        if (failure != null) {
          assertThat(failure)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed")
              .hasMessageContaining("written");
        }
      }
      closesSoon(arena);
    }
  }

  private static Cuda open(int seed) {
    return Cuda.open(
        CudaOptions.DEFAULTS.withDriver(
            SimulatedDriver.open(SimulatedOptions.parse("seed=" + seed))));
  }

  /** The driver's queues are short, and nobody may find them full. */
  @CudaTest
  void copiesThatStreamsWaitFor_areBounded(Cuda cuda, CudaStream stream) throws Exception {
    int most = 64;
    int bytes = 10_000;
    try (Arena arena = Arena.ofShared();
        Buffer buffer = cuda.allocate(bytes, stream);
        Gate gate = Gate.on(stream)) {
      MemorySegment host = arena.allocate(bytes).fill((byte) 6);
      List<CompletableFuture<Void>> all = new ArrayList<>();
      for (int i = 0; i < most; i++) {
        all.add(buffer.copyFromAsync(host, stream));
      }
      CompletableFuture<CompletableFuture<Void>> next =
          CompletableFuture.supplyAsync(() -> buffer.copyFromAsync(host, stream));
      assertThatThrownBy(() -> next.get(200, TimeUnit.MILLISECONDS))
          .isInstanceOf(TimeoutException.class);
      gate.open();
      all.add(next.get());
      for (CompletableFuture<Void> each : all) {
        get(each);
      }
      assertThat(Bytes.areAll(buffer, 6)).isTrue();
    }
  }

  @CudaTest
  void thousandCopiesAtOnce_areBounded(Cuda other) throws Exception {
    int copies = 1000;
    int most = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);
    CudaOptions options =
        CudaOptions.DEFAULTS
            .withDriver(ScriptedDriver.keptOpen(other.driver()))
            .withTransferBytes(3 * MIB);
    try (Arena arena = Arena.ofShared();
        Cuda cuda = Cuda.open(options);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      MemorySegment host = arena.allocate(copies * 10_000L);
      List<CudaStream> streams = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        streams.add(cuda.currentDevice().createStream());
      }
      List<Future<?>> all = new ArrayList<>();
      AtomicInteger seen = new AtomicInteger();
      for (int i = 0; i < copies; i++) {
        int index = i;
        all.add(
            threads.submit(() -> {
              MemorySegment mine = host.asSlice(index * 10_000L, 10_000);
              byte[] pattern = Bytes.random(index, 10_000);
              mine.copyFrom(MemorySegment.ofArray(pattern));
              CudaStream stream = streams.get(index % streams.size());
              CompletableFuture<Void> last;
              try (Buffer buffer = cuda.allocate(10_000, stream)) {
                var _ = buffer.copyFromAsync(mine, stream);
                last = buffer.copyToAsync(mine, stream);
              }
              get(last);
              assertThat(mine.mismatch(MemorySegment.ofArray(pattern))).isEqualTo(-1);
              return null;
            }));
      }
      while (!all.stream().allMatch(Future::isDone)) {
        seen.accumulateAndGet(count("cuvette-copying-"), Math::max);
        assertThat(count("cuvette-arena")).isLessThan(20);
        Thread.yield();
      }
      for (Future<?> each : all) {
        each.get();
      }
      assertThat(seen.get()).isBetween(1, most);
      streams.forEach(CudaStream::close);
      assertThat(cuda.defaultPinnedMemoryPool().stats().peakUsedBytes()).isBetween(1L, 3L * MIB);
    }
  }

  private static int count(String threads) {
    return (int)
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith(threads))
            .count();
  }

  /** Copies, cancellations and closes of all ends by many threads. */
  @CudaTest(seeds = 20)
  void anyEndAtAnyMoment_hangsAndLosesNothing(Cuda cuda) throws Exception {
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> all = new ArrayList<>();
      for (int thread = 0; thread < 8; thread++) {
        int seed = thread;
        all.add(
            threads.submit(() -> {
              Random random = new Random(seed);
              for (int i = 0; i < 6; i++) {
                round(cuda, random);
              }
              return null;
            }));
      }
      for (Future<?> each : all) {
        each.get(120, TimeUnit.SECONDS);
      }
    }
    cuda.currentDevice().synchronize();
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    assertThat(count("cuvette-arena")).isZero();
  }

  private static void round(Cuda cuda, Random random) {
    Arena arena = Arena.ofShared();
    int bytes = random.nextBoolean() ? 5000 : 3 * MIB;
    MemorySegment pageable = arena.allocate(bytes);
    List<CompletableFuture<Void>> copies = new ArrayList<>();
    try (CudaStream stream = cuda.currentDevice().createStream();
        PinnedBuffer pinned = cuda.allocatePinned(bytes);
        Buffer buffer = random.nextBoolean() ? cuda.allocate(bytes, stream) : pinned) {
      pinned.fill((byte) 1);
      buffer.fill((byte) 2);
      for (int i = 0; i < 4; i++) {
        MemorySegment host = buffer == pinned || random.nextBoolean() ? pageable : pinned.segment();
        CompletableFuture<Void> copy =
            random.nextBoolean()
                ? buffer.copyFromAsync(host, stream)
                : buffer.copyToAsync(host, stream);
        copies.add(copy);
        if (random.nextInt(3) == 0) {
          boolean _ = copy.cancel(true);
        }
      }
    }
    for (CompletableFuture<Void> copy : copies) {
      Throwable failure = failure(copy);
      if (failure != null) {
        assertThat(failure)
            .isInstanceOf(CancellationException.class)
            .hasMessageContaining("written");
      }
    }
    closesSoon(arena);
  }
}
