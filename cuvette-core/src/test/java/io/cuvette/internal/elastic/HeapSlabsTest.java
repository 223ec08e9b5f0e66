package io.cuvette.internal.elastic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EngineMemory;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.space.Growth;
import io.cuvette.internal.space.HeapCensus;
import io.cuvette.internal.space.Pieces;
import io.cuvette.internal.space.Space;
import io.cuvette.internal.streamcache.CachedBlock;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What stripes take from an elastic heap is counted there, and is free since they say. */
class HeapSlabsTest {
  private static final long PAGE = 2L << 20;
  private static final int LARGE = 1;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
  private final Buffer buffer = pool.allocate(8 * PAGE);
  private final Memory memory = EngineMemory.of(buffer);
  private final ElasticCache cache = (ElasticCache) ((CachedBlock) memory.block()).arena;
  private final ElasticBooks books = new ElasticBooks();
  private long now;
  private final Pieces pieces = new Pieces(memory.address(), memory.byteSize(), PAGE);
  private final Spaces spaces = new Spaces(memory, PAGE, pieces, () -> now);
  private final HeapSlabs slabs = new HeapSlabs(spaces, books, cache, LARGE);

  @AfterEach
  void close() {
    buffer.close();
    cuda.close();
  }

  /** Maps pages, which are free then. */
  private int freePages(int pages) {
    Space space = spaces.of(LARGE);
    int tag = spaces.newTag();
    assertThat(tag).isEqualTo(cache.tag);
    long units = Spaces.units(pages * PAGE);
    Growth growth = space.begin(space.place(units, tag), units);
    long _ =
        growth.eachHole((at, bytes) -> {
          pieces.reserve(at, bytes);
          pieces.add(at, bytes);
          return bytes;
        });
    space.publish(growth);
    cache.live++;
    spaces.give(cache, LARGE, growth.block(), now);
    return space.find(units, tag);
  }

  /** Else a pool would keep a list of free memory for each stream that it ever had. */
  @Test
  void tagOfAStreamThatEnded_isTheNextOnes() {
    int first = spaces.newTag();
    int second = spaces.newTag();
    spaces.endTag(first);
    assertThat(spaces.newTag()).isEqualTo(first);
    assertThat(spaces.newTag()).isGreaterThan(second);
  }

  @Test
  void eachPartOfASlab_isOneBlockInUse_untilItIsGivenBack() {
    int slab = freePages(2);
    slabs.take(slab, 2 * PAGE);
    int second = slabs.cut(slab, PAGE);
    HeapCensus census = new HeapCensus();
    books.write(census);
    assertThat(census.usedBlocks).isEqualTo(2);
    assertThat(census.usedBytes).isEqualTo(2 * PAGE);
    slabs.give(slab, PAGE, 0);
    slabs.give(second, PAGE, 0);
    books.write(census);
    assertThat(census.usedBlocks).isZero();
    assertThat(census.usedBytes).isZero();
  }

  @Test
  void slab_isIdleSinceTheStripeHadItFree() {
    int slab = freePages(1);
    slabs.take(slab, PAGE);
    now = 9;
    slabs.give(slab, PAGE, 5);
    spaces.done(cache.tag, spaces.sequence());
    assertThat(spaces.carve(PAGE, OptionalLong.of(5))).isNull();
    assertThat(spaces.carve(PAGE, OptionalLong.of(4))).isNotNull();
  }

  @Test
  void pieceThatIsGoneFromBelowAFreeRun_isFound() {
    int run = freePages(2);
    assertThatCode(spaces::assertValid).doesNotThrowAnyException();
    pieces.remove(spaces.of(LARGE).address(run), 2 * PAGE);
    assertThatThrownBy(spaces::assertValid).isInstanceOf(AssertionError.class);
  }
}
