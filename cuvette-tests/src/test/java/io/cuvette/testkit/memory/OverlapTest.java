package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.assertj.core.api.Assertions;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What the driver makes of a copy between ranges with common bytes is undefined: it is refused. */
class OverlapTest {
  private static final int BYTES = 4096;

  @CudaTest
  void copyBetweenOverlappingSlices_isRefused_andChangesNothing(Cuda cuda) {
    byte[] pattern = Bytes.random(1, BYTES);
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, BYTES);
          CudaStream stream = cuda.device(0).createStream()) {
        Bytes.put(buffer, pattern);
        refused(() -> buffer.copyFrom(buffer));
        refused(() -> buffer.copyFrom(buffer, stream));
        refused(() -> buffer.slice(1).copyFrom(buffer.slice(0, BYTES - 1)));
        refused(() -> buffer.slice(1).copyTo(buffer.slice(0, BYTES - 1)));
        refused(() -> buffer.slice(1023, 1024).copyTo(buffer.slice(0, 1024), stream));
        assertThat(Bytes.of(buffer)).as("%s", kind).isEqualTo(pattern);
      }
    }
  }

  @CudaTest
  void copyBetweenNeighbours_isMade(Cuda cuda) {
    byte[] pattern = Bytes.random(2, BYTES);
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, BYTES)) {
        Bytes.put(buffer, pattern);
        buffer.slice(BYTES / 2).copyFrom(buffer.slice(0, BYTES / 2));
        buffer.slice(1, 1).copyFrom(buffer.slice(0, 1));
        buffer.slice(7, 0).copyFrom(buffer.slice(7, 0));
        byte[] after = Bytes.of(buffer);
        assertThat(after[BYTES - 1]).isEqualTo(pattern[BYTES / 2 - 1]);
        assertThat(after[1]).isEqualTo(pattern[0]);
      }
    }
  }

  /** Addresses count, not objects. */
  @CudaTest
  void copyBetweenABufferAndAWrappedViewOfIt_isRefused(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, BYTES);
          Buffer view = cuda.device(0).wrap(buffer.address() + 16, BYTES - 16, buffer)) {
        refused(() -> buffer.copyFrom(view));
        refused(() -> view.copyTo(buffer.slice(8)));
        refused(() -> view.slice(0, 16).copyFrom(buffer.slice(8, 16)));
        view.slice(0, 16).copyFrom(buffer.slice(0, 16));
      }
    }
  }

  @CudaTest
  void copyBetweenABufferAndItsOwnSegment_isRefused(Cuda cuda, CudaStream stream) {
    try (PinnedBuffer pinned = cuda.allocatePinned(BYTES);
        ManagedBuffer managed = cuda.allocateManaged(BYTES)) {
      refusedWithSegment(pinned, pinned.segment(), stream);
      refusedWithSegment(managed, managed.segment(), stream);
    }
  }

  private static void refusedWithSegment(Buffer buffer, MemorySegment own, CudaStream stream) {
    Buffer behind = buffer.slice(100);
    MemorySegment front = own.asSlice(0, 101);
    refused(() -> behind.copyFrom(front));
    refused(() -> behind.copyFrom(front, stream));
    refused(() -> behind.copyTo(front));
    refused(() -> behind.copyTo(front, stream));
    behind.copyFrom(own.asSlice(0, 100), stream);
    behind.copyTo(own.asSlice(0, 100));
    stream.synchronize();
  }

  /** The simulated driver knows one memory by all its addresses, as the sanitizer does. */
  @CudaTest(simulatedOnly = true, sanitized = false)
  void simulatedDriver_refusesOverlappingCopies(Cuda cuda, CudaStream stream) {
    try (PinnedBuffer pinned = cuda.allocatePinned(BYTES)) {
      Assertions.assertThatExceptionOfType(CudaException.class)
          .isThrownBy(() ->
              cuda.driver()
                  .transfers()
                  .memcpyHtoDAsync(0, pinned.address(), pinned.segment(), stream.handle()))
          .withMessageContaining("%d bytes are in the source and in the target", BYTES);
    }
  }

  private static void refused(ThrowingCallable copy) {
    assertThatIllegalArgumentException()
        .isThrownBy(copy)
        .withMessageMatching(
            "copy of \\d+ bytes from 0x\\w+ to 0x\\w+: \\d+ bytes are in both ranges .*");
  }

  /** Some row of many. */
  @CudaTest
  void rowsOfABuffersOwnSegment_areRefused_whereTheyMeetWhatIsCopied(Cuda cuda, CudaStream stream) {
    MemorySegment apart = Arena.ofAuto().allocate(8);
    try (PinnedBuffer pinned = cuda.allocatePinned(64);
        ManagedBuffer managed = cuda.allocateManaged(64)) {
      managed.fill((byte) 1);
      pinned.fill((byte) 1);
      for (Buffer buffer : List.of(pinned, managed)) {
        MemorySegment own = buffer == pinned ? pinned.segment() : managed.segment();
        for (long at : new long[] {0, 8, 15}) {
          List<MemorySegment> rows = List.of(apart, own.asSlice(at, 8));
          for (Runnable call :
              List.<Runnable>of(
                  () -> buffer.gatherFrom(rows),
                  () -> buffer.scatterTo(rows),
                  () -> buffer.gatherFrom(rows, stream),
                  () -> buffer.scatterTo(rows, stream))) {
            assertThatThrownBy(call::run)
                .as("row at %d of %s", at, buffer)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("are in both ranges");
          }
        }
        stream.synchronize();
        assertThat(Bytes.areAll(buffer, 1)).isTrue();
      }
    }
  }

  /** The host has managed memory somewhere else where the device is a simulated one. */
  @CudaTest
  @SuppressWarnings("restricted")
  void segmentAtTheDevicesAddress_isTheBuffersOwnToo(Cuda cuda, CudaStream stream) {
    try (PinnedBuffer pinned = cuda.allocatePinned(64);
        ManagedBuffer managed = cuda.allocateManaged(64);
        Buffer device = cuda.allocate(64, stream)) {
      assertThat(managed.segment().byteSize()).isEqualTo(pinned.segment().byteSize());
      for (Buffer buffer : List.of(pinned, managed, device)) {
        MemorySegment own = MemorySegment.ofAddress(buffer.address()).reinterpret(64);
        CopyBox box = CopyBox.of(8, 2).withSource(0, 16).withTarget(4, 16);
        List<MemorySegment> rows = List.of(own.asSlice(4, 8));
        for (ThrowingCallable call :
            List.<ThrowingCallable>of(
                () -> buffer.copyFrom(own.asSlice(4, 8)),
                () -> buffer.copyTo(own.asSlice(4, 8)),
                () -> buffer.copyFrom(own.asSlice(4, 8), stream),
                () -> buffer.copyTo(own.asSlice(4, 8), stream),
                () -> buffer.copyFrom(own, box),
                () -> buffer.copyTo(own, box),
                () -> buffer.copyFrom(own, box, stream),
                () -> buffer.copyTo(own, box, stream),
                () -> buffer.gatherFrom(rows),
                () -> buffer.scatterTo(rows))) {
          assertThatIllegalArgumentException()
              .as("%s", buffer)
              .isThrownBy(call)
              .withMessageMatching(".*(are in both ranges|are in a row of the source and in).*");
        }
      }
    }
  }
}
