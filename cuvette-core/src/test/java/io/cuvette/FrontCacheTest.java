package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.pool.Slabs;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is kept ready for threads that meet, one by one and in the numbers. */
@Timeout(60)
class FrontCacheTest {
  private static final long MIB = 1 << 20;
  private static final int THREADS = 64;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL));
  private final CudaStream stream = cuda.device(0).nullStream();
  private final MemoryPool pool = new MemoryPool(cuda);
  private final Buffer whole = pool.allocate(64 * MIB, stream);
  private final Memory chunk = ((BufferBase) whole).memory();

  /** What the front takes its memory from, in place of the pool. */
  private final BlockArena arena = new BlockArena();

  private final Slabs.Source source =
      new Slabs.Source() {
        @Override
        public void take(int block, long bytes) {
          arena.take(block, bytes);
        }

        @Override
        public int cut(int block, long bytes) {
          return arena.cut(block, bytes);
        }

        @Override
        public void give(int block, long bytes, long time) {
          assertThat(arena.bytes(block)).isEqualTo(bytes);
          int _ = arena.give(block);
          freeSince = time;
        }
      };

  /** What the arena was told last. */
  private long freeSince;

  private final FrontCache front =
      new FrontCache(((CachedBlock) chunk.block()).arena, source, source);
  private final FrontCache.Stripe stripe = front.mine();

  /** Reachable: the collector takes back what is not. */
  private final List<Buffer> buffers = new ArrayList<>();

  FrontCacheTest() {
    int _ = arena.add(chunk.address(), 64 * MIB, 0);
  }

  @AfterEach
  void close() {
    assertThat(front.assertValid()).isTrue();
    arena.assertValid();
    cuda.close();
  }

  private static CachedBlock block(@Nullable Face buffer) {
    return (CachedBlock) BufferKind.base(Objects.requireNonNull(buffer)).block();
  }

  private CachedBlock kept(@Nullable Face buffer) {
    buffers.add(BufferKind.base(Objects.requireNonNull(buffer)).asBuffer());
    return block(buffer);
  }

  /** Takes a block of a stripe's own memory, or else of the arena's. */
  private CachedBlock take(FrontCache.Stripe from, long bytes) {
    long rounded = BlockArena.roundUp(bytes);
    Face ready = from.take(rounded, bytes, stream.core());
    return kept(ready != null ? ready : takeFromArena(from, bytes));
  }

  private Face takeFromArena(FrontCache.Stripe to, long bytes) {
    long rounded = BlockArena.roundUp(bytes);
    int free = arena.find(rounded);
    return to.takeFrom(
        free, arena.bytes(free), chunk, arena.address(free), rounded, bytes, stream.core());
  }

  private static void give(CachedBlock block) {
    assertThat(block.end()).isTrue();
    assertThat(block.giveToStripe()).isTrue();
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
  void slab_isTakenOnce_forBlocksOfAnySize() {
    CachedBlock first = take(stripe, MIB);
    assertThat(arena.usedBytes()).isEqualTo(8 * MIB);
    CachedBlock second = take(stripe, 3 * MIB);
    assertThat(second.address).isEqualTo(first.address + MIB);
    give(first);
    give(second);
    assertThat(take(stripe, 4 * MIB).address).isEqualTo(first.address);
    assertThat(arena.usedBytes()).isEqualTo(8 * MIB);
  }

  @Test
  void smallBlocks_haveSlabsOfTheirOwn() {
    CachedBlock small = take(stripe, 512);
    assertThat(arena.usedBytes()).isEqualTo(256 << 10);
    CachedBlock large = take(stripe, 64 << 10);
    assertThat(arena.usedBytes()).isEqualTo((256 << 10) + 8 * MIB);
    assertThat(take(stripe, 1).address).isEqualTo(small.address + 512);
    assertThat(take(stripe, 65 << 10).address).isEqualTo(large.address + (64 << 10));
  }

  /** Cutting it would be as if there were no larger blocks to be had. */
  @Test
  void partThatIsMuchLarger_isCutOnlyIfTheCacheHasNoSmaller() {
    CachedBlock first = take(stripe, 3 * MIB);
    CachedBlock between = take(stripe, MIB);
    CachedBlock other = take(stripe, 4 * MIB);
    give(first);
    give(other);
    assertThat(stripe.take(MIB, MIB, stream.core())).isNull();
    assertThat(kept(stripe.take(3 * MIB, 3 * MIB, stream.core())).address).isEqualTo(first.address);
    assertThat(kept(stripe.take(MIB, MIB, stream.core())).address)
        .as("what is newest")
        .isEqualTo(other.address);
    give(between);
    assertThat(kept(takeFromArena(stripe, MIB)).address)
        .as("smaller than what the arena has")
        .isEqualTo(between.address);
    assertThat(arena.usedBytes()).as("no slab was taken for that").isEqualTo(8 * MIB);
  }

  /** Both are there: best fit is over both, and of two alike no slab is taken. */
  @ParameterizedTest
  @CsvSource({"4, false", "2, true"})
  void partThatIsLargerThanWhatTheCacheHas_isLeftWhole(int mebibytes, boolean isTaken) {
    CachedBlock first = take(stripe, mebibytes * MIB);
    CachedBlock _ = take(stripe, MIB);
    CachedBlock second = take(stripe, 2 * MIB);
    CachedBlock _ = take(stripe, (5 - mebibytes) * MIB);
    give(second);
    assertThat(front.release(2 * MIB)).isTrue();
    give(first);
    assertThat(kept(takeFromArena(stripe, MIB)).address)
        .isEqualTo(isTaken ? first.address : second.address);
    assertThat(arena.usedBytes()).isEqualTo((isTaken ? 6 : 8) * MIB);
  }

  @Test
  void wantedBlock_comesBackAlone() {
    CachedBlock first = take(stripe, MIB);
    CachedBlock second = take(stripe, 2 * MIB);
    CachedBlock third = take(stripe, MIB);
    CachedBlock fourth = take(stripe, 4 * MIB);
    give(second);
    give(fourth);
    assertThat(front.release(2 * MIB)).isTrue();
    assertThat(arena.usedBytes()).isEqualTo(6 * MIB);
    int found = arena.find(2 * MIB);
    assertThat(arena.address(found)).isEqualTo(second.address);
    assertThat(arena.bytes(found)).isEqualTo(2 * MIB);
    give(first);
    give(third);
    assertThat(front.releaseAll()).isTrue();
    assertThat(front.releaseAll()).isFalse();
    assertThat(arena.usedBytes()).isZero();
    assertThat(arena.releasableBytes()).isEqualTo(64 * MIB);
  }

  @Test
  void all_areTheSmallAndTheLarge() {
    CachedBlock small = take(stripe, 4096);
    CachedBlock large = take(stripe, MIB);
    give(small);
    give(large);
    assertThat(front.releaseAll()).isTrue();
    assertThat(arena.usedBytes()).isZero();
    assertThat(front.assertValid()).as("numbers of slabs are free again").isTrue();
  }

  @Test
  void wantedBlock_isTheClosestOverAllStripes_orNone() {
    FrontCache.Stripe other = otherStripe();
    CachedBlock far = take(stripe, 4 * MIB);
    CachedBlock beside = take(stripe, 4 * MIB);
    CachedBlock close = take(other, 2 * MIB);
    CachedBlock rest = take(other, 6 * MIB);
    give(far);
    give(close);
    assertThat(front.release(3 * MIB / 2)).isTrue();
    assertThat(arena.address(arena.find(3 * MIB / 2))).isEqualTo(close.address);
    give(rest);
    give(beside);
    assertThat(front.release(16 * MIB)).as("none has it").isFalse();
    assertThat(front.releaseAll()).isTrue();
    assertThat(arena.usedBytes()).isZero();
    assertThat(front.release(512)).isFalse();
  }

  @Test
  void wantedBlock_isTheClosest_whicheverStripeIsLookedAtFirst() {
    FrontCache.Stripe other = otherStripe();
    CachedBlock close = take(stripe, 3 * MIB);
    CachedBlock _ = take(stripe, 5 * MIB);
    CachedBlock far = take(other, 4 * MIB);
    CachedBlock _ = take(other, 4 * MIB);
    give(close);
    give(far);
    assertThat(front.release(MIB)).isTrue();
    assertThat(arena.address(arena.find(MIB))).isEqualTo(close.address);
  }

  /** The time, after so long that it is read anew and not as it was told before. */
  private static long laterTime() {
    long start = System.nanoTime();
    Await.until(() -> System.nanoTime() - start > 1_000_000);
    return System.nanoTime();
  }

  /** What is idle for some time can be released. */
  @ParameterizedTest
  @ValueSource(longs = {512, MIB})
  void whatComesBack_isFreeSinceTheLastBlockWasClosed(long bytes) {
    CachedBlock one = take(stripe, bytes);
    CachedBlock two = take(stripe, bytes);
    CachedBlock between = take(stripe, bytes);
    CachedBlock three = take(stripe, bytes);
    long start = laterTime();
    give(one);
    long closedOne = laterTime();
    assertThat(front.release(bytes)).isTrue();
    assertThat(freeSince).isBetween(start, closedOne);
    give(three);
    long closedThree = laterTime();
    assertThat(front.releaseAll()).isTrue();
    assertThat(freeSince).isBetween(closedOne, closedThree);
    giveOnAnotherThread(two);
    assertThat(front.releaseAll()).isTrue();
    assertThat(freeSince).as("when it was taken in").isGreaterThan(closedThree);
    give(between);
  }

  private void giveOnAnotherThread(CachedBlock block) {
    Thread thread = Thread.ofPlatform().start(() -> give(block));
    Await.until(() -> !thread.isAlive());
  }

  /** It would have to fetch what the stripe's thread works on. */
  @Test
  void blockClosedByAnotherThread_isThereForTheNextMiss_andCountsAsFree() {
    CachedBlock first = take(stripe, 3 * MIB);
    CachedBlock second = take(stripe, 5 * MIB);
    long used = arena.usedBytes();
    giveOnAnotherThread(first);
    assertThat(kept(stripe.take(3 * MIB, 3 * MIB, stream.core())).address).isEqualTo(first.address);
    giveOnAnotherThread(second);
    assertThat(front.requestedBytes()).isEqualTo(3 * MIB);
    CachedBlock third = kept(stripe.take(5 * MIB, 5 * MIB, stream.core()));
    giveOnAnotherThread(third);
    assertThat(front.release(4 * MIB)).isTrue();
    assertThat(arena.usedBytes()).isEqualTo(used - 5 * MIB);
    CachedBlock fourth = take(stripe, MIB);
    giveOnAnotherThread(fourth);
    assertThat(front.releaseAll()).isTrue();
    assertThat(arena.usedBytes()).isEqualTo(3 * MIB);
  }

  @Test
  void blockClosedByAnotherThread_isNotInUse_andServesBeforeANewSlab() {
    CachedBlock first = take(stripe, 4 * MIB);
    CachedBlock second = take(stripe, 4 * MIB);
    giveOnAnotherThread(first);
    assertThat(front.blocksBesideSlabs() + arena.usedBlocks()).isEqualTo(1);
    CachedBlock third = kept(stripe.take(4 * MIB, 4 * MIB, stream.core()));
    giveOnAnotherThread(third);
    CachedBlock fourth = kept(takeFromArena(stripe, MIB));
    assertThat(fourth.address).isEqualTo(first.address);
    assertThat(arena.usedBytes()).isEqualTo(8 * MIB);
    giveOnAnotherThread(fourth);
    assertThat(front.endAll()).containsExactly(second);
  }

  @Test
  void takenBlock_isInUse_andAmongTheOpenObjects() {
    int open = cuda.openObjects().size();
    CachedBlock taken = take(stripe, 512);
    assertThat(cuda.openObjects()).hasSize(open + 1);
    assertThat(taken.stripe).isSameAs(stripe);
    give(take(stripe, 512));
    assertThat(front.endAll()).as("of those in use").containsExactly(taken);
  }

  @Test
  void numbers_areThoseOfTheBlocksInUse_overAllStripes() {
    CachedBlock one = take(stripe, 1000);
    CachedBlock _ = take(stripe, 300);
    CachedBlock _ = take(otherStripe(), 20);
    assertThat(front.requestedBytes()).isEqualTo(1320);
    assertThat(front.allocations()).isEqualTo(3);
    assertThat(front.blocksBesideSlabs() + arena.usedBlocks()).isEqualTo(3);
    give(one);
    assertThat(front.requestedBytes()).isEqualTo(320);
    assertThat(front.releaseAll()).isTrue();
    assertThat(arena.usedBytes()).isEqualTo(1024);
    assertThat(front.blocksBesideSlabs() + arena.usedBlocks()).isEqualTo(2);
    assertThat(take(stripe, 1024).requestedBytes).isEqualTo(1024);
    assertThat(front.requestedBytes()).isEqualTo(1344);
    assertThat(front.allocations()).isEqualTo(4);
    CachedBlock _ = take(stripe, MIB);
    CachedBlock _ = take(stripe, MIB);
    assertThat(front.blocksBesideSlabs() + arena.usedBlocks()).as("large ones").isEqualTo(5);
  }

  @Test
  void afterTheEnd_nothingIsGivenOut() {
    CachedBlock taken = take(stripe, 512);
    assertThat(front.endAll()).containsExactly(taken);
    assertThat(front.endAll()).isEmpty();
    long used = arena.usedBytes();
    assertThatThrownBy(() -> stripe.take(512, 512, stream.core())).hasMessage("the pool is closed");
    assertThatThrownBy(() -> takeFromArena(stripe, 512)).hasMessage("the pool is closed");
    assertThatThrownBy(() -> takeFromArena(stripe, 64 << 10)).hasMessage("the pool is closed");
    assertThat(arena.usedBytes()).isEqualTo(used); // no slab was made of what was brought
    assertThat(front.allocations()).isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(longs = {512, 64 << 10})
  void forgottenBlock_isFoundInAnyStripe_andOthersAreNot(long bytes) {
    CachedBlock first = take(otherStripe(), bytes);
    CachedBlock _ = take(otherStripe(), bytes);
    assertThat(front.hasForgotten()).isFalse();
    first.clear(); // as the collector does
    assertThat(front.hasForgotten()).isTrue();
    assertThat(first.end()).isTrue();
    assertThat(front.hasForgotten()).isFalse();
  }
}
