package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Which blocks stay, which go, and which one is given to whom. */
class IdleBlocksTest {
  private static final long MIB = 1L << 20;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream one = cuda.device(0).createStream();
  private final CudaStream two = cuda.device(0).createStream();
  private final DeviceMemoryResource resource =
      new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
  private final IdleBlocks idle = new IdleBlocks();

  @AfterEach
  void close() {
    cuda.close();
  }

  private StreamOrderedLifetime block(CudaStream stream, long bytes) {
    return (StreamOrderedLifetime) resource.allocate(bytes, stream).lifetime();
  }

  @Test
  void newestBlockOfTheSizeAndTheStream_isTakenOnce() {
    StreamOrderedLifetime old = block(one, MIB);
    StreamOrderedLifetime young = block(one, MIB);
    for (StreamOrderedLifetime each : List.of(old, block(two, MIB), block(one, 2 * MIB), young)) {
      assertThat(idle.put(each)).isEmpty();
    }
    assertThat(idle.take(one.state, MIB)).isSameAs(young);
    assertThat(idle.take(one.state, MIB)).isSameAs(old);
    assertThat(idle.take(one.state, MIB)).isNull();
    assertThat(idle.take(two.state, 2 * MIB)).isNull();
    assertThat(idle.isEmpty()).isFalse();
  }

  @Test
  void seventeenthBlock_takesThePlaceOfTheOldest() {
    List<StreamOrderedLifetime> blocks = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      blocks.add(block(one, 512));
      assertThat(idle.put(blocks.getLast())).isEmpty();
    }
    assertThat(idle.put(block(one, 512))).containsExactly(blocks.getFirst());
  }

  @Test
  void bytesBeyondTheMost_putTheOldestOut_asManyAsNeeded() {
    StreamOrderedLifetime first = block(one, 20 * MIB);
    StreamOrderedLifetime second = block(one, 20 * MIB);
    StreamOrderedLifetime third = block(one, 24 * MIB);
    assertThat(idle.put(first)).isEmpty();
    assertThat(idle.put(second)).isEmpty();
    assertThat(idle.put(third)).as("64 MiB are there now").isEmpty();
    assertThat(idle.put(block(one, 40 * MIB))).containsExactly(first, second);
    assertThat(idle.take(one.state, 24 * MIB)).isSameAs(third);
    assertThat(idle.put(block(one, 24 * MIB))).as("what was taken left its bytes").isEmpty();
  }

  @Test
  void blocksOfSomeStreams_areTakenOut_theOthersStay() {
    StreamOrderedLifetime first = block(one, MIB);
    StreamOrderedLifetime other = block(two, MIB);
    StreamOrderedLifetime last = block(one, 2 * MIB);
    List.of(first, other, last).forEach(idle::put);
    assertThat(idle.takeAll(stream -> stream == one.state)).containsExactly(first, last);
    assertThat(idle.takeAll(_ -> true)).containsExactly(other);
    assertThat(idle.isEmpty()).isTrue();
  }
}
