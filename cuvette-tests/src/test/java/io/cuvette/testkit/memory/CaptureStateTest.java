package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Capture;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.io.TempDir;

/** While the current stream is capturing, what would wait is refused before the driver is asked. */
class CaptureStateTest {

  @CudaTest
  void waitingOperations_areRefused_andTheCaptureGoesOn(Cuda cuda, @NonBlocking CudaStream stream) {
    try (Buffer buffer = cuda.allocate(64);
        Buffer other = cuda.allocate(64);
        Arena arena = Arena.ofConfined()) {
      MemorySegment segment = arena.allocate(64);
      MemorySegment heap = MemorySegment.ofArray(new byte[64]);
      List<ThrowingCallable> calls =
          List.of(
              () -> buffer.fill((byte) 1),
              () -> buffer.fillShorts((short) 1),
              () -> buffer.fillInts(1),
              () -> buffer.copyFrom(other),
              () -> buffer.copyTo(other),
              () -> buffer.copyFrom(segment),
              () -> buffer.copyTo(segment),
              () -> buffer.copyFrom(heap),
              () -> buffer.copyTo(heap));
      try (Scope _ = stream.use()) {
        Capture.of(
            stream,
            () -> {
              for (ThrowingCallable call : calls) {
                assertThatThrownBy(call)
                    .as("call %d", calls.indexOf(call))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("is capturing");
              }
              buffer.fill((byte) 1, stream);
            });
      }
    }
  }

  @CudaTest
  void queuedFillsAndCopies_areCapturedAndDoNotRun(Cuda cuda, @NonBlocking CudaStream stream) {
    try (Buffer buffer = cuda.allocate(64);
        Buffer other = cuda.allocate(64)) {
      buffer.fill((byte) 1);
      other.fill((byte) 2);
      Capture.of(
          stream,
          () -> {
            assertThat(stream.isCapturing()).isTrue();
            buffer.fill((byte) 9, stream);
            buffer.copyFrom(other, stream);
          });
      assertThat(stream.isCapturing()).isFalse();
      cuda.device(0).synchronize();
      assertThat(Bytes.of(buffer)).containsOnly(1);
    }
  }

  @CudaTest
  void callbacks_areRefusedOnACapturingStream(@NonBlocking CudaStream stream) {
    Capture.of(
        stream,
        () ->
            assertThatThrownBy(() -> stream.addCallback(() -> {}))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("is capturing"));
  }

  /** A pool may grow in a relaxed capture, and hands out no block that the capture still uses. */
  @CudaTest
  void allocationWhileCapturing_isAllowed(Cuda cuda, @NonBlocking CudaStream stream) {
    Capture.of(
        stream,
        () -> {
          try (Buffer buffer = cuda.allocate(1000, stream)) {
            buffer.fill((byte) 1, stream);
          }
        });
  }

  /** Each launch would read a file that may be shorter by then. */
  @CudaTest
  void copyOfAMappedFile_isNotCaptured(
      Cuda cuda, @NonBlocking CudaStream stream, @TempDir Path folder) throws IOException {
    Path path = Files.write(folder.resolve("mapped"), new byte[8]);
    try (Arena arena = Arena.ofShared();
        FileChannel channel = FileChannel.open(path);
        Buffer buffer = cuda.allocate(8, stream)) {
      MemorySegment file = channel.map(FileChannel.MapMode.READ_ONLY, 0, 8, arena);
      stream
          .capture(() ->
              assertThatThrownBy(() -> buffer.copyFrom(file, stream))
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("whose launches do not survive that the file of"))
          .close();
    }
  }
}
