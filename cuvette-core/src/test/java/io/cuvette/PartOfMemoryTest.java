package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

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
}
