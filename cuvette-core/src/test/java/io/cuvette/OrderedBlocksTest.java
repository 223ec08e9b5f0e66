package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.ordered.OrderedBlock;
import io.cuvette.internal.ordered.OrderedBlocks;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The blocks that a pool of the driver has lent: each is one until it is removed, once. */
class OrderedBlocksTest {
  private static final long BYTES = 512;
  private static final int[][] ORDERS = {
    {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}
  };

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream stream = cuda.device(0).createStream();
  private final DeviceMemoryResource resource =
      new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
  private final OrderedBlocks blocks = new OrderedBlocks();

  @AfterEach
  void close() {
    cuda.close();
  }

  private OrderedBlock block(long address) {
    return new OrderedBlock(
        BufferKind.DEVICE.make(address, BYTES, stream.core()),
        resource.pool().memory(),
        address,
        BYTES,
        BYTES,
        stream.core());
  }

  @Test
  void block_isRemovedOnce_inWhicheverOrder() {
    for (int[] order : ORDERS) {
      List<OrderedBlock> all = List.of(block(BYTES), block(2 * BYTES), block(3 * BYTES));
      all.forEach(blocks::add);
      for (int i = 0; i < order.length; i++) {
        OrderedBlock next = all.get(order[i]);
        assertThat(blocks.isEmpty()).isFalse();
        assertThat(blocks.has(next)).isTrue();
        assertThat(blocks.remove(next)).isTrue();
        assertThat(blocks.remove(next)).isFalse();
        assertThat(blocks.has(next)).isFalse();
        assertThat(blocks.liveBytes()).isEqualTo((2 - i) * BYTES);
      }
      assertThat(blocks.isEmpty()).isTrue();
    }
  }

  /** The driver does not have it yet: who is short of memory waits for that. */
  @Test
  void idleBlockThatIsTakenToBeFreed_isOnItsWay_untilTheDriverHasIt() {
    OrderedBlock block = block(BYTES);
    blocks.add(block);
    assertThat(blocks.takeIdle(_ -> true)).isNull();
    assertThat(blocks.isGivingBack()).isFalse();
    assertThat(blocks.keep(block, _ -> false)).isSameAs(block);
    assertThat(blocks.liveBytes()).isEqualTo(BYTES);
    assertThat(blocks.keep(block, _ -> true)).isNull();
    assertThat(blocks.liveBytes()).isZero();
    assertThat(blocks.takeIdle(_ -> false)).isNull();
    assertThat(blocks.isGivingBack()).isFalse();
    assertThat(blocks.takeIdle(_ -> true)).isSameAs(block);
    assertThat(blocks.isGivingBack()).isTrue();
    blocks.gaveBack();
    assertThat(blocks.isGivingBack()).isFalse();
    assertThat(blocks.all()).containsExactly(block);
  }
}
