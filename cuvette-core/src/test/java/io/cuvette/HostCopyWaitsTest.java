package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.Attended;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.LongFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Copies that the host makes itself come after what the current stream has queued. Nothing that is
 * queued runs here before somebody waits.
 */
class HostCopyWaitsTest {
  private static final int BYTES = 4096;

  private final Cuda cuda =
      Attended.only(Cuda.open(CudaOptions.simulated().withDevice("sim:pace=lazy,seed=0")));
  private final List<LongFunction<Buffer>> hostKinds =
      List.of(
          cuda::allocatePinned,
          bytes -> MemoryResource.managed().allocate(bytes, cuda.currentStream()));

  @AfterEach
  void close() {
    cuda.close();
  }

  private static byte[] bytes(int value) {
    byte[] all = new byte[BYTES];
    Arrays.fill(all, (byte) value);
    return all;
  }

  @Test
  void copyOutOfHostMemory_waitsForWhatWritesIt() {
    for (LongFunction<Buffer> kind : hostKinds) {
      try (CudaStream stream = cuda.device(0).createStream();
          Scope _ = stream.use();
          Buffer buffer = kind.apply(BYTES)) {
        buffer.copyFrom(MemorySegment.ofArray(bytes(1)));
        buffer.fill((byte) 2, stream);
        byte[] read = new byte[BYTES];
        buffer.copyTo(MemorySegment.ofArray(read));
        assertThat(read).isEqualTo(bytes(2));
      }
    }
  }

  @Test
  void copyIntoHostMemory_waitsForWhatReadsIt() {
    for (LongFunction<Buffer> kind : hostKinds) {
      try (CudaStream stream = cuda.device(0).createStream();
          Scope _ = stream.use();
          Buffer device = cuda.allocate(BYTES);
          Buffer buffer = kind.apply(BYTES)) {
        buffer.copyFrom(MemorySegment.ofArray(bytes(1)));
        device.copyFrom(buffer, stream);
        buffer.copyFrom(MemorySegment.ofArray(bytes(2)));
        byte[] read = new byte[BYTES];
        device.copyTo(MemorySegment.ofArray(read));
        assertThat(read).isEqualTo(bytes(1));
      }
    }
  }

  /** A copy of native memory returns when the memory may be used again. */
  @Test
  void waitingCopyOfNativeMemory_isOverWhenItReturns() {
    try (PinnedBuffer host = cuda.allocatePinned(BYTES);
        CudaStream stream = cuda.device(0).createStream();
        Scope _ = stream.use();
        Buffer device = cuda.allocate(BYTES)) {
      MemorySegment segment = host.segment();
      segment.fill((byte) 1);
      device.copyFrom(segment);
      segment.fill((byte) 2);
      device.copyTo(segment);
      assertThat(segment.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes(1));
    }
  }

  @Test
  void waitingCopiesAndFills_areOverWhenTheyReturn() {
    try (PinnedBuffer host = cuda.allocatePinned(BYTES);
        CudaStream stream = cuda.device(0).createStream();
        Scope _ = stream.use();
        Buffer device = cuda.allocate(BYTES)) {
      device.fill((byte) 3);
      assertThat(stream.isDone()).isTrue();
      host.copyFrom(device);
      assertThat(host.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes(3));
      host.fill((byte) 4);
      assertThat(host.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes(4));
    }
  }

  @Test
  void rowsOfHostMemory_areCopiedAfterWhatTheStreamDoesThere() {
    CopyBox halves = CopyBox.of(BYTES / 4, 2).withSource(0, BYTES / 2, 2);
    for (LongFunction<Buffer> kind : hostKinds) {
      try (CudaStream stream = cuda.device(0).createStream();
          Scope _ = stream.use();
          Buffer buffer = kind.apply(BYTES)) {
        buffer.copyFrom(MemorySegment.ofArray(bytes(1)));
        buffer.fill((byte) 2, stream);
        byte[] read = new byte[BYTES / 2];
        buffer.copyTo(MemorySegment.ofArray(read), halves);
        assertThat(read).containsOnly(2);
      }
    }
  }

  @Test
  void hostMemoryIsGathered_afterWhatTheStreamWritesThere() {
    try (PinnedBuffer host = cuda.allocatePinned(BYTES);
        CudaStream stream = cuda.device(0).createStream();
        Scope _ = stream.use();
        Buffer device = cuda.allocate(BYTES)) {
      host.segment().fill((byte) 1);
      host.fill((byte) 2, stream);
      device.gatherFrom(List.of(host.segment()));
      byte[] read = new byte[BYTES];
      device.copyTo(MemorySegment.ofArray(read));
      assertThat(read).isEqualTo(bytes(2));
    }
  }

