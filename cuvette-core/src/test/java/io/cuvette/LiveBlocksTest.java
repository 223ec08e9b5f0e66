package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.base.SpinLock;
import io.cuvette.internal.devicepool.DevicePool;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.LiveBlocks;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Blocks by number, however many there are. */
class LiveBlocksTest {
  private static final int SEGMENT = 1 << 12;
  private static final int[] NUMBERS = {
    0, 1, 63, 64, 65, 127, 128, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT - 1, 3 * SEGMENT + 5
  };

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final MemoryPool pool = new MemoryPool(cuda);
  private final LiveBlocks live = new LiveBlocks();
  private final List<Buffer> buffers = new ArrayList<>();
  private final List<CachedBlock> blocks = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  private void putAll() {
    for (int number : NUMBERS) {
      buffers.add(pool.allocate(512));
      blocks.add((CachedBlock) ((BufferBase) buffers.getLast()).block());
      live.put(number, blocks.getLast());
    }
  }

  private List<CachedBlock> all() {
    List<CachedBlock> all = new ArrayList<>();
    live.forEach(all::add);
    return all;
  }

  @Test
  void allBlocks_areFoundInOrder_untilTheyAreTakenOut() {
    putAll();
    assertThat(all()).containsExactlyElementsOf(blocks);
    assertThat(live.segments()).isEqualTo(4);
    for (int i = 0; i < NUMBERS.length; i += 2) {
      live.put(NUMBERS[i], null);
    }
    assertThat(all())
        .containsExactly(
            blocks.get(1),
            blocks.get(3),
            blocks.get(5),
            blocks.get(7),
            blocks.get(9),
            blocks.get(11));
    live.clear();
    assertThat(all()).isEmpty();
  }

  /** There may be no Java heap for it when a block is taken out. */
  @Test
  void blockThatWasNeverThere_isTakenOutWithoutRoomForIt() {
    putAll();
    LiveBlocks few = new LiveBlocks();
    few.put(SEGMENT - 1, blocks.getFirst());
    few.put(SEGMENT, null);
    few.put(2 * SEGMENT, null);
    assertThat(few.segments()).isEqualTo(1);
  }

  @Test
  void forgottenBlock_isFoundInItsSegmentAlone() {
    putAll();
    for (int i = 0; i < live.segments(); i++) {
      assertThat(live.hasForgotten(i)).isFalse();
    }
    assertThat(live.hasForgotten(new SpinLock())).isFalse();
    blocks.get(9).clear(); // as the collector does
    assertThat(live.hasForgotten(new SpinLock())).isTrue();
    assertThat(live.hasForgotten(0)).isFalse();
    assertThat(live.hasForgotten(1)).isTrue();
    assertThat(live.hasForgotten(2)).isFalse();
  }

  private static CachedBlock block(Buffer buffer) {
    return (CachedBlock) ((BufferBase) buffer).block();
  }

  /** An elastic pool has small and large blocks apart. */
  @Test
  void forgottenBlockOfAPool_isSeen_whateverItsSize() {
    try (ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      for (MemoryResource from : List.<MemoryResource>of(pool, elastic)) {
        for (long bytes : new long[] {512, 8 << 20}) {
          Buffer buffer = from.allocate(bytes, cuda.currentDevice().nullStream());
          CachedBlock block = block(buffer);
          DevicePool of = (DevicePool) block.arena.of;
          assertThat(of.hasForgotten()).isFalse();
          block.clear(); // as the collector does
          assertThat(of.hasForgotten()).as("%d bytes of %s", bytes, from).isTrue();
          buffer.close();
          assertThat(of.hasForgotten()).isFalse();
        }
      }
    }
  }

  /** A program can keep pools of a Cuda that has ended, and not what was in them. */
  @Test
  void poolOfAnEndedCuda_keepsNoBlocks() {
    ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
    List<WeakReference<CachedBlock>> all = new ArrayList<>();
    for (MemoryResource from : List.<MemoryResource>of(pool, elastic)) {
      for (long bytes : new long[] {512, 8 << 20}) {
        all.add(
            new WeakReference<>(block(from.allocate(bytes, cuda.currentDevice().nullStream()))));
      }
    }
    cuda.close();
    for (int i = 0; i < 20 && !all.stream().allMatch(each -> each.refersTo(null)); i++) {
      System.gc();
    }
    assertThat(all).allMatch(each -> each.refersTo(null));
    assertThat(elastic.isClosed()).isTrue();
  }
}
