package io.cuvette.testkit.whole;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.NativeFunctionResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PoolOptions;
import io.cuvette.PressureListener;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.NativeFunctions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Timeout;

/** Code that a resource calls, and that allocates from it: one clear error, and nothing is lost. */
@Timeout(60)
class ReentrantCodeTest {

  /** Which of its methods does something. */
  private enum When {
    ALLOC_BEFORE,
    ALLOC_AFTER,
    MALLOC_BEFORE,
    MALLOC_AFTER,
    FREE_BEFORE,
    FREE_AFTER
  }

  private record Doing(When when, Runnable what) implements MemoryHook {
    private void at(When now) {
      if (now == when) {
        what.run();
      }
    }

    @Override
    public void allocPreprocess(Growth growth) {
      at(When.ALLOC_BEFORE);
    }

    @Override
    public void allocPostprocess(Growth growth) {
      at(When.ALLOC_AFTER);
    }

    @Override
    public void mallocPreprocess(Block block) {
      at(When.MALLOC_BEFORE);
    }

    @Override
    public void mallocPostprocess(Block block) {
      at(When.MALLOC_AFTER);
    }

    @Override
    public void freePreprocess(Block block) {
      at(When.FREE_BEFORE);
    }

    @Override
    public void freePostprocess(Block block) {
      at(When.FREE_AFTER);
    }

    @Override
    public String toString() {
      return "hook at " + when;
    }
  }

  @CudaTest
  void hookThatAllocatesFromItsPool_isRefused_andNothingIsLost(Cuda cuda) {
    for (When when : When.values()) {
      try (MemoryPool pool = new MemoryPool(cuda)) {
        try (var _ = pool.addHook(new Doing(when, () -> pool.allocate(UNIT)))) {
          assertThatThrownBy(() -> pool.allocate(UNIT).close())
              .as("%s", when)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("re-entrant allocation: hook at " + when)
              .hasMessageContaining(pool.toString());
        }
        assertThat(pool.usedBytes()).as("%s", when).isZero();
        pool.allocate(UNIT).close();
        pool.assertConsistent();
      }
    }
  }

  @CudaTest
  void hookThatAllocatesElsewhere_works(MemoryPool pool, MemoryPool other) {
    for (When when : When.values()) {
      AtomicInteger calls = new AtomicInteger();
      Runnable allocate =
          () -> {
            other.allocate(UNIT).close();
            calls.incrementAndGet();
          };
      try (var _ = pool.addHook(new Doing(when, allocate))) {
        pool.allocate(4096).close();
      }
      pool.freeAllBlocks();
      assertThat(calls).as("%s", when).hasValue(1);
    }
  }

  @CudaTest
  void hooksOfTwoPools_thatAllocateFromEachOther_areRefused(MemoryPool one, MemoryPool two) {
    try (var _ = one.addHook(new Doing(When.MALLOC_BEFORE, () -> two.allocate(UNIT).close()));
        var _ = two.addHook(new Doing(When.MALLOC_BEFORE, () -> one.allocate(UNIT).close()))) {
      assertThatThrownBy(() -> one.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation");
      assertThat(one.usedBytes() + two.usedBytes()).isZero();
    }
  }

  /** What a hook closes is not told to hooks, or each would close the next inside of the last. */
  @CudaTest(sanitized = false)
  void hookThatClosesThousands_oneAfterTheOther_doesNotOverflowTheStack(MemoryPool pool) {
    Deque<Buffer> live = new ArrayDeque<>();
    for (int i = 0; i < 20_000; i++) {
      live.add(pool.allocate(UNIT));
    }
    Runnable closeNext =
        () -> {
          Buffer next = live.poll();
          if (next != null) {
            next.close();
          }
        };
    try (var _ = pool.addHook(new Doing(When.FREE_AFTER, closeNext))) {
      while (!live.isEmpty()) {
        live.poll().close();
      }
    }
    assertThat(pool.usedBytes()).isZero();
    pool.assertConsistent();
  }

  @CudaTest
  void allocatorsMadeWithoutEnd_areRefused(Cuda cuda) {
    try (Scope _ = cuda.useAllocator(another(cuda))) {
      assertThatThrownBy(() -> cuda.allocate(1))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation");
    }
    cuda.allocate(1).close();
  }

  private static MemoryResource another(Cuda cuda) {
    return (bytes, stream) -> {
      try (Scope _ = cuda.useAllocator(another(cuda))) {
        return cuda.allocate(bytes, stream);
      }
    };
  }

  @CudaTest
  void pressureListenerThatGrowsItsPool_isRefused_andNamed(MemoryPool pool) {
    pool.setLimit(new MemoryLimit.Bytes(1 << 20));
    PressureListener growing =
        new PressureListener() {
          @Override
          public long onPressure(io.cuvette.CudaDevice device, long neededBytes) {
            return pool.allocate(neededBytes).byteSize();
          }

          @Override
          public String toString() {
            return "the growing listener";
          }
        };
    try (var _ = pool.addPressureListener(growing);
        Buffer _ = pool.allocate(MIB)) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation: the growing listener")
          .hasMessageContaining(pool.toString());
    }
    pool.allocate(UNIT).close();
    pool.assertConsistent();
  }

