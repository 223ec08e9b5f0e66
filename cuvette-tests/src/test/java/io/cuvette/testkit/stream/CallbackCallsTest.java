package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.GrowableBuffer;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What a callback does with CUDA never waits for the stream that the callback holds. */
class CallbackCallsTest {
  private static final long PATIENCE_SECONDS = 30;

  /** The null stream takes turns with such a stream, and would wait for it. */
  @CudaTest
  void operationsWithoutAStream_work(Cuda cuda, CudaStream stream) throws Exception {
    try (Buffer buffer = cuda.allocate(64, stream)) {
      buffer.fill((byte) 6, stream);
      inCallback(
          stream,
          () -> {
            assertThat(Bytes.of(buffer)).containsOnly(6);
            try (Buffer more = cuda.allocate(64);
                PinnedBuffer pinned = cuda.allocatePinned(64);
                Arena arena = Arena.ofConfined()) {
              more.fill((byte) 7);
              more.copyTo(pinned.segment());
              assertThat(pinned.segment().get(ValueLayout.JAVA_BYTE, 63)).isEqualTo((byte) 7);
              MemorySegment pageable = arena.allocate(64);
              more.copyTo(pageable);
              assertThat(pageable.get(ValueLayout.JAVA_BYTE, 63)).isEqualTo((byte) 7);
              buffer.copyFrom(pageable);
            }
          });
      inCallback(cuda.device(0).nullStream(), () -> assertThat(Bytes.of(buffer)).containsOnly(7));
    }
  }

  @CudaTest
  void workOnOtherStreams_canBeWaitedFor(Cuda cuda, CudaStream stream, CudaStream other)
      throws Exception {
    CudaDevice device = cuda.device(0);
    try (Buffer buffer = cuda.allocate(64, other);
        CudaEvent event = device.createEvent(EventOptions.ORDER_ONLY)) {
      inCallback(
          stream,
          () -> {
            buffer.fill((byte) 3, other);
            event.record(other);
            event.synchronize();
            other.synchronize();
            try (Scope _ = other.use()) {
              assertThat(Bytes.of(buffer)).containsOnly(3);
            }
            try (CudaStream another = device.createStream()) {
              another.waitFor(other);
              another.synchronize();
            }
          });
    }
  }

  @CudaTest
  void memoryWithoutAPool_isFreedAfterwards(Cuda cuda, CudaStream stream) throws Exception {
    CudaDevice device = cuda.device(0);
    Buffer direct = MemoryResource.direct().allocate(64, stream);
    PinnedBuffer pinned = cuda.directPinned().allocate(64);
    MemoryPool pool = new MemoryPool(cuda);
    pool.allocate(64, stream).close();
    direct.fill((byte) 1, stream);
    inCallback(
        stream,
        () -> {
          direct.close();
          pinned.close();
          MemoryResource.direct().allocate(64, device.nullStream()).close();
          cuda.allocateManaged(64).close();
          pool.freeAllBlocks();
          pool.close();
          cuda.defaultMemoryPool().freeAllBlocks();
          cuda.defaultPinnedMemoryPool().freeAllBlocks();
        });
    assertThat(direct.isClosed()).isTrue();
    assertThat(pinned.isClosed()).isTrue();
  }

  @CudaTest
  void whatACapturingStreamDoesNotTake_isNamed(CudaStream stream) {
    CudaGraph graph =
        stream.capture(() -> {
          assertThatThrownBy(stream::onComplete)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageStartingWith("onComplete: %s is capturing a graph", stream);
          assertThatThrownBy(() -> stream.addCallback(() -> {}))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageStartingWith("addCallback: %s is capturing a graph", stream);
        });
    graph.close();
  }

  /** Code of the user frees it, which waits for no stream as far as the library knows. */
  @CudaTest(simulatedOnly = true)
  void adoptedMemory_isFreedAtOnce_whileCallbacksGoOn(Cuda cuda, CudaStream stream)
      throws Exception {
    CompletableFuture<Void> begun = new CompletableFuture<>();
    CompletableFuture<Void> over = new CompletableFuture<>();
    AtomicInteger freed = new AtomicInteger();
    try (Buffer direct = MemoryResource.direct().allocate(64, stream)) {
      CompletableFuture<Void> callback =
          stream.addCallback(() -> {
            boolean _ = begun.complete(null);
            over.join();
          });
      begun.get(60, TimeUnit.SECONDS);
      try {
        cuda.device(0).adopt(direct.address(), 64, freed::incrementAndGet).close();
        assertThat(freed).hasValue(1);
      } finally {
        boolean _ = over.complete(null);
      }
      callback.get(60, TimeUnit.SECONDS);
    }
    assertThat(freed).hasValue(1);
  }

