package io.cuvette.internal.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.BoxCopy;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.order.OpenStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Memory between the host and a device, in which others copy pieces. */
class StagingChunkTest {
  private static final int BYTES = 64;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final OpenStream stream =
      new OpenStream(EngineMemory.streamOf(cuda.device(0).nullStream()), false);
  private final Buffer buffer = cuda.allocate(BYTES);
  private final byte[] bytes = new byte[BYTES];
  private final AtomicInteger ends = new AtomicInteger();

  @AfterEach
  void close() {
    cuda.close();
  }

  private StagingChunk chunk(Buffer pinned) {
    return StagingChunk.pinned(
        EngineMemory.of(buffer), stream, EngineMemory.of(pinned), ends::incrementAndGet);
  }

  /** Whose it is by then nobody knows. */
  @Test
  void chunkWhoseMemoryWasGivenBack_isNotTouched() {
    for (boolean in : new boolean[] {true, false}) {
      HostParts host = HostParts.of("host", MemorySegment.ofArray(bytes), !in);
      PinnedBuffer pinned = cuda.allocatePinned(BYTES);
      StagingChunk chunk = chunk(pinned);
      assertThat(chunk.isPinned()).isTrue();
      assertThat(chunk.byteSize()).isEqualTo(BYTES);
      bytes[5] = 7;
      chunk.copy(host, 0, 0, true);
      assertThat(pinned.segment().get(ValueLayout.JAVA_BYTE, 5)).isEqualTo((byte) 7);
      pinned.close();
      assertThatThrownBy(() -> chunk.copy(host, 0, 0, in))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
      for (long rows : new long[] {1, 2}) {
        BoxCopy.Side side = new BoxCopy.Side(0, 16, rows);
        assertThatThrownBy(
                () -> {
                  if (in) {
                    chunk.send(0, side, 8, rows, 1);
                  } else {
                    chunk.fetch(0, side, 8, rows, 1);
                  }
                })
            .as("%d rows", rows)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("closed");
      }
    }
  }

  @Test
  void memoryThatTheHostDoesNotSee_isNoChunk_andGivenBack() {
    Buffer ofDevice = cuda.allocate(BYTES);
    assertThatThrownBy(() -> chunk(ofDevice)).isInstanceOf(NullPointerException.class);
    assertThat(ofDevice.isClosed()).isTrue();
    assertThat(ends).hasValue(0);
  }

  @Test
  void chunk_isGivenBackWithItsMemory_orIsOfItsOwn() {
    PinnedBuffer pinned = cuda.allocatePinned(BYTES);
    StagingChunk chunk = chunk(pinned);
    chunk.mark();
    chunk.awaitPast();
    assertThat(chunk.isPast()).isTrue();
    chunk.close();
    assertThat(pinned.isClosed()).isTrue();
    assertThat(ends).hasValue(1);
    StagingChunk own = StagingChunk.unlocked(EngineMemory.of(buffer), stream, BYTES);
    assertThat(own.isPinned()).isFalse();
    assertThat(own.byteSize()).isEqualTo(BYTES);
    own.close();
    assertThat(StagingChunk.unlocked(EngineMemory.of(buffer), stream, Long.MAX_VALUE).byteSize())
        .isEqualTo(HostParts.PIECE_BYTES);
  }
}
