package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a copy that fails does about the memory that the device may be copying. */
@Timeout(60)
class AsyncCopyFailuresTest {
  private static final int BYTES = 1 << 20;

  private final ScriptedDriver driver = new ScriptedDriver();

  /** Work is done when somebody waits for it. */
  private final Cuda cuda =
      Cuda.open(CudaOptions.simulated().withDevice("sim:pace=lazy").withDecorator(driver::over));

  private final CudaStream stream = cuda.device(0).createStream();
  private final Buffer buffer = cuda.allocate(BYTES, stream);

  @AfterEach
  void close() {
    cuda.close();
  }

  private Throwable failing(Throwable failure, MemorySegment host, boolean in) {
    String call = in ? "memcpyHtoDAsync" : "memcpyDtoHAsync";
    driver.answer(
        call,
        made -> {
          Object _ = made.proceed();
          throw failure;
        });
    try {
      return catchThrowable(() -> {
        var _ = in ? buffer.copyFromAsync(host, stream) : buffer.copyToAsync(host, stream);
      });
    } finally {
      driver.unscript(call);
    }
  }

  /** A refusal of this library came before the driver had anything. */
  @Test
  void memoryThatOthersPageLocked_isLetGo_onceTheDeviceHasCopiedIt_ifItMayHaveBegun() {
    Map<Throwable, Boolean> failures =
        Map.of(
            new CudaException(CudaStatus.INVALID_VALUE, "copy", "on purpose"), true,
            new OutOfMemoryError("on purpose"), true,
            new IllegalStateException("on purpose"), false);
    failures.forEach((failure, waits) -> {
      for (boolean in : new boolean[] {true, false}) {
        try (Arena arena = Arena.ofShared()) {
          MemorySegment memory = arena.allocate(BYTES, 4096);
          cuda.driver().memory().memHostRegister(0, memory, 3);
          Throwable thrown = failing(failure, memory, in);
          assertThat(thrown).isSameAs(failure).hasNoSuppressedExceptions();
          assertThat(stream.isDone()).as("%s", failure).isEqualTo(waits);
          stream.synchronize();
          cuda.driver().memory().memHostUnregister(0, memory.address());
        }
      }
    });
  }

  /** The device has it by then. */
  @Test
  void memoryThatOthersPageLocked_isLetGo_onceItIsCopied_whateverItsCompletionFailsWith() {
    List<Throwable> failures =
        List.of(
            new CudaException(CudaStatus.INVALID_VALUE, "completion", "on purpose"),
            new OutOfMemoryError("on purpose"),
            new IllegalStateException("on purpose"));
    for (Throwable failure : failures) {
      for (boolean in : new boolean[] {true, false}) {
        try (Arena arena = Arena.ofShared()) {
          MemorySegment memory = arena.allocate(BYTES, 4096);
          cuda.driver().memory().memHostRegister(0, memory, 3);
          driver.answer(
              "launchHostFunc",
              _ -> {
                throw failure;
              });
          Throwable thrown =
              catchThrowable(() -> {
                var _ =
                    in ? buffer.copyFromAsync(memory, stream) : buffer.copyToAsync(memory, stream);
              });
          driver.unscript("launchHostFunc");
          assertThat(thrown).as("%s", failure).hasMessageContaining("on purpose");
          assertThat(stream.isDone()).as("%s", failure).isTrue();
          cuda.driver().memory().memHostUnregister(0, memory.address());
        }
      }
    }
  }

  @Test
  void copyOfMemoryThatIsNotPageLocked_failsWithTheDriversErrorAlone() {
    try (Arena arena = Arena.ofConfined()) {
      for (MemorySegment host : List.of(arena.allocate(16), arena.allocate(16).asSlice(0, 1))) {
        for (boolean in : new boolean[] {true, false}) {
          var failure = new CudaException(CudaStatus.INVALID_VALUE, "copy", "on purpose");
          assertThat(failing(failure, host, in)).isSameAs(failure).hasNoSuppressedExceptions();
        }
      }
    }
  }

