package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.GrowableBuffer;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
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
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Copies with a completion, until which both ends stay. */
@Timeout(120)
class AsyncCopiesTest {
  private static final int MIB = 1 << 20;
  private static final int BYTES = MIB;

  private static boolean areAll(MemorySegment memory, int value) {
    return memory
        .elements(ValueLayout.JAVA_BYTE)
        .allMatch(at -> at.get(ValueLayout.JAVA_BYTE, 0) == value);
  }

  /** Waits; fails as the copy did. */
  static void get(CompletableFuture<Void> done) throws Exception {
    try {
      done.get(60, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException failure) {
        throw failure;
      }
      throw e;
    }
  }

  static MemorySegment mapped(Path path, long bytes, Arena arena) throws IOException {
    try (FileChannel file =
        FileChannel.open(
            path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    }
  }

  /** Who cancels a copy, or looks at another one, may be ahead of the completion. */
  static void closesSoon(Arena arena) {
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
      assertThat(List.of(one, two, three)).allMatch(CompletableFuture::isDone);
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
      for (MemorySegment host : List.of(pinned.segment(), Arena.ofAuto().allocate(BYTES))) {
        AtomicInteger times = new AtomicInteger();
        CompletableFuture<String> thread;
        CompletableFuture<Void> done;
        try (Gate _ = Gate.on(stream)) {
          done = buffer.copyFromAsync(host, stream);
          assertThat(done.isDone()).isFalse();
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
  }

  @CudaTest
  void bothEnds_mayBeClosedAtOnce(Cuda cuda, CudaStream stream) throws Exception {
    try (Buffer target = cuda.allocate(BYTES, stream)) {
      target.fill((byte) 0);
      CompletableFuture<Void> done;
      long address;
      try (Gate _ = Gate.on(stream)) {
        MemorySegment ofAnother = Arena.ofAuto().allocate(BYTES);
        try (PinnedBuffer source = cuda.allocatePinned(BYTES);
            PinnedBuffer staged = cuda.allocatePinned(BYTES);
            Buffer between = cuda.allocate(BYTES, stream)) {
          address = staged.address();
          source.segment().fill((byte) 6);
          var _ = between.copyFromAsync(source.segment(), stream);
          var _ = between.copyToAsync(staged, stream);
          var _ = staged.copyToAsync(ofAnother, stream);
          var _ = between.copyFromAsync(ofAnother, stream);
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

  @CudaTest
  void arena_cannotBeClosedBefore_alsoOfMemoryThatOthersPageLocked(Cuda cuda, CudaStream stream)
      throws Exception {
    for (boolean pageLocked : new boolean[] {false, true}) {
      Arena arena = Arena.ofShared();
      MemorySegment memory = arena.allocate(BYTES, 4096);
      memory.fill((byte) 8);
      if (pageLocked) { // by another library: nobody but the arena knows of its end
        cuda.driver().memory().memHostRegister(0, memory, 3);
      }
      try (Buffer target = cuda.allocate(BYTES, stream)) {
        CompletableFuture<Void> cancelled;
        try (Gate _ = Gate.on(stream)) {
          cancelled = target.copyFromAsync(memory, stream);
          assertThat(cancelled.cancel(true)).isEqualTo(!pageLocked);
          assertThat(cancelled).isNotDone();
          assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
          var _ = target.copyFromAsync(memory, stream);
        }
        get(target.copyFromAsync(memory, stream));
        assertThat(Bytes.areAll(target, 8)).isTrue();
        assertThat(cancelled.isCancelled()).isEqualTo(!pageLocked);
      } finally {
        if (pageLocked) {
          cuda.driver().memory().memHostUnregister(0, memory.address());
        }
      }
      closesSoon(arena);
    }
  }

  @CudaTest
  void whatCouldMoveOrVanish_isRefused(Cuda cuda, CudaStream stream) {
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(4096, stream)) {
      for (MemorySegment host :
          List.of(arena.allocate(4096, 4096), MemorySegment.ofArray(new byte[8]))) {
        String way =
            host.isNative()
                ? "expected: memory of Arena.ofShared()"
                : "copy it into a PinnedBuffer first";
        assertThatThrownBy(() -> buffer.copyFromAsync(host, stream))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(way);
        assertThatThrownBy(() -> buffer.copyToAsync(host, stream))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(way);
      }
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
            .hasMessageContaining("expected: copyFrom or copyTo");
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
  void growableBuffer_doesNotShrinkMeanwhile(Cuda cuda, CudaStream stream) throws Exception {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    host.fill((byte) 4);
    try (GrowableBuffer buffer = cuda.currentDevice().growable(64 * MIB)) {
      buffer.grow(BYTES);
      CompletableFuture<Void> done;
      try (Gate _ = Gate.on(stream)) {
        done = buffer.copyFromAsync(host, stream);
        assertThatThrownBy(() -> buffer.shrink(0))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("a copy uses it");
      }
      get(done);
      assertThat(Bytes.areAll(buffer, 4)).isTrue();
    }
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

  @CudaTest
  void callbacks_mayBeginCopies(Cuda cuda, CudaStream stream) throws Exception {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    host.fill((byte) 5);
    try (Buffer buffer = cuda.allocate(BYTES, stream);
        CudaStream other = cuda.currentDevice().createStream()) {
      CompletableFuture<CompletableFuture<Void>> later = new CompletableFuture<>();
      get(
          stream.addCallback(() -> {
            buffer.copyFromAsync(host, other).join();
            later.complete(buffer.copyToAsync(host, stream)); // after this
          }));
      get(later.get(60, TimeUnit.SECONDS));
      assertThat(Bytes.areAll(buffer, 5)).isTrue();
    }
  }
}
