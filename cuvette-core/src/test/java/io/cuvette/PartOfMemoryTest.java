package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.transfer.HostTransfers;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Parts of memory as operations use them are where they say, for devices and for the host. */
@Timeout(30)
class PartOfMemoryTest {
  private static final int BYTES = 64;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void hostCopyThroughAPart_touchesThePartAlone() {
    PinnedBuffer pinned = cuda.allocatePinned(BYTES);
    Buffer managed = MemoryResource.managed().allocate(BYTES, cuda.device(0).createStream());
    for (Buffer buffer : List.of(pinned, pinned.slice(8, 48), managed, managed.slice(8))) {
      buffer.fill((byte) 1);
      Memory part = BufferBase.base(buffer).memory().part(16, 8).part(2, 4);
      byte[] bytes = {5, 6, 7, 8};
      HostTransfers.copyIn(
          part,
          MemorySegment.ofArray(bytes),
          cuda.currentStream(buffer.device()).core(),
          cuda.staging());
      byte[] all = new byte[Math.toIntExact(buffer.byteSize())];
      buffer.copyTo(MemorySegment.ofArray(all));
      assertThat(all).startsWith(new byte[] {1, 1, 1}).containsSequence(1, 5, 6, 7, 8, 1);
      assertThat(all[18]).isEqualTo((byte) 5);
      MemorySegment host = part.hostMemory();
      assertThat(host == null ? 4 : host.byteSize()).isEqualTo(4);
      assertThat(part.hostAddress() - BufferBase.base(buffer).memory().hostAddress()).isEqualTo(18);
    }
    assertThat(pinned.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
  }

  /** Whoever saw it open before is told what a program has to open again. */
  @Test
  void memoryOfAClosedCuda_isNotUsed_whoeverOwnsIt() {
    CudaStream stream = cuda.device(0).createStream();
    Buffer own = MemoryResource.direct().allocate(BYTES, stream);
    Buffer theirs = cuda.device(0).wrap(own.address(), BYTES, own);
    for (Buffer buffer : List.of(own, cuda.allocate(BYTES), theirs, theirs.slice(8))) {
      Memory memory = BufferBase.base(buffer).memory();
      memory.checkOpen();
      memory.hold();
      memory.unhold();
    }
    cuda.close();
    for (Buffer buffer : List.of(own, theirs, theirs.slice(8))) {
      Memory memory = BufferBase.base(buffer).memory();
      assertThatThrownBy(memory::checkOpen).hasMessage("Cuda is closed");
      assertThatThrownBy(memory::hold).hasMessage("Cuda is closed");
    }
  }
}
