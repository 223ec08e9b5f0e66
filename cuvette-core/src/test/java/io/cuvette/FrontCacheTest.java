package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.FrontCache;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the blocks ready for threads that meet are, one by one and in the numbers. */
@Timeout(60)
class FrontCacheTest {
  private static final int SLOTS = 16;
  private static final int THREADS = 64;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL));
  private final CudaStream stream = cuda.device(0).nullStream();
  private final MemoryPool pool = new MemoryPool(cuda);
  private final FrontCache front = new FrontCache(System::nanoTime);
  private final FrontCache.Stripe stripe = front.mine();

  @AfterEach
  void close() {
    cuda.close();
  }

  /** Reachable: the collector takes back what is not. */
  private final List<Buffer> buffers = new ArrayList<>();

  private CachedBlock block(long bytes) {
    buffers.add(pool.allocate(bytes, stream));
    return (CachedBlock) ((BufferBase) buffers.getLast()).block();
  }

  private CachedBlock cached(long bytes) {
    CachedBlock block = block(bytes);
    stripe.lend(block);
    assertThat(block.end()).isTrue();
    assertThat(stripe.give(block)).isTrue();
    return block;
  }

  private static List<CachedBlock> all(@Nullable CachedBlock first) {
    List<CachedBlock> all = new ArrayList<>();
    for (CachedBlock block = first; block != null; block = (CachedBlock) block.next) {
      all.add(block);
    }
    return all;
  }

  private static BufferBase base(@Nullable Face buffer) {
    return BufferKind.base(Objects.requireNonNull(buffer));
  }

  private static CachedBlock block(@Nullable Face buffer) {
    return (CachedBlock) base(buffer).block();
  }

  @Test
  void blocksOfUpTo4Mebibytes_areKept() {
    assertThat(FrontCache.keeps(4 << 20)).isTrue();
    assertThat(FrontCache.keeps((4 << 20) + 512)).isFalse();
  }

  @Test
  void thread_hasOneStripe_andThreadsAreSpread() throws InterruptedException {
    assertThat(front.mine()).isSameAs(stripe);
    Set<FrontCache.Stripe> stripes = new HashSet<>();
    for (int i = 0; i < THREADS; i++) {
      Thread.ofVirtual().start(() -> stripes.add(front.mine())).join();
    }
    assertThat(stripes).hasSizeGreaterThan(3);
  }

  @Test
  void cachedBlock_isTakenForItsSizeAlone_theNewestFirst() {
    CachedBlock first = cached(512);
    CachedBlock other = cached(1024);
    CachedBlock last = cached(512);
    assertThat(stripe.take(2048, 2048, stream.core())).isNull();
    Face taken = stripe.take(512, 500, stream.core());
    assertThat(block(taken).address).isEqualTo(last.address);
    assertThat(block(taken).requestedBytes).isEqualTo(500);
    assertThat(block(stripe.take(512, 512, stream.core())).address).isEqualTo(first.address);
    assertThat(stripe.take(512, 512, stream.core())).isNull();
    assertThat(all(front.removeCached())).containsExactly(other);
    assertThat(front.removeCached()).isNull();
  }

  @Test
  void placeOfATakenBlock_isForTheNext() {
    for (int i = 0; i < 2 * SLOTS; i++) {
      CachedBlock _ = cached(512);
      buffers.add(base(stripe.take(512, 512, stream.core())).asBuffer());
    }
    assertThat(front.removeCached()).isNull();
  }

  @Test
  void takenBlock_isInUse_andAmongTheOpenObjects() {
    CachedBlock before = cached(512);
    int open = cuda.openObjects().size();
    Face taken = stripe.take(512, 512, stream.core());
    assertThat(cuda.openObjects()).hasSize(open + 1);
    assertThat(block(taken).stripe).isSameAs(stripe);
    assertThat(front.endAll()).containsExactly(block(taken)).doesNotContain(before);
  }

  @Test
  void numbers_areThoseOfTheBlocksInUse_overAllStripes() {
    CachedBlock one = block(1000);
    CachedBlock two = block(300);
    stripe.lend(one);
    stripe.lend(two);
    otherStripe().lend(block(20));
    assertThat(front.requestedBytes()).isEqualTo(1320);
    assertThat(front.allocations()).isEqualTo(3);
    assertThat(one.end()).isTrue();
    assertThat(stripe.give(one)).isTrue();
    assertThat(front.requestedBytes()).isEqualTo(320);
    assertThat(block(stripe.take(1024, 1024, stream.core())).requestedBytes).isEqualTo(1024);
    assertThat(front.requestedBytes()).isEqualTo(1344);
    assertThat(front.allocations()).isEqualTo(4);
  }

  private FrontCache.Stripe otherStripe() {
    List<FrontCache.Stripe> found = new ArrayList<>();
    while (found.isEmpty()) {
      Thread thread =
          Thread.ofPlatform()
              .start(() -> {
                if (front.mine() != stripe) {
                  found.add(front.mine());
                }
              });
      Await.until(() -> !thread.isAlive());
    }
    return found.getFirst();
  }

  @Test
  void fullStripe_refusesABlock_whichIsNotInUseAnyMore() {
    for (int i = 0; i < SLOTS; i++) {
      CachedBlock _ = cached(512);
    }
    CachedBlock one = block(512);
    stripe.lend(one);
    assertThat(one.end()).isTrue();
    assertThat(stripe.give(one)).isFalse();
    assertThat(front.requestedBytes()).isZero();
    Face taken = stripe.take(512, 512, stream.core());
    assertThat(front.endAll()).containsExactly(block(taken));
    assertThat(all(front.removeCached())).hasSize(SLOTS - 1).doesNotContain(one);
  }

  @Test
  void blocksInUse_areListed_whicheverWasGivenBack() {
    List<CachedBlock> blocks = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      blocks.add(block(512));
      stripe.lend(blocks.get(i));
    }
    for (int i : new int[] {4, 0, 2}) {
      assertThat(stripe.give(blocks.get(i))).isTrue();
      assertThat(blocks.get(i).older).isNull();
      assertThat(blocks.get(i).newer).isNull();
    }
    assertThat(front.endAll()).containsExactly(blocks.get(3), blocks.get(1));
  }

  @Test
  void afterTheEnd_nothingIsGivenOut() {
    CachedBlock _ = cached(512);
    assertThat(front.endAll()).isEmpty();
    CachedBlock late = block(512);
    assertThatThrownBy(() -> stripe.lend(late)).hasMessage("the pool is closed");
    assertThatThrownBy(() -> stripe.take(512, 512, stream.core())).hasMessage("the pool is closed");
    assertThat(front.allocations()).isEqualTo(1);
    assertThatThrownBy(() -> otherStripe().lend(late)).hasMessage("the pool is closed");
  }

  @Test
  void forgottenBlock_isFoundInAnyStripe_andOthersAreNot() {
    CachedBlock first = block(512);
    CachedBlock second = block(512);
    FrontCache.Stripe other = otherStripe();
    other.lend(first);
    other.lend(second);
    assertThat(front.hasForgotten()).isFalse();
    first.clear(); // as the collector does
    assertThat(front.hasForgotten()).isTrue();
    assertThat(first.end()).isTrue();
    assertThat(front.hasForgotten()).isFalse();
  }
}
