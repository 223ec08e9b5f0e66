package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Copies with a completion, until which both ends stay. */
@Timeout(120)
class AsyncCopiesTest {
  private static final int MIB = 1 << 20;
  private static final int BYTES = MIB;

  /** Each byte is the one before it, which is compared in words. */
  private static boolean areAll(MemorySegment memory, int value) {
    return memory.get(ValueLayout.JAVA_BYTE, 0) == value
        && memory.asSlice(1).mismatch(memory.asSlice(0, memory.byteSize() - 1)) == -1;
  }

  /** Waits; fails as the copy did. */
  private static void get(CompletableFuture<Void> done) throws Exception {
    try {
      done.get(60, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException failure) {
        throw failure;
      }
      throw e;
    }
  }

  private static MemorySegment mapped(Path path, long bytes, Arena arena) throws IOException {
    try (FileChannel file =
        FileChannel.open(
            path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    }
  }

  /** Who looks at another copy may be ahead of the completion. */
  private static void closesSoon(Arena arena) {
    while (arena.scope().isAlive()) {
      try {
        arena.close();
      } catch (IllegalStateException e) {
        Thread.onSpinWait();
      }
    }
  }

  @CudaTest
  void everyKindOfMemory_goesInAndOut(Cuda cuda, CudaStream stream, @TempDir Path folder)
      throws Exception {
    for (int bytes : new int[] {1, 65_537, 5 * MIB + 77}) {
      byte[] pattern = Bytes.random(bytes, bytes);
      try (Arena shared = Arena.ofShared();
          PinnedBuffer pinned = cuda.allocatePinned(bytes);
          PinnedBuffer registered = cuda.registerHost(shared.allocate(bytes, 4096))) {
        for (Kind kind : Kind.values()) {
          try (Buffer buffer = kind.allocate(cuda, bytes);
              Buffer other = cuda.allocate(bytes, stream)) {
            for (MemorySegment host :
                List.of(
                    shared.allocate(bytes),
                    Arena.ofAuto().allocate(bytes),
                    MemorySegment.ofBuffer(ByteBuffer.allocateDirect(bytes)),
                    mapped(folder.resolve("file" + kind + bytes), bytes, shared),
                    pinned.segment(),
                    registered.segment())) {
              host.copyFrom(MemorySegment.ofArray(pattern));
              get(buffer.copyFromAsync(host, stream));
              get(buffer.copyToAsync(other, stream));
              buffer.fill((byte) 0, stream);
              get(buffer.copyFromAsync(other, stream));
              host.fill((byte) 0);
              get(buffer.copyToAsync(host, stream));
              assertThat(host.mismatch(MemorySegment.ofArray(pattern)))
                  .as("%s", host)
                  .isEqualTo(-1);
            }
          }
        }
      }
    }
  }

  @CudaTest
  void noBytes_areACopyToo(Cuda cuda, CudaStream stream) throws Exception {
    try (Buffer buffer = cuda.allocate(8, stream);
        Buffer empty = cuda.allocate(0, stream);
        Arena confined = Arena.ofConfined()) {
      get(buffer.copyFromAsync(empty, stream));
      get(buffer.copyToAsync(confined.allocate(8).asSlice(8), stream));
      get(empty.copyFromAsync(MemorySegment.NULL, stream));
    }
  }

  /** Nobody waits between the steps, and the future is no step. */
  @CudaTest(seeds = 20)
  void copies_areInOrderOfTheStream(Cuda cuda, CudaStream stream) throws Exception {
    MemorySegment source = Arena.ofAuto().allocate(3 * MIB);
    MemorySegment first = Arena.ofAuto().allocate(3 * MIB);
    MemorySegment second = Arena.ofAuto().allocate(3 * MIB);
    source.fill((byte) 7);
    try (Buffer buffer = cuda.allocate(3 * MIB, stream);
        PinnedBuffer pinned = cuda.allocatePinned(3 * MIB)) {
      buffer.fill((byte) 1, stream);
      CompletableFuture<Void> one = buffer.copyToAsync(first, stream);
      buffer.fill((byte) 2, stream);
      CompletableFuture<Void> two = buffer.copyToAsync(second, stream);
      CompletableFuture<Void> three = buffer.copyFromAsync(source, stream);
      buffer.copyTo(pinned, stream);
      buffer.fill((byte) 3, stream);
      stream.synchronize();
      for (CompletableFuture<Void> each : List.of(one, two, three)) {
        get(each);
      }
      assertThat(areAll(pinned.segment(), 7)).isTrue();
      assertThat(Bytes.areAll(buffer, 3)).isTrue();
      assertThat(areAll(first, 1)).isTrue();
      assertThat(areAll(second, 2)).isTrue();
    }
  }

  @CudaTest
  void completion_comesOnce_onAThreadOfTheLibrary(Cuda cuda, CudaStream stream) throws Exception {
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      AtomicInteger times = new AtomicInteger();
      CompletableFuture<String> thread;
      CompletableFuture<Void> done;
      try (Gate _ = Gate.on(stream)) {
        done = buffer.copyFromAsync(pinned.segment(), stream);
        assertThat(done.isDone()).isFalse();
        assertThat(done.cancel(true)).as("the device has it").isFalse();
        thread =
            done.thenApply(_ -> {
              times.incrementAndGet();
              stream.synchronize(); // what depends on it may wait for the stream
              return Thread.currentThread().getName();
            });
      }
      assertThat(thread.get(60, TimeUnit.SECONDS)).startsWith("cuvette-callbacks-");
      assertThat(done.complete(null)).isFalse();
      assertThat(times).hasValue(1);
    }
  }

