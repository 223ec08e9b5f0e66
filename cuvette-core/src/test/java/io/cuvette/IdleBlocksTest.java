package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.index.Seeds;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.ordered.IdleBlocks;
import io.cuvette.internal.ordered.OrderedBlock;
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

  /** Reachable: the collector takes back what is not. */
  private final List<DeviceBuffer> buffers = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  private OrderedBlock block(CudaStream stream, long bytes) {
    buffers.add(resource.allocate(bytes, stream));
    return (OrderedBlock) buffers.getLast().block();
  }

  private static List<Ending> all(@Nullable Ending first) {
    List<Ending> all = new ArrayList<>();
    for (Ending block = first; block != null; block = block.next) {
      all.add(block);
    }
    return all;
  }

  @Test
  void newestBlockOfTheSizeAndTheStream_isTakenOnce() {
    OrderedBlock old = block(one, MIB);
    OrderedBlock young = block(one, MIB);
    for (OrderedBlock each : List.of(old, block(two, MIB), block(one, 2 * MIB), young)) {
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
    List<OrderedBlock> blocks = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      blocks.add(block(one, 512));
      assertThat(idle.put(blocks.getLast())).isNull();
    }
    assertThat(all(idle.put(block(one, 512)))).containsExactly(blocks.getFirst());
  }

  @Test
  void bytesBeyondTheMost_putTheOldestOut_asManyAsNeeded() {
    OrderedBlock first = block(one, 20 * MIB);
    OrderedBlock second = block(one, 20 * MIB);
    OrderedBlock third = block(one, 24 * MIB);
    assertThat(idle.put(first)).isNull();
    assertThat(idle.put(second)).isNull();
    assertThat(idle.put(third)).as("64 MiB are there now").isNull();
    assertThat(all(idle.put(block(one, 40 * MIB)))).containsExactly(first, second);
    assertThat(idle.take(one.state, 24 * MIB)).isSameAs(third);
    assertThat(idle.put(block(one, 24 * MIB))).as("what was taken left its bytes").isNull();
  }

  @Test
  void blocksOfSomeStreams_areTakenOut_theOthersStay() {
    OrderedBlock first = block(one, MIB);
    OrderedBlock other = block(two, MIB);
    OrderedBlock last = block(one, 2 * MIB);
    List.of(first, other, last).forEach(idle::put);
    assertThat(all(idle.takeAll(stream -> stream == one.state))).containsExactly(first, last);
    assertThat(all(idle.takeAll(_ -> true))).containsExactly(other);
    assertThat(idle.isEmpty()).isTrue();
  }

  /** Against a list: as many of the newest as there is room for, in bytes and in number. */
  @Test
  void whatStays_isTheNewestThereIsRoomFor() {
    long[] sizes = {512, MIB, 3 * MIB, 7 * MIB, 20 * MIB, 64 * MIB};
    List<OrderedBlock> all = new ArrayList<>();
    for (CudaStream each : List.of(one, two)) {
      for (int i = 0; i < 30; i++) {
        all.add(block(each, sizes[i % sizes.length]));
      }
    }
    Seeds.forEach(
        30,
        random -> {
          IdleBlocks some = new IdleBlocks();
          List<OrderedBlock> kept = new ArrayList<>();
          List<OrderedBlock> outside = new ArrayList<>(all);
          int mostSize = random.nextInt(1, sizes.length + 1);
          for (int i = 0; i < 200; i++) {
            OrderedBlock next = outside.remove(random.nextInt(outside.size()));
            CudaStream of = random.nextBoolean() ? one : two;
            if (random.nextInt(5) > 0 && next.blockBytes() <= sizes[mostSize - 1]) {
              kept.add(next);
              List<OrderedBlock> over = removeOver(kept);
              assertThat(all(some.put(next))).containsExactlyElementsOf(over);
              outside.addAll(over);
            } else {
              outside.add(next);
              OrderedBlock taken = newest(kept, of, next.blockBytes());
              assertThat(some.take(of.state, next.blockBytes())).isSameAs(taken);
              if (taken != null) {
                kept.remove(taken);
                outside.add(taken);
              }
            }
            assertThat(some.isEmpty()).isEqualTo(kept.isEmpty());
          }
          assertThat(all(some.takeAll(_ -> true))).containsExactlyElementsOf(kept);
        });
  }

  private static List<OrderedBlock> removeOver(List<OrderedBlock> kept) {
    List<OrderedBlock> over = new ArrayList<>();
    while (kept.size() > 16
        || kept.stream().mapToLong(OrderedBlock::blockBytes).sum() > IdleBlocks.MAX_BLOCK_BYTES) {
      over.add(kept.removeFirst());
    }
    return over;
  }

  private static @Nullable OrderedBlock newest(List<OrderedBlock> kept, CudaStream of, long bytes) {
    return kept.reversed().stream()
        .filter(each -> each.home == of.state && each.blockBytes() == bytes)
        .findFirst()
        .orElse(null);
  }
}