  @Test
  void waitingCopyOfABox_isOverWhenItReturns() {
    CopyBox halves = CopyBox.of(BYTES / 4, 2).withSource(0, BYTES / 2, 2);
    try (CudaStream stream = cuda.device(0).createStream();
        Scope _ = stream.use();
        Buffer source = cuda.allocate(BYTES);
        Buffer target = cuda.allocate(BYTES)) {
      source.fill((byte) 5, stream);
      target.copyFrom(source, halves);
      assertThat(stream.isDone()).isTrue();
    }
  }

  @Test
  void waitingCopyOfABoxOfHostMemory_isOverWhenItReturns() {
    CopyBox halves = CopyBox.of(BYTES / 4, 2).withSource(0, BYTES / 2, 2);
    try (PinnedBuffer host = cuda.allocatePinned(BYTES);
        CudaStream stream = cuda.device(0).createStream();
        Scope _ = stream.use();
        Buffer device = cuda.allocate(BYTES)) {
      MemorySegment segment = host.segment();
      segment.fill((byte) 1);
      device.copyFrom(segment, halves);
      assertThat(stream.isDone()).isTrue();
      segment.fill((byte) 2);
      device.copyTo(segment, CopyBox.of(BYTES / 4, 2));
      assertThat(segment.asSlice(0, BYTES / 2).toArray(ValueLayout.JAVA_BYTE)).containsOnly(1);
    }
  }

  @Test
  void waitingBatch_isOverWhenItReturns() {
    try (CudaStream stream = cuda.device(0).createStream();
        Scope _ = stream.use();
        Buffer source = cuda.allocate(BYTES);
        Buffer target = cuda.allocate(BYTES)) {
      source.fill((byte) 5, stream);
      CopyBatch.of(List.of(target), List.of(source)).copy();
      assertThat(stream.isDone()).isTrue();
      source.fill((byte) 6, stream);
      List<Buffer> alsoNone = List.of(source, source.slice(BYTES));
      CopyBatch.of(List.of(target, target.slice(BYTES)), alsoNone).copy();
      assertThat(stream.isDone()).as("one copy without bytes").isTrue();
    }
  }

  /** It has no bytes that a thread would have to copy. */
  @Test
  void rowWithoutBytes_isNoReasonToWait() {
    try (Arena arena = Arena.ofConfined();
        PinnedBuffer host = cuda.allocatePinned(BYTES);
        CudaStream stream = cuda.device(0).createStream();
        Buffer device = cuda.allocate(BYTES, stream)) {
      device.gatherFrom(List.of(arena.allocate(0), host.segment()), stream);
      assertThat(stream.isDone()).isFalse();
      stream.synchronize();
    }
  }

  /** Whoever waits for a stream that has to wait for this thread would hang. */
  @Test
  void whatHasNoBytes_isNoReasonToWait() {
    CopyBox none = CopyBox.of(0, 2);
    try (Arena arena = Arena.ofConfined();
        PinnedBuffer pinned = cuda.allocatePinned(BYTES);
        CudaStream stream = cuda.device(0).createStream();
        Scope _ = stream.use();
        Buffer other = cuda.allocate(BYTES);
        Buffer device = cuda.allocate(BYTES)) {
      device.fill((byte) 1, stream);
      device.copyFrom(other, none);
      CopyBatch.of(List.of(device), List.of(other.slice(BYTES))).copy();
      for (MemorySegment host : List.of(pinned.segment(), arena.allocate(BYTES))) {
        device.copyFrom(host, none);
        device.copyFrom(host, none, stream);
        device.copyTo(host, none);
        device.copyTo(host, none, stream);
        device.gatherFrom(List.of(host.asSlice(BYTES)), stream);
        device.scatterTo(List.of(host.asSlice(BYTES)), stream);
      }
      device.gatherFrom(List.of(arena.allocate(0)));
      assertThat(stream.isDone()).isFalse();
      stream.synchronize();
    }
  }

  /** The host copies in pieces, the last of which is smaller. */
  @Test
  void hostCopyOfSeveralPieces_isWhole() {
    byte[] written = new byte[(9 << 20) + 3];
    new Random(1).nextBytes(written);
    for (LongFunction<Buffer> kind : hostKinds) {
      try (Buffer buffer = kind.apply(written.length)) {
        buffer.copyFrom(MemorySegment.ofArray(written));
        byte[] read = new byte[written.length];
        buffer.copyTo(MemorySegment.ofArray(read));
        assertThat(Arrays.equals(read, written)).isTrue();
      }
    }
  }
}
