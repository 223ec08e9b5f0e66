package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.PinnedBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Page-locked memory of which nobody wrote a byte, and writes that the sanitizer cannot see. */
@Timeout(60)
class SanitizerUnwrittenTest extends SanitizedCudaTestBase {
  private static final int BYTES = 100_000;

  private final MemorySegment heap = MemorySegment.ofArray(new byte[BYTES]);

  private PinnedBuffer pinned(String kind) {
    return switch (kind) {
      case "new" -> cuda.allocatePinned(BYTES);
      case "again" -> {
        try (PinnedBuffer before = cuda.allocatePinned(BYTES)) {
          before.segment().fill((byte) 1);
        }
        yield cuda.allocatePinned(BYTES);
      }
      case "direct" -> cuda.directPinned().allocate(BYTES);
      default -> throw new IllegalArgumentException(kind);
    };
  }

  @ParameterizedTest
  @ValueSource(strings = {"new", "again", "direct"})
  void memoryThatNobodyWrote_isNotCopiedToTheHost(String kind) {
    try (PinnedBuffer buffer = pinned(kind)) {
      buffer.copyTo(heap);

      assertThat(assertOnly(Misuse.UNINITIALIZED_READ).message())
          .matches("copyTo\\(address=\\w+, bytes=100000\\): .*")
          .contains("read of 100000 bytes")
          .contains("nothing of it was ever written");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"new", "again", "direct"})
  void whatNobodyWrote_isUnwrittenOnTheDeviceToo(String kind) {
    try (PinnedBuffer buffer = pinned(kind);
        PinnedBuffer back = cuda.allocatePinned(BYTES);
        Buffer device = cuda.allocate(BYTES, stream)) {
      device.fill((byte) 1, stream);
      device.copyFrom(buffer, stream);
      assertSilent();
      device.copyTo(back, stream);
      assertOnly(Misuse.UNINITIALIZED_READ);
      stream.synchronize();
    }
  }

  @Test
  void partThatNobodyWrote_isNotCopiedToTheHost() {
    try (PinnedBuffer buffer = cuda.allocatePinned(BYTES);
        Arena arena = Arena.ofConfined()) {
      buffer.slice(0, 50).segment().fill((byte) 1);
      buffer.slice(0, 51).copyTo(heap.asSlice(0, 51));
      assertSilent();
      buffer.slice(51, 49).copyTo(arena.allocate(49));
      assertOnly(Misuse.UNINITIALIZED_READ);
    }
  }

  /** One byte is enough, wherever and by whomever it is written: rows may have gaps. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 7, 8, 16_383, 16_384, 65_537, BYTES - 1})
  void memoryInWhichTheHostWroteAByte_isWritten(int at) {
    try (PinnedBuffer buffer = cuda.allocatePinned(BYTES);
        Buffer device = cuda.allocate(BYTES, stream)) {
      buffer.segment().set(ValueLayout.JAVA_BYTE, at, (byte) 1);
      device.copyFrom(buffer, stream);
      stream.synchronize();
      device.copyTo(heap);
      buffer.copyTo(heap);
    }
  }

  @Test
  void memoryThatADeviceWrites_isWritten_beforeTheWorkRuns() {
    try (PinnedBuffer buffer = cuda.allocatePinned(BYTES);
        PinnedBuffer back = cuda.allocatePinned(BYTES);
        Buffer device = cuda.allocate(BYTES, stream)) {
      buffer.fill((byte) 1, stream);
      device.copyFrom(buffer, stream);
      device.copyTo(back, stream);
      stream.synchronize();
      back.copyTo(heap);
    }
  }

  /** A callback writes what the copy behind it reads. */
  @Test
  void memoryThatACallbackWrites_isWritten_beforeItRuns() {
    try (PinnedBuffer buffer = cuda.allocatePinned(BYTES);
        Buffer device = cuda.allocate(BYTES, stream)) {
      var written = stream.addCallback(() -> buffer.segment().fill((byte) 3));
      device.copyFrom(buffer, stream);
      stream.synchronize();
      written.join();
      device.copyTo(heap);
    }
    assertThat(heap.get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 3);
  }

  /** Work of another library, which is not seen, before or behind a copy that is. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void memoryThatAnotherLibraryWrites_isWritten(boolean before) {
    var unseen = ((SanitizerDriver) driver).delegate();
    try (PinnedBuffer buffer = cuda.allocatePinned(BYTES);
        Buffer device = cuda.allocate(BYTES, stream)) {
      if (!before) {
        device.copyFrom(buffer, stream);
      }
      unseen.transfers().memsetD8Async(0, buffer.address(), (byte) 1, BYTES, stream.handle());
      buffer.recordUse(stream);
      if (before) {
        device.copyFrom(buffer, stream);
        stream.synchronize();
        device.copyTo(heap);
      }
      stream.synchronize();
      buffer.copyTo(heap);
    }
  }

  /** Memory that grows is copied whole, and nobody looks at it yet. */
  @Test
  void memoryThatNobodyWrote_mayGoToOtherPageLockedMemory() {
    try (PinnedBuffer few = cuda.allocatePinned(BYTES);
        PinnedBuffer many = cuda.allocatePinned(2 * BYTES)) {
      few.copyTo(many.segment().asSlice(0, BYTES));
      many.slice(0, BYTES).copyFrom(few.segment());
      many.slice(BYTES, BYTES).copyFrom(few, stream);
      stream.synchronize();
    }
  }

  @Test
  void fewBytes_mayBeAnything() {
    try (PinnedBuffer buffer = cuda.allocatePinned(BYTES)) {
      buffer.slice(3, 14).copyTo(heap.asSlice(0, 14));
    }
  }

  /** Where no node writes it, and nobody before the launch. */
  @Test
  void whatNobodyWrote_isNotCopiedToTheHostByAGraph() {
    try (Buffer device = cuda.allocate(BYTES, stream);
        PinnedBuffer back = cuda.allocatePinned(BYTES);
        CudaGraph graph =
            stream.capture(() -> device.slice(8, 64).copyTo(back.slice(0, 64), stream));
        CudaGraphExec executable = graph.instantiate()) {
      reports.clear();
      device.slice(0, 71).fill((byte) 1, stream);
      executable.launch(stream);
      assertThat(assertOnly(Misuse.UNINITIALIZED_READ).message())
          .contains("read of 64 bytes")
          .contains("1 bytes of it were never written");
      device.slice(71, 1).fill((byte) 1, stream);
      executable.launch(stream);
      stream.synchronize();
    }
  }

  @Test
  void whatANodeOfTheGraphWrites_isWritten_andCopiesOnTheDeviceMayBeOfAnything() {
    try (Buffer device = cuda.allocate(BYTES, stream);
        Buffer copied = cuda.allocate(BYTES, stream);
        PinnedBuffer back = cuda.allocatePinned(BYTES);
        CudaGraph graph =
            stream.capture(() -> {
              copied.copyFrom(device, stream);
              copied.fill((byte) 1, stream);
              copied.copyTo(back, stream);
            });
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      executable.launch(stream);
      stream.synchronize();
      back.copyTo(heap);
    }
  }
}
