package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.ManagedBuffer;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicReference;

/** Segments and byte buffers are the memory itself, and die with the buffer. */
class ViewTest {

  @CudaTest
  void writesThroughTheViewOfPinnedMemory_areSeenByTheDevice(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(1000);
        Buffer device = cuda.allocate(1000)) {
      MemorySegment segment = pinned.segment();
      assertThat(segment.byteSize()).isEqualTo(1000);
      segment.copyFrom(MemorySegment.ofArray(Bytes.random(1, 1000)));
      device.copyFrom(pinned);
      assertThat(Bytes.of(device)).isEqualTo(Bytes.random(1, 1000));
    }
  }

  @CudaTest
  void deviceWrites_areSeenThroughTheView(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(16);
        ManagedBuffer managed = cuda.allocateManaged(16)) {
      pinned.fill((byte) 3);
      managed.fill((byte) 4);
      assertThat(pinned.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(3);
      assertThat(managed.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(4);
    }
  }

  @CudaTest
  void byteBuffer_isTheSameMemoryInTheHostsOrder(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(16);
        ManagedBuffer managed = cuda.allocateManaged(16)) {
      for (ByteBuffer view : new ByteBuffer[] {pinned.byteBuffer(), managed.byteBuffer()}) {
        assertThat(view.order()).isEqualTo(ByteOrder.nativeOrder());
        assertThat(view.capacity()).isEqualTo(16);
        assertThat(view.isDirect()).isTrue();
        assertThat(view.isReadOnly()).isFalse();
        view.putLong(8, 42);
      }
      assertThat(pinned.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(42);
      assertThat(managed.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(42);
    }
  }

  @CudaTest
  void viewOfASlice_isItsPart(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(100)) {
      pinned.segment().setAtIndex(ValueLayout.JAVA_BYTE, 10, (byte) 7);
      MemorySegment part = pinned.slice(10, 5).segment();
      assertThat(part.byteSize()).isEqualTo(5);
      assertThat(part.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 7);
      assertThatThrownBy(() -> part.get(ValueLayout.JAVA_BYTE, 5))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @CudaTest
  void view_endsWithTheBuffer_notWithItsBlock(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(100)) {
      assertThatThrownBy(() -> pinned.segment().get(ValueLayout.JAVA_BYTE, 100))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @CudaTest
  void everyViewOfAClosedBuffer_throwsInsteadOfCrashing(Cuda cuda) {
    PinnedBuffer pinned = cuda.allocatePinned(64);
    ManagedBuffer managed = cuda.allocateManaged(64);
    MemorySegment[] segments = {
      pinned.segment(), pinned.slice(8, 8).segment(), managed.segment(), managed.slice(8).segment()
    };
    ByteBuffer[] buffers = {
      pinned.byteBuffer(), pinned.slice(8, 8).byteBuffer(), managed.byteBuffer()
    };
    pinned.close();
    managed.close();
    for (MemorySegment segment : segments) {
      assertThat(segment.scope().isAlive()).isFalse();
      assertThatThrownBy(() -> segment.get(ValueLayout.JAVA_BYTE, 0))
          .isInstanceOf(IllegalStateException.class);
    }
    for (ByteBuffer buffer : buffers) {
      assertThatThrownBy(() -> buffer.get(0)).isInstanceOf(IllegalStateException.class);
    }
  }

  /** The block is handed out again, and the old view must not see the new owner's bytes. */
  @CudaTest
  void viewOfAClosedBuffer_staysDeadWhenItsBlockIsUsedAgain(Cuda cuda) {
    PinnedBuffer first = cuda.allocatePinned(64);
    MemorySegment old = first.segment();
    long address = first.address();
    first.close();
    try (PinnedBuffer second = cuda.allocatePinned(64)) {
      assertThat(second.address()).isEqualTo(address);
      second.segment().fill((byte) 1);
      assertThatThrownBy(() -> old.get(ValueLayout.JAVA_BYTE, 0))
          .isInstanceOf(IllegalStateException.class);
    }
  }

  @CudaTest
  void view_canBeUsedByEveryThread(Cuda cuda) throws InterruptedException {
    try (PinnedBuffer pinned = cuda.allocatePinned(8)) {
      MemorySegment segment = pinned.segment();
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      Thread thread =
          Thread.ofVirtual()
              .start(() -> {
                try {
                  segment.set(ValueLayout.JAVA_BYTE, 0, (byte) 5);
                } catch (RuntimeException e) {
                  thrown.set(e);
                }
              });
      thread.join();
      assertThat(thrown.get()).isNull();
      assertThat(segment.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 5);
    }
  }

  @CudaTest
  void pinnedMemory_hasTheSameAddressForHostAndDevice(Cuda cuda) {
    try (PinnedBuffer pinned = cuda.allocatePinned(64)) {
      assertThat(pinned.isHostAccessible()).isTrue();
      assertThat(pinned.devicePointer()).isEqualTo(pinned.address());
    }
  }

  @CudaTest
  void deviceMemory_isNotHostAccessible(Cuda cuda) {
    try (Buffer device = cuda.allocate(64)) {
      assertThat(device.isHostAccessible()).isFalse();
    }
  }
}