  @CudaTest
  void bothEnds_mayBeClosedAtOnce(Cuda cuda, CudaStream stream) throws Exception {
    try (Buffer target = cuda.allocate(BYTES, stream)) {
      target.fill((byte) 0);
      CompletableFuture<Void> done;
      long address;
      try (Gate _ = Gate.on(stream)) {
        try (PinnedBuffer source = cuda.allocatePinned(BYTES);
            PinnedBuffer staged = cuda.allocatePinned(BYTES);
            Buffer between = cuda.allocate(BYTES, stream)) {
          address = staged.address();
          source.segment().fill((byte) 6);
          var _ = between.copyFromAsync(source.segment(), stream);
          var _ = between.copyToAsync(staged, stream);
          var _ = staged.copyToAsync(between, stream);
          done = between.copyToAsync(target, stream);
        }
        try (PinnedBuffer next = cuda.allocatePinned(BYTES)) {
          assertThat(next.address()).as("not handed out yet").isNotEqualTo(address);
        }
        assertThat(done).isNotDone();
      }
      get(done);
      assertThat(Bytes.areAll(target, 6)).isTrue();
    }
  }

  /** By another library, so that nobody but the arena knows of its end. */
  @CudaTest
  void arena_ofMemoryThatOthersPageLocked_cannotBeClosedBefore(Cuda cuda, CudaStream stream)
      throws Exception {
    Arena arena = Arena.ofShared();
    MemorySegment memory = arena.allocate(BYTES, 4096);
    memory.fill((byte) 8);
    cuda.driver().memory().memHostRegister(0, memory, 3);
    try (Buffer target = cuda.allocate(BYTES, stream)) {
      try (Gate _ = Gate.on(stream)) {
        CompletableFuture<Void> done = target.copyFromAsync(memory, stream);
        assertThat(done.completeExceptionally(new IllegalStateException("of the program")))
            .isTrue();
        assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
        var _ = target.copyFromAsync(memory, stream);
      }
      get(target.copyFromAsync(memory, stream));
      assertThat(Bytes.areAll(target, 8)).isTrue();
    } finally {
      cuda.driver().memory().memHostUnregister(0, memory.address());
    }
    closesSoon(arena);
  }

  /** The device does nothing more with it. */
  @Test
  void arena_ofACopyThatFails_canBeClosed() {
    Arena arena = Arena.ofShared();
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    CudaStream stream = cuda.device(0).createStream();
    Buffer target = cuda.allocate(BYTES, stream);
    MemorySegment memory = arena.allocate(BYTES, 4096);
    cuda.driver().memory().memHostRegister(0, memory, 3);
    CompletableFuture<Void> done;
    try (Gate _ = Gate.on(stream)) {
      Runnable breaking =
          () -> {
            throw new IllegalStateException("breaks the device");
          };
      cuda.driver().streams().launchHostFunc(0, stream.handle(), breaking);
      done = target.copyFromAsync(memory, stream);
    }
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
    assertThatThrownBy(() -> get(done)) // as the device failed, or with the Cuda
        .isInstanceOfAny(CudaException.class, IllegalStateException.class);
    arena.close();
  }

