package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.lifetime.Lifetime;
import io.cuvette.internal.ordered.IdleBlocks;
import io.cuvette.internal.ordered.StreamOrderedLifetime;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
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

  private static List<Lifetime> all(@Nullable Lifetime first) {
    List<Lifetime> all = new ArrayList<>();
    for (Lifetime block = first; block != null; block = block.next) {
      all.add(block);
    }
    return all;
  }

  @Test
  void newestBlockOfTheSizeAndTheStream_isTakenOnce() {
    StreamOrderedLifetime old = block(one, MIB);
    StreamOrderedLifetime young = block(one, MIB);
    for (StreamOrderedLifetime each : List.of(old, block(two, MIB), block(one, 2 * MIB), young)) {
      assertThat(idle.put(each)).isNull();
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
      assertThat(idle.put(blocks.getLast())).isNull();
    }
    assertThat(all(idle.put(block(one, 512)))).containsExactly(blocks.getFirst());
  }

  @Test
  void bytesBeyondTheMost_putTheOldestOut_asManyAsNeeded() {
    StreamOrderedLifetime first = block(one, 20 * MIB);
    StreamOrderedLifetime second = block(one, 20 * MIB);
    StreamOrderedLifetime third = block(one, 24 * MIB);
    assertThat(idle.put(first)).isNull();
    assertThat(idle.put(second)).isNull();
    assertThat(idle.put(third)).as("64 MiB are there now").isNull();
    assertThat(all(idle.put(block(one, 40 * MIB)))).containsExactly(first, second);
    assertThat(idle.take(one.state, 24 * MIB)).isSameAs(third);
    assertThat(idle.put(block(one, 24 * MIB))).as("what was taken left its bytes").isNull();
  }

  @Test
  void blocksOfSomeStreams_areTakenOut_theOthersStay() {
    StreamOrderedLifetime first = block(one, MIB);
    StreamOrderedLifetime other = block(two, MIB);
    StreamOrderedLifetime last = block(one, 2 * MIB);
    List.of(first, other, last).forEach(idle::put);
    assertThat(all(idle.takeAll(stream -> stream == one.state))).containsExactly(first, last);
    assertThat(all(idle.takeAll(_ -> true))).containsExactly(other);
    assertThat(idle.isEmpty()).isTrue();
  }
}