  @CudaTest(simulatedOnly = true)
  void plainMemoryClosedInACallback_isFreed_onceTheDeviceWasWaitedFor(
      Cuda cuda, ScriptedDriver driver, CudaStream stream) {
    driver.note("memFree", call -> Long.toString(call.number("address")));
    for (int i = 0; i < 50; i++) {
      Buffer direct = MemoryResource.direct().allocate(64, stream);
      CompletableFuture<Void> _ = stream.addCallback(direct::close);
      cuda.device(0).synchronize();
      assertThat(driver.takeNotes()).contains(Long.toString(direct.address()));
    }
  }

  @CudaTest
  void moreWorkAndCallbacksOnItsOwnStream_comeAfterIt(Cuda cuda, CudaStream stream)
      throws Exception {
    List<Integer> seen = new ArrayList<>();
    try (Buffer buffer = cuda.allocate(64, stream);
        CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      List<CompletableFuture<Void>> inner = new ArrayList<>();
      inCallback(
          stream,
          () -> {
            buffer.fill((byte) 5, stream);
            inner.add(stream.addCallback(() -> seen.add(2)));
            event.record(stream);
            assertThat(event.isDone()).isFalse();
            assertThat(stream.isDone()).isFalse();
            seen.add(1);
          });
      inner.getFirst().get(PATIENCE_SECONDS, TimeUnit.SECONDS);
      event.synchronize();
      assertThat(seen).containsExactly(1, 2);
      assertThat(Bytes.of(buffer)).containsOnly(5);
    }
  }

  @CudaTest
  void waitsForTheCallbackItself_areRefused(Cuda cuda, CudaStream stream) throws Exception {
    CudaDevice device = cuda.device(0);
    try (Buffer buffer = cuda.allocate(64, stream);
        CudaEvent event = device.createEvent(EventOptions.ORDER_ONLY)) {
      inCallback(
          stream,
          () -> {
            event.record(stream);
            refused(stream::synchronize);
            refused(event::synchronize);
            refused(device::synchronize);
            refused(device.nullStream()::synchronize);
            refused(device.legacyStream()::synchronize);
            refused(cuda::close);
            try (Scope _ = stream.use()) {
              refused(() -> buffer.fill((byte) 1));
              refused(() -> Bytes.of(buffer));
              refused(() -> buffer.copyFrom(MemorySegment.ofArray(new byte[64])));
            }
            try (Scope _ = device.nullStream().use()) {
              refused(() -> buffer.fill((byte) 1));
            }
          });
    }
  }