  /** It would not be known when the memory can be used again. */
  @Test
  void copyWhoseCompletionFails_saysThatItIsQueued() {
    var failure = new CudaException(CudaStatus.NOT_PERMITTED, "cuLaunchHostFunc", "on purpose");
    driver.answer(
        "launchHostFunc",
        _ -> {
          throw failure;
        });
    try (Buffer other = cuda.allocate(BYTES, stream);
        Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(16);
      for (ThrowingCallable copy :
          List.<ThrowingCallable>of(
              () -> buffer.copyFromAsync(other, stream),
              () -> buffer.copyFromAsync(host, stream),
              () -> buffer.copyToAsync(host, stream))) {
        assertThatThrownBy(copy)
            .isInstanceOf(CudaException.class)
            .hasMessageContaining("the copy is queued, and nothing tells when it is done");
      }
    } finally {
      driver.unscript("launchHostFunc");
    }
  }

  /** Asks for each kind of copy, also of no bytes. */
  private void refuses(Buffer of, CudaStream on, Class<? extends Exception> type) {
    MemorySegment host = Arena.ofAuto().allocate(16);
    for (int bytes : new int[] {0, 16}) {
      MemorySegment part = host.asSlice(0, bytes);
      for (ThrowingCallable copy :
          List.<ThrowingCallable>of(
              () -> of.copyFromAsync(buffer.slice(0, bytes), on),
              () -> of.copyFromAsync(part, on),
              () -> of.copyToAsync(part, on))) {
        assertThatThrownBy(copy).isInstanceOf(type);
      }
    }
  }

  @Test
  void whatCannotBeUsed_isRefused_andNothingIsQueued() {
    CudaStream ended = cuda.device(0).createStream();
    ended.close();
    Buffer closed = cuda.allocate(BYTES, stream);
    closed.close();
    Buffer open = cuda.allocate(BYTES, stream);
    try (Cuda another = Cuda.open(CudaOptions.simulated())) {
      driver
          .note("memcpyHtoDAsync", "memcpyDtoHAsync", "memcpyAsync", "launchHostFunc")
          .note("pointerGetAttribute"); // nor is it asked what the memory is
      refuses(open, ended, IllegalStateException.class);
      refuses(closed, stream, IllegalStateException.class);
      refuses(open, another.device(0).createStream(), IllegalArgumentException.class);
      CudaStream capturing = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      capturing.capture(() -> refuses(open, capturing, IllegalStateException.class)).close();
      MemorySegment large = Arena.ofAuto().allocate(BYTES + 1);
      assertThatThrownBy(() -> open.copyFromAsync(large, stream))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> open.copyToAsync(large, stream))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> open.copyToAsync(large.asSlice(0, 8).asReadOnly(), stream))
          .isInstanceOf(IllegalArgumentException.class);
      assertThat(driver.notes()).isEmpty();
    }
  }

  @Test
  void copyOfWhateverIsThere_completes() throws Exception {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    try (Buffer other = cuda.allocate(BYTES, stream)) {
      for (int bytes : new int[] {0, 1, BYTES}) {
        MemorySegment part = host.asSlice(0, bytes);
        List<CompletableFuture<Void>> all =
            List.of(
                buffer.copyFromAsync(part, stream),
                other.copyFromAsync(buffer.slice(0, bytes), stream),
                other.copyToAsync(part, stream));
        stream.synchronize();
        for (CompletableFuture<Void> each : all) {
          each.get(40, TimeUnit.SECONDS);
        }
      }
    }
  }

  /** Others page-locked what is at its address, which nothing is read or written of. */
  @Test
  void copyOfNoBytes_asksNothingOfTheMemory_andHoldsNothing() {
    CompletableFuture<Void> in;
    CompletableFuture<Void> out;
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(BYTES, 4096);
      cuda.driver().memory().memHostRegister(0, memory, 3);
      driver.note("pointerGetAttribute");
      buffer.fill((byte) 1, stream);
      in = buffer.copyFromAsync(memory.asSlice(0, 0), stream);
      out = buffer.copyToAsync(memory.asSlice(0, 0), stream);
      assertThat(driver.notes()).isEmpty();
      assertThat(stream.isDone()).isFalse();
      cuda.driver().memory().memHostUnregister(0, memory.address());
    }
    stream.synchronize();
    in.join();
    out.join();
  }
}
