package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.index.Seeds;
import io.cuvette.internal.ordered.OrderedBlock;
import io.cuvette.internal.ordered.OrderedBlocks;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
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

  /** Reachable: the collector takes back what is not. */
  private final List<Face> faces = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  private OrderedBlock block(long address) {
    faces.add(BufferKind.DEVICE.make(address, BYTES, stream.core()));
    return new OrderedBlock(
        faces.getLast(), resource.pool().memory(), address, BYTES, BYTES, stream.core());
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

  /** However new it is, and whichever others there are. */
  @Test
  void blockWhoseBufferTheCollectorFound_isForgotten_untilItIsTakenBack() {
    List<OrderedBlock> all = List.of(block(BYTES), block(2 * BYTES), block(3 * BYTES));
    all.forEach(blocks::add);
    for (OrderedBlock each : all) {
      assertThat(blocks.hasForgotten()).isFalse();
      each.clear(); // as the collector does
      assertThat(blocks.hasForgotten()).isTrue();
      assertThat(each.end()).isTrue();
    }
    assertThat(blocks.hasForgotten()).isFalse();
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

  /** The same goes for those that have to make room, however many that are. */
  @Test
  void idleBlocksWithoutRoom_areOnTheirWay_untilTheDriverHasThem() {
    List<OrderedBlock> all = new ArrayList<>();
    for (int i = 1; i <= 16; i++) {
      all.add(block(i * BYTES));
      blocks.add(all.getLast());
      assertThat(blocks.keep(all.getLast(), _ -> true)).isNull();
      assertThat(blocks.isGivingBack()).isFalse();
    }
    for (int i = 17; i < 20; i++) {
      OrderedBlock next = block(i * BYTES);
      blocks.add(next);
      OrderedBlock out = blocks.keep(next, _ -> true);
      assertThat(out).isSameAs(all.get(i - 17)).isNotSameAs(next);
      assertThat(blocks.isGivingBack()).isTrue();
      blocks.gaveBack();
      assertThat(blocks.isGivingBack()).isFalse();
    }
  }

  /** Against sets: those that are there, and those of them that are idle, the oldest first. */
  @Test
  void numbers_areThoseOfTheBlocksThere_whateverIsAddedKeptAndTaken() {
    Seeds.forEach(
        20,
        random -> {
          OrderedBlocks some = new OrderedBlocks();
          Set<OrderedBlock> there = new LinkedHashSet<>();
          List<OrderedBlock> idle = new ArrayList<>();
          for (int i = 1; i < 200; i++) {
            step(random, some, there, idle, i * BYTES);
            long live = there.stream().filter(each -> !each.isIdle).count();
            assertThat(some.liveBytes()).isEqualTo(live * BYTES);
            assertThat(some.isEmpty()).isEqualTo(there.isEmpty());
            assertThat(some.all()).containsExactlyInAnyOrderElementsOf(there);
            assertThat(some.isGivingBack()).isFalse();
          }
        });
  }

  private void step(
      SplittableRandom random,
      OrderedBlocks some,
      Set<OrderedBlock> there,
      List<OrderedBlock> idle,
      long address) {
    List<OrderedBlock> used = there.stream().filter(each -> !each.isIdle).toList();
    int what = used.isEmpty() ? 0 : random.nextInt(6);
    OrderedBlock any = used.isEmpty() ? block(address) : used.get(random.nextInt(used.size()));
    if (what < 2) {
      OrderedBlock next = block(address);
      some.add(next);
      there.add(next);
    } else if (what == 2) {
      assertThat(some.remove(any)).isTrue();
      there.remove(any);
    } else if (what == 3 && idle.size() < 16) {
      assertThat(some.keep(any, _ -> true)).isNull();
      idle.add(any);
    } else if (what == 4) {
      OrderedBlock taken = some.take(stream.state, BYTES);
      assertThat(taken).isSameAs(idle.isEmpty() ? null : idle.removeLast());
      if (taken != null && random.nextBoolean()) {
        some.add(taken); // it could not be used again
        assertThat(some.has(taken)).isTrue();
        assertThat(some.remove(taken)).isTrue();
      }
      there.remove(taken);
    } else if (!idle.isEmpty()) {
      OrderedBlock first = some.takeIdle(_ -> true);
      assertThat(first).isSameAs(idle.getFirst());
      assertThat(some.isGivingBack()).isTrue();
      idle.forEach(each -> assertThat(some.remove(each)).isTrue());
      some.gaveBack();
      there.removeAll(idle);
      idle.clear();
    }
  }

  /** Freed once, unless the driver said that nothing was done. */
  @Test
  void block_isFreedOnce_butTriedAgainWhereNothingWasDone() {
    OrderedBlock block = block(BYTES);
    AtomicInteger calls = new AtomicInteger();
    assertThatThrownBy(() -> block.free(() -> fail(calls, CudaStatus.NOT_PERMITTED)))
        .isInstanceOf(CudaException.class);
    block.free(calls::incrementAndGet);
    block.free(calls::incrementAndGet);
    assertThat(calls).hasValue(2);
    for (CudaStatus status : CudaStatus.values()) {
      AtomicInteger tries = new AtomicInteger();
      OrderedBlock other = block(2 * BYTES);
      assertThatThrownBy(() -> other.free(() -> fail(tries, status)))
          .isInstanceOf(CudaException.class);
      other.free(tries::incrementAndGet);
      boolean mayBeDone = status.losesContext() || status == CudaStatus.HOST_MEMORY_NOT_REGISTERED;
      assertThat(tries).as("after %s", status).hasValue(mayBeDone ? 1 : 2);
    }
  }

  private static void fail(AtomicInteger calls, CudaStatus status) {
    calls.incrementAndGet();
    throw new CudaException(status, "cuMemFreeAsync", "");
  }

  @Test
  void block_isOfTheMemoryThatGaveItAlone() {
    try (DeviceMemoryResource other =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
      OrderedBlock block = block(BYTES);
      assertThat(block.isOf(resource.pool().memory())).isTrue();
      assertThat(block.isOf(other.pool().memory())).isFalse();
    }
  }
}