  /** What the stream did before it came to the callback is over. */
  @CudaTest
  void eventBeforeTheCallback_isWaitedForInside(Cuda cuda, CudaStream stream) throws Exception {
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      event.record(stream);
      inCallback(stream, event::synchronize);
    }
  }

  /** Null streams take turns with the streams of their own device alone. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void nullStreamOfAnotherDevice_isNotBehindTheCallback(Cuda cuda, CudaStream stream)
      throws Exception {
    CudaDevice other = cuda.device(1 - stream.device().id());
    try (Buffer buffer = cuda.allocate(64, other.nullStream())) {
      inCallback(
          stream,
          () -> {
            try (Scope _ = other.legacyStream().use()) {
              buffer.fill((byte) 1);
            }
          });
      assertThat(Bytes.of(buffer)).containsOnly(1);
    }
  }

  /** Streams take the eight queues of a GPU in turn: one of the two may have the null stream's. */
  @CudaTest
  void nonBlockingStream_doesNotKeepTheNullStreamUp(
      Cuda cuda, @NonBlocking CudaStream one, @NonBlocking CudaStream other) throws Exception {
    try (Buffer buffer = cuda.allocate(64)) {
      try {
        fillInTheNullStream(buffer, one);
      } catch (ExecutionException e) {
        assertThat(e).cause().hasMessageContaining("not done after");
        fillInTheNullStream(buffer, other);
      }
    }
  }

  private static void fillInTheNullStream(Buffer buffer, CudaStream stream) throws Exception {
    CudaDevice device = stream.device();
    inCallback(
        stream,
        () -> {
          device.nullStream().synchronize();
          try (Scope _ = device.nullStream().use()) {
            buffer.fill((byte) 1);
          }
          refused(stream::synchronize);
        });
  }

  @CudaTest
  void callbackOfTheNullStream_doesNotWaitForBlockingStreamsBehindIt(Cuda cuda, CudaStream blocking)
      throws Exception {
    CudaDevice device = cuda.device(0);
    try (Buffer buffer = cuda.allocate(64, blocking)) {
      inCallback(
          device.nullStream(),
          () -> {
            buffer.fill((byte) 1, blocking);
            refused(blocking::synchronize);
            refused(device.legacyStream()::synchronize);
          });
    }
  }

  /** What is current belongs to one callback, whichever thread it ran on. */
  @CudaTest(devices = 2)
  void current_isTheStreamsDevice_andNothingIsLeftForTheNextCallback(
      Cuda cuda, @OnDevice(1) CudaStream stream) throws Exception {
    CudaDevice second = cuda.device(1);
    for (int i = 0; i < 3; i++) {
      inCallback(
          stream,
          () -> {
            assertThat(cuda.currentDevice()).isEqualTo(second);
            assertThat(cuda.currentStream()).isNotEqualTo(second.nullStream());
            assertThat(cuda.currentStream().isNonBlocking()).isTrue();
            cuda.setCurrentStream(second.nullStream());
            cuda.setCurrentDevice(cuda.device(0));
          });
    }
  }

  @CudaTest
  void itsOwnStream_canBeClosed_alsoWhileAnotherThreadWaitsForIt(Cuda cuda) throws Exception {
    CudaStream stream = cuda.device(0).createStream();
    CompletableFuture<Void> done = stream.addCallback(stream::close);
    try {
      stream.synchronize();
    } catch (IllegalStateException e) {
      assertThat(e).hasMessageContaining("closed"); // the callback was faster
    }
    done.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    assertThat(stream.isClosed()).isTrue();
  }

  @CudaTest(memory = "64MiB")
  void allocationWithoutMemory_isOutOfMemory_notADeadlock(Cuda cuda, CudaStream stream)
      throws Exception {
    try (Buffer most = cuda.allocate(60 << 20, stream)) {
      most.fill((byte) 1, stream);
      cuda.allocate(2 << 20, stream).close();
      inCallback(
          stream,
          () ->
              assertThatThrownBy(() -> cuda.allocate(32 << 20))
                  .isInstanceOf(io.cuvette.OutOfDeviceMemoryException.class));
    }
  }

  @CudaTest(memory = "64MiB")
  void growthWithoutMemory_isOutOfMemory_notADeadlock(Cuda cuda, CudaStream stream)
      throws Exception {
    try (GrowableBuffer grown = cuda.device(0).growable(256 << 20)) {
      MemoryResource.async().allocate(32 << 20, stream).close();
      Buffer pooled = cuda.allocate(16 << 20, stream);
      inCallback(
          stream,
          () -> {
            pooled.close();
            assertThatThrownBy(() -> grown.grow(128 << 20))
                .isInstanceOf(io.cuvette.OutOfDeviceMemoryException.class);
            assertThat(grown.byteSize()).isZero();
          });
    }
  }

  private static void refused(Runnable call) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("callback");
  }

  /** Runs in a callback, whose failures are this thread's. */
  private static void inCallback(CudaStream stream, Runnable body) throws Exception {
    CompletableFuture<Void> done = stream.addCallback(body);
    try {
      done.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw e;
    }
    stream.synchronize();
  }

  /** The word that it was tried with is there for another. */
  @Test
  void deviceWhoseStreamsCannotWait_takesNoMemoryForCallbacks() throws Exception {
    Set<Long> words = ConcurrentHashMap.newKeySet();
    AtomicInteger tried = new AtomicInteger();
    ScriptedDriver script = new ScriptedDriver();
    script.answer(
        "streamWaitValue32",
        call -> {
          tried.incrementAndGet();
          words.add(call.number("address"));
          throw new CudaException(CudaStatus.NOT_SUPPORTED, call.name(), "scripted by the test");
        });
    CudaOptions two = CudaOptions.simulated().withDevice("sim:devices=2");
    try (Cuda cuda = Cuda.open(two.withDecorator(script::over))) {
      for (int device = 0; device < 2; device++) {
        try (CudaStream stream = cuda.device(device).createStream(StreamOptions.NON_BLOCKING)) {
          inCallback(stream, () -> {});
        }
      }
    }
    assertThat(tried).hasValue(2);
    assertThat(words).hasSize(1);
  }
}