  @CudaTest
  void memoryThatIsNotPageLocked_isNeededNoMoreAfterTheCall(Cuda cuda, CudaStream stream)
      throws Exception {
    for (int bytes : new int[] {100, 3 * MIB}) {
      try (Buffer target = cuda.allocate(bytes, stream)) {
        CompletableFuture<Void> done;
        try (Arena confined = Arena.ofConfined()) {
          MemorySegment memory = confined.allocate(bytes);
          memory.fill((byte) 9);
          done = target.copyFromAsync(memory, stream);
          memory.fill((byte) 0);
        }
        get(done);
        assertThat(Bytes.areAll(target, 9)).isTrue();
      }
    }
  }

  /** The JVM does not tell which. */
  @CudaTest(simulatedOnly = true, sanitized = false)
  void arenaThatIsClosedDuringACall_isNamed(Cuda cuda, ScriptedDriver script, CudaStream stream) {
    Arena arena = Arena.ofShared();
    MemorySegment source = arena.allocate(100);
    script.answer(
        "memcpyHtoDAsync",
        call -> {
          arena.close();
          return call.proceed();
        });
    try (Buffer target = cuda.allocate(100, stream)) {
      assertThatThrownBy(() -> target.copyFrom(source, stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("memory of the host: the arena of")
          .hasMessageContaining("was closed during the copy; copy of 100 bytes: some may be");
    }
  }

  @CudaTest
  void whatCouldMoveOrVanish_isRefused(Cuda cuda, CudaStream stream) {
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(4096, stream)) {
      MemorySegment heap = MemorySegment.ofArray(new byte[8]);
      assertThatThrownBy(() -> buffer.copyFromAsync(heap, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("copy it into a PinnedBuffer first");
      assertThatThrownBy(() -> buffer.copyToAsync(heap, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("copy it into a PinnedBuffer first");
      MemorySegment pinnedByOthers = arena.allocate(4096, 4096);
      cuda.driver().memory().memHostRegister(0, pinnedByOthers, 3);
      try {
        assertThatThrownBy(() -> buffer.copyFromAsync(pinnedByOthers, stream))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("confined to a thread");
      } finally {
        cuda.driver().memory().memHostUnregister(0, pinnedByOthers.address());
      }
    }
  }

  @CudaTest
  void whatIsWrong_isRefused_andNothingIsQueued(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    MemorySegment host = Arena.ofAuto().allocate(100);
    Buffer closed = cuda.allocate(100, stream);
    closed.close();
    try (PinnedBuffer pinned = cuda.allocatePinned(100);
        Buffer buffer = cuda.allocate(50, stream)) {
      for (MemorySegment each : List.of(host, pinned.segment())) {
        assertThatThrownBy(() -> buffer.copyFromAsync(each, stream))
            .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> buffer.copyToAsync(each, stream))
            .isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> buffer.copyToAsync(each.asReadOnly().asSlice(0, 9), stream))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("read-only");
        assertThatThrownBy(() -> closed.copyFromAsync(each, stream))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("is closed");
        assertThatThrownBy(() -> stream.capture(() -> refuse(buffer, each.asSlice(0, 9), stream)))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("expected: the copy with the stream that gives none");
      }
      assertThatThrownBy(() -> buffer.copyFromAsync(pinned, stream))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> buffer.copyFromAsync(buffer, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("50 bytes are in both ranges");
      CudaStream ended = cuda.currentDevice().createStream();
      ended.close();
      assertThatThrownBy(() -> buffer.copyFromAsync(host.asSlice(0, 9), ended))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is closed");
      assertThat(driver.count("memcpyAsync") + driver.count("memcpyHtoDAsync")).isZero();
      assertThat(driver.count("launchHostFunc")).isZero();
    }
  }

  private static void refuse(Buffer buffer, MemorySegment host, CudaStream stream) {
    var _ = buffer.copyFromAsync(host, stream);
  }

  @CudaTest
  void copyWithoutACompletion_saysThatItIsQueued(
      ScriptedDriver driver, Cuda cuda, CudaStream stream) {
    try (PinnedBuffer pinned = cuda.allocatePinned(100);
        Buffer buffer = cuda.allocate(100, stream)) {
      pinned.segment().fill((byte) 2);
      driver.fail("launchHostFunc", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> buffer.copyFromAsync(pinned, stream))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("the copy is queued, and nothing tells when it is done");
      assertThat(Bytes.areAll(buffer, 2)).isTrue();
    }
  }

  /** Nothing would hold the arena any more. */
  @ParameterizedTest
  @ValueSource(strings = {"launchHostFunc", "memcpyHtoDAsync"})
  void memoryThatOthersPageLocked_isReadBeforeACallThatFailsReturns(String call) {
    ScriptedDriver driver = new ScriptedDriver();
    CudaOptions lazy = CudaOptions.simulated().withDevice("sim:pace=lazy");
    try (Cuda cuda = Cuda.open(lazy.withDecorator(driver::over));
        CudaStream stream = cuda.device(0).createStream();
        Arena arena = Arena.ofShared();
        Buffer target = cuda.allocate(BYTES, stream)) {
      MemorySegment memory = arena.allocate(BYTES, 4096);
      cuda.driver().memory().memHostRegister(0, memory, 3);
      driver.answer(
          call,
          made -> {
            if (call.equals("memcpyHtoDAsync")) {
              Object _ = made.proceed(); // it can be earlier work's error that is reported here
            }
            throw new CudaException(CudaStatus.INVALID_VALUE, call, "on purpose");
          });
      assertThatThrownBy(() -> target.copyFromAsync(memory, stream))
          .isInstanceOf(CudaException.class);
      assertThat(stream.isDone()).isTrue();
      cuda.driver().memory().memHostUnregister(0, memory.address());
    }
  }

  @CudaTest
  void callbacks_mayBeginCopiesInOtherStreams(Cuda cuda, CudaStream stream) throws Exception {
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        PinnedBuffer pinned = cuda.allocatePinned(BYTES);
        CudaStream other = cuda.currentDevice().createStream()) {
      pinned.segment().fill((byte) 5);
      CompletableFuture<CompletableFuture<Void>> later = new CompletableFuture<>();
      get(stream.addCallback(() -> later.complete(buffer.copyFromAsync(pinned.segment(), other))));
      get(later.get(60, TimeUnit.SECONDS));
      assertThat(Bytes.areAll(buffer, 5)).isTrue();
    }
  }

  /** Copies and closes of all ends by many threads. */
  @CudaTest(seeds = 20)
  void anyEndAtAnyMoment_hangsAndLosesNothing(Cuda cuda) throws Exception {
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> all = new ArrayList<>();
      for (int thread = 0; thread < 8; thread++) {
        Random random = new Random(thread);
        all.add(
            threads.submit(() -> {
              for (int i = 0; i < 6; i++) {
                round(cuda, random);
              }
              return null;
            }));
      }
      for (Future<?> each : all) {
        each.get(100, TimeUnit.SECONDS);
      }
    }
    cuda.currentDevice().synchronize();
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  private static void round(Cuda cuda, Random random) throws Exception {
    int bytes = random.nextBoolean() ? 5000 : 3 * MIB;
    List<CompletableFuture<Void>> copies = new ArrayList<>();
    try (Arena arena = Arena.ofShared();
        CudaStream stream = cuda.currentDevice().createStream();
        PinnedBuffer pinned = cuda.allocatePinned(bytes);
        Buffer buffer = cuda.allocate(bytes, stream)) {
      MemorySegment pageable = arena.allocate(bytes);
      pinned.fill((byte) 1);
      buffer.fill((byte) 2, stream);
      for (int i = 0; i < 4; i++) {
        MemorySegment host = random.nextBoolean() ? pageable : pinned.segment();
        copies.add(
            random.nextBoolean()
                ? buffer.copyFromAsync(host, stream)
                : buffer.copyToAsync(host, stream));
      }
    }
    for (CompletableFuture<Void> copy : copies) {
      get(copy);
    }
  }

  /** It goes through chunks, and nothing reads or writes it when the call has returned. */
  @Test
  void memoryThatAnotherCudaHasPageLocked_isNotHeldUntilTheCompletion() throws Exception {
    List<Runnable> later = new ArrayList<>();
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
        ScriptedDriver script = new ScriptedDriver();
        Cuda first = Cuda.open(options(driver));
        Cuda cuda = Cuda.open(options(driver).withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      Arena arena = Arena.ofShared();
      CompletableFuture<Void> done;
      MemorySegment host = arena.allocate(BYTES).fill((byte) 7);
      try (PinnedBuffer _ = first.registerHost(host)) {
        script.answer(
            "launchHostFunc", call -> later.add(call.argument("function", Runnable.class)));
        done = buffer.copyFromAsync(host, stream);
        script.unscript("launchHostFunc");
      }
      arena.close();
      assertThat(done).isNotDone();
      later.forEach(Runnable::run);
      get(done);
      assertThat(Bytes.areAll(buffer, 7)).isTrue();
    }
  }

  private static CudaOptions options(SimulatedDriver driver) {
    return CudaOptions.DEFAULTS.withDriver(ScriptedDriver.keptOpen(driver));
  }
}
