package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedAllocator;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PoolOptions;
import io.cuvette.PressureListener;
import io.cuvette.Registration;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.Gate;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * What users plug into pools may answer wrongly or throw: no memory is lost or handed out twice.
 */
class UpstreamTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void chunkThatThePoolHasAlready_isRefused() {
    Buffer one = MemoryResource.direct().allocate(1 << 20, cuda.currentStream());
    MemoryPool pool = poolOver((bytes, stream) -> one);
    pool.allocate(512);
    assertThatThrownBy(() -> pool.allocate(512))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("again");
    assertThat(pool.totalBytes()).isEqualTo(512);
  }

  @Test
  void blocksOfAPageLockedChunk_haveTheirOwnPartOfItsHostMemory() {
    MemoryPool pool = poolOver((bytes, stream) -> cuda.directPinned().allocate(bytes));
    pool.allocate(3 * 512).close();
    List<PinnedBuffer> blocks = new ArrayList<>();
    for (byte i = 0; i < 3; i++) {
      PinnedBuffer block = (PinnedBuffer) pool.allocate(512);
      byte[] bytes = new byte[512];
      Arrays.fill(bytes, i);
      block.copyFrom(MemorySegment.ofArray(bytes));
      blocks.add(block);
    }
    assertThat(pool.totalBytes()).as("of one chunk").isEqualTo(3 * 512);
    for (byte i = 0; i < 3; i++) {
      PinnedBuffer block = blocks.get(i);
      byte[] bytes = new byte[512];
      block.copyTo(MemorySegment.ofArray(bytes));
      assertThat(bytes).containsOnly(i);
      assertThat(block.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes);
      block.close();
    }
    pool.assertConsistent();
  }

  @Test
  void bytesThatUpstreamFailedToGive_areNoPartOfTheLimit() {
    AtomicInteger failures = new AtomicInteger(3);
    MemoryPool pool =
        poolOver((bytes, stream) -> {
          if (failures.getAndDecrement() > 0) {
            throw new CudaException(CudaStatus.NOT_SUPPORTED, "upstream()", "not now");
          }
          return MemoryResource.direct().allocate(bytes, stream);
        });
    pool.setLimit(MemoryLimit.ofBytes(1 << 20));
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> pool.allocate(1 << 20)).isInstanceOf(CudaException.class);
    }
    pool.allocate(1 << 20).close();
    pool.assertConsistent();
    assertThat(pool.freeAllBlocks()).isEqualTo(1 << 20);
  }

  /** It would only refuse once more. */
  @Test
  void upstreamThatRefuses_isAskedAgain_onlyWhenTheDriverHasMoreThanAtItsLastRefusal() {
    AtomicInteger asked = new AtomicInteger();
    CudaOptions options = CudaOptions.simulated().withLeakLevel(LeakLevel.OFF);
    try (Cuda quiet = Cuda.open(options)) {
      Buffer others = MemoryResource.direct().allocate(1 << 20, quiet.currentStream());
      MemoryPool pool =
          poolOver(
              quiet,
              (_, _) -> {
                asked.incrementAndGet();
                throw new CudaException(CudaStatus.OUT_OF_MEMORY, "upstream()", "a quota");
              });
      Registration _ =
          pool.addPressureListener((_, _) -> {
            others.close();
            return 0; // of the pool's
          });
      assertThatThrownBy(() -> pool.allocate(512)).isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(pool.stats().growths()).isZero();
    }
    assertThat(asked).as("at first, with more memory, and at last").hasValue(3);
  }

  /** The stream that it is of knows nothing of the work in the pool's. */
  @Test
  void chunkOfAnotherStreamsMemory_isFreeAgain_onceThePoolsStreamIsDone() {
    CudaOptions lazily = CudaOptions.simulated().withDevice("sim:pace=lazy");
    try (Cuda lazy = Cuda.open(lazily);
        CudaStream theirs = lazy.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream ours = lazy.device(0).createStream(StreamOptions.NON_BLOCKING);
        MemoryPool under = new MemoryPool(lazy);
        MemoryPool pool = poolOver(lazy, (bytes, _) -> under.allocate(bytes, theirs))) {
      Buffer block = pool.allocate(512, ours);
      try (Gate _ = Gate.on(ours)) {
        block.fill((byte) 1, ours);
        block.close();
        assertThat(pool.freeAllBlocks()).isEqualTo(512);
        assertThat(under.stats().pendingBytes()).isEqualTo(512);
      }
      ours.synchronize();
      assertThat(under.stats().pendingBytes()).isZero();
    }
  }

  @Test
  void pinnedPoolThatIsItsOwnUpstream_countsNothingAsHeld() {
    AtomicReference<PinnedMemoryPool> self = new AtomicReference<>();
    PinnedMemoryPool pool = pinnedPoolOver(bytes -> self.get().allocate(bytes));
    self.set(pool);
    assertThatThrownBy(() -> pool.allocate(100)).hasMessageContaining("re-entrant");
    assertThat(pool.totalBytes()).isZero();
  }

  @Test
  void smallOrMissingPinnedChunk_isRefused() {
    for (PinnedAllocator wrong :
        new PinnedAllocator[] {bytes -> null, bytes -> cuda.directPinned().allocate(10)}) {
      PinnedMemoryPool pool = pinnedPoolOver(wrong);
      assertThatThrownBy(() -> pool.allocate(100))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("returned");
      assertThat(pool.totalBytes()).isZero();
    }
  }

  @Test
  void largerPinnedChunk_countsAsTheBlockThatWasAskedFor() {
    PinnedMemoryPool pool = pinnedPoolOver(bytes -> cuda.directPinned().allocate(2 * bytes));
    PinnedBuffer block = pool.allocate(100);
    assertThat(pool.usedBytes()).isEqualTo(512);
    assertThat(pool.freeBytes()).isZero();
    block.close();
    assertThat(pool.freeAllBlocks()).isEqualTo(512);
    assertThat(pool.totalBytes()).isZero();
  }

  /** It would be lent to others, or freed by another driver. */
  @Test
  void chunkThatIsClosed_orOfAnotherDeviceOrCuda_isRefused() {
    try (Cuda two = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim:devices=2"))) {
      CudaStream own = two.device(0).nullStream();
      CudaStream second = two.device(1).nullStream();
      CudaStream others = cuda.currentStream();
      MemoryResource direct = MemoryResource.direct();
      for (MemoryResource wrong :
          new MemoryResource[] {
            (bytes, _) -> closed(direct.allocate(bytes, own)),
            (bytes, _) -> direct.allocate(bytes, second),
            (bytes, _) -> direct.allocate(bytes, others),
          }) {
        MemoryPool pool = poolOver(two, wrong);
        assertThatThrownBy(() -> pool.allocate(100, own))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("(expected: an open buffer of " + two.device(0));
        assertThat(pool.totalBytes()).isZero();
      }
      for (PinnedAllocator wrong :
          new PinnedAllocator[] {
            bytes -> closed(two.directPinned().allocate(bytes)),
            bytes -> cuda.directPinned().allocate(bytes),
          }) {
        PinnedMemoryPool pool =
            new PinnedMemoryPool(two, PinnedPoolOptions.DEFAULTS.withUpstream(wrong));
        assertThatThrownBy(() -> pool.allocate(100))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageMatching(".*\\(expected: (an open buffer|memory of the same Cuda)\\).*");
        assertThat(pool.totalBytes()).isZero();
      }
    }
  }

  private static <B extends Buffer> B closed(B buffer) {
    buffer.close();
    return buffer;
  }

  @Test
  void wrongAnswerOfTheCurrentAllocator_isRefused() {
    assertRefused((bytes, stream) -> null, "the allocator returned null for 100 bytes");
    assertRefused((bytes, stream) -> MemoryResource.direct().allocate(9, stream), ">= 100 bytes");
    cuda.setPinnedAllocator(bytes -> cuda.directPinned().allocate(9));
    assertThatThrownBy(() -> cuda.allocatePinned(100))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(">= 100 bytes");
    cuda.setPinnedAllocator(_ -> null);
    assertThatThrownBy(() -> cuda.allocatePinned(100))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("the pinned allocator returned null for 100 bytes");
  }

  @Test
  void allocatorOfAUser_isNotAskedForNegativeSizes_norForAnyOnceTheCudaIsClosed() {
    AtomicInteger asked = new AtomicInteger();
    MemoryResource user =
        (bytes, stream) -> {
          asked.incrementAndGet();
          return MemoryResource.direct().allocate(bytes, stream);
        };
    cuda.setPinnedAllocator(bytes -> {
      asked.incrementAndGet();
      return cuda.directPinned().allocate(bytes);
    });
    CudaStream stream = cuda.currentStream();
    List<ThrowingCallable> uses =
        List.of(
            () -> cuda.allocatePinned(-1),
            () -> cuda.allocate(-1),
            () -> cuda.allocate(-1, stream),
            () -> cuda.device(0).createGraphMemory(-1));
    try (Scope _ = cuda.useAllocator(user)) {
      for (ThrowingCallable use : uses) {
        assertThatThrownBy(use)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage("bytes: -1 (expected: >= 0)");
      }
    }
    cuda.close();
    for (ThrowingCallable use :
        List.<ThrowingCallable>of(() -> cuda.allocatePinned(1), () -> cuda.allocate(1, stream))) {
      assertThatThrownBy(use)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
    assertThat(asked).hasValue(0);
  }

  private void assertRefused(MemoryResource wrong, String why) {
    try (Scope _ = cuda.useAllocator(wrong)) {
      assertThatThrownBy(() -> cuda.allocate(100))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(why);
    }
  }

  @Test
  void hookThatThrowsAfterwards_losesNoMemory() {
    MemoryPool pool = new MemoryPool(cuda);
    long freeBytes = cuda.device(0).memoryInfo().freeBytes();
    MemoryHook growing =
        new MemoryHook() {
          @Override
          public void allocPostprocess(Growth growth) {
            throw new IllegalArgumentException("hook");
          }
        };
    MemoryHook lending =
        new MemoryHook() {
          @Override
          public void mallocPostprocess(Block block) {
            throw new IllegalArgumentException("hook");
          }
        };
    for (MemoryHook hook : new MemoryHook[] {growing, lending}) {
      try (Registration _ = pool.addHook(hook)) {
        assertThatThrownBy(() -> pool.allocate(100)).hasMessage("hook");
      }
      assertThat(pool.usedBytes()).isZero();
    }
    pool.freeAllBlocks();
    assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(freeBytes);
  }

  @Test
  void registrationClosedAgain_leavesALaterOneAlone() {
    MemoryPool pool = new MemoryPool(cuda);
    AtomicInteger calls = new AtomicInteger();
    MemoryHook hook =
        new MemoryHook() {
          @Override
          public void mallocPreprocess(Block block) {
            calls.incrementAndGet();
          }
        };
    Registration first = pool.addHook(hook);
    first.close();
    pool.addHook(hook);
    first.close();
    pool.allocate(1).close();
    assertThat(calls).hasValue(1);
    PressureListener listener = (device, bytes) -> 0 * calls.addAndGet(10);
    Registration before = pool.addPressureListener(listener);
    before.close();
    pool.addPressureListener(listener);
    before.close();
    assertThatThrownBy(() -> pool.allocate(1L << 50)).hasMessageContaining("requested");
    assertThat(calls).hasValueGreaterThanOrEqualTo(11);
  }

  private MemoryPool poolOver(MemoryResource upstream) {
    return poolOver(cuda, upstream);
  }

  private static MemoryPool poolOver(Cuda cuda, MemoryResource upstream) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
  }

  private PinnedMemoryPool pinnedPoolOver(PinnedAllocator upstream) {
    return new PinnedMemoryPool(cuda, PinnedPoolOptions.DEFAULTS.withUpstream(upstream));
  }
}