  @CudaTest
  void upstreamsThatAllocateFromTheirPool_areRefused(Cuda cuda) {
    AtomicReference<MemoryPool> self = new AtomicReference<>();
    MemoryResource upstream = (bytes, stream) -> self.get().allocate(bytes, stream);
    try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream))) {
      self.set(pool);
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation: " + upstream)
          .hasMessageContaining(pool.toString());
      pool.assertConsistent();
    }
    AtomicReference<PinnedMemoryPool> pinned = new AtomicReference<>();
    try (PinnedMemoryPool pool =
        new PinnedMemoryPool(
            cuda, PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> pinned.get().allocate(bytes)))) {
      pinned.set(pool);
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation");
      assertThat(pool.totalBytes()).isZero();
    }
  }

  /** What it forgets meanwhile is reported after it has returned. */
  @CudaTest(tidy = false)
  void leakListenerThatLosesMemory_isNotCalledInsideOfItself(Subject subject)
      throws InterruptedException {
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger deepest = new AtomicInteger();
    AtomicInteger calls = new AtomicInteger();
    Cuda[] opened = new Cuda[1];
    Cuda cuda =
        subject.open(options ->
            options
                .withLeakLevel(LeakLevel.COUNT)
                .withLeakListener(_ -> {
                  deepest.accumulateAndGet(inside.incrementAndGet(), Math::max);
                  if (calls.incrementAndGet() < 5) {
                    opened[0].allocate(UNIT);
                    System.gc();
                    long _ = opened[0].leaksFound();
                  }
                  inside.decrementAndGet();
                }));
    opened[0] = cuda;
    Forgetting.of(() -> cuda.allocate(UNIT));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() > 0)).isTrue();
    assertThat(deepest).hasValue(1);
    calls.set(5);
    cuda.close();
  }

  @CudaTest
  void nativeFunctionThatAllocatesFromItsResource_isRefused(Subject subject) {
    Cuda cuda = subject.cuda();
    List<Throwable> refused = new ArrayList<>();
    AtomicReference<NativeFunctionResource> self = new AtomicReference<>();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions =
          new NativeFunctions(
              subject,
              arena,
              (_, bytes, device) -> {
                try {
                  self.get().allocate(bytes, cuda.currentStream());
                } catch (IllegalStateException e) {
                  refused.add(e);
                }
                return cuda.driver().memory().memAlloc(device, bytes);
              },
              (_, address, device) -> cuda.driver().memory().memFree(device, address));
      self.set(
          new NativeFunctionResource(
              functions.malloc(), functions.free(), MemorySegment.NULL, arena));
      self.get().allocate(UNIT, cuda.currentStream()).close();
    }
    assertThat(refused).hasSize(1);
    assertThat(refused.getFirst()).hasMessageContaining("re-entrant allocation");
  }
}
