package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.LeakLevel;
import io.cuvette.LeakReport;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryPool;
import io.cuvette.OpenObject;
import io.cuvette.Registration;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.Kind;
import java.util.Arrays;

/** Forgotten buffers come back, and are reported with what the level remembers. */
class LeakLevelTest {

  @CudaTest(tidy = false)
  void off_neverTakesBackAndNeverReports(Subject subject) throws InterruptedException {
    Cuda cuda = subject.open(options -> options.withLeakLevel(LeakLevel.OFF));
    MemoryPool pool = cuda.defaultMemoryPool();
    Forgetting.of(() -> cuda.allocate(UNEVEN));
    Forgetting.collect();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(pool.usedBytes()).isEqualTo(1024);
    assertThat(subject.leaks()).isEmpty();
  }

  @CudaTest(tidy = false)
  void count_takesBackEach_withoutTheSite(Subject subject) throws InterruptedException {
    Cuda cuda = subject.open(options -> options.withLeakLevel(LeakLevel.COUNT));
    MemoryPool pool = cuda.defaultMemoryPool();
    Forgetting.of(100, () -> cuda.allocate(UNEVEN));
    assertThat(pool.stats().allocations()).isEqualTo(100);
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 100)).isTrue();
    assertThat(pool.usedBytes()).isZero();
    assertThat(pool.stats().usedBlocks()).isZero();
    assertThat(subject.leaks()).hasSize(100).allMatch(leak -> leak.site() == null);
    assertThat(subject.leaks())
        .allSatisfy(leak -> {
          assertThat(leak.bytes()).isEqualTo(1024);
          assertThat(leak.what()).contains("buffer of 1000 bytes at 0x");
        });
  }

  /** One in 64 by chance: of 3,000 none would remember its site once in 10^20 runs. */
  @CudaTest(tidy = false)
  void sampled_remembersSomeSites(Subject subject) throws InterruptedException {
    Cuda cuda = subject.open(options -> options.withLeakLevel(LeakLevel.SAMPLED));
    Forgetting.of(3000, () -> cuda.allocate(UNIT));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 3000)).isTrue();
    long sites = subject.leaks().stream().filter(leak -> leak.site() != null).count();
    assertThat(sites).isBetween(1L, 1000L);
    assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
  }

  @CudaTest(tidy = false)
  void full_remembersWhereEachWasMade(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    for (Kind kind : Kind.values()) {
      Forgetting.of(() -> kind.allocate(cuda, 1000));
    }
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == Kind.values().length)).isTrue();
    assertThat(subject.leaks())
        .allSatisfy(leak -> assertThat(madeHere(leak)).as("%s", leak.what()).isTrue());
    assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  @CudaTest(tidy = false)
  void reclaimedMemory_isUsedAgain(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    Forgetting.of(() -> cuda.allocate(MIB));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
    try (Buffer _ = cuda.allocate(MIB)) {
      assertThat(cuda.defaultMemoryPool().stats().growths()).isEqualTo(1);
    }
  }

  @CudaTest(tidy = false)
  void directBuffersThatWereForgotten_goBackToTheDriver(Subject subject)
      throws InterruptedException {
    Cuda cuda = subject.cuda();
    for (Kind kind : new Kind[] {Kind.DEVICE, Kind.MANAGED}) {
      Forgetting.of(() -> kind.allocate(cuda, 4096));
    }
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 2)).isTrue();
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveAllocations()).isZero();
    }
  }

  /** A slice alone keeps the memory: its buffer is not forgotten before the slice is. */
  @CudaTest(tidy = false)
  void bufferThatASliceStillReaches_isNotForgotten(Cuda cuda) throws InterruptedException {
    Buffer[] slice = new Buffer[1];
    Forgetting.of(() -> slice[0] = cuda.allocate(UNEVEN).slice(1, 10));
    Forgetting.collect();
    assertThat(cuda.leaksFound()).isZero();
    slice[0].fill((byte) 1);
    slice[0] = null;
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
  }

  @CudaTest
  void closedBuffers_areNeverReported(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    Forgetting.of(() -> {
      for (Kind kind : Kind.values()) {
        kind.allocate(cuda, 1000).close();
      }
      cuda.device(0).createStream().close();
      cuda.device(0).createEvent().close();
      return "";
    });
    Forgetting.collect();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(subject.leaks()).isEmpty();
  }

  @CudaTest(tidy = false)
  void exceptionOfTheLeakListener_losesNoMemory(Subject subject) throws InterruptedException {
    Cuda cuda =
        subject.open(options ->
            options.withLeakListener(leak -> {
              throw new UnsupportedOperationException("mine");
            }));
    Forgetting.of(3, () -> cuda.allocate(UNEVEN));
    boolean found =
        Forgetting.collectUntil(() -> {
          try {
            return cuda.leaksFound() == 3;
          } catch (UnsupportedOperationException e) {
            return false;
          }
        });
    assertThat(found).isTrue();
    assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
  }

  @CudaTest
  void hooksAndListeners_endWithTheirPool(Subject subject) {
    Cuda cuda = subject.open(options -> options.withLeakLevel(LeakLevel.FULL));
    try (MemoryPool pool = new MemoryPool(cuda)) {
      MemoryHook mine = new MemoryHook() {};
      Registration hook = pool.addHook(mine);
      Registration listener = pool.addPressureListener((_, _) -> 0);
      assertThat(cuda.openObjects())
          .hasSize(3)
          .extracting(OpenObject::what)
          .contains("hook %s of %s".formatted(mine, pool));
      hook.close();
      listener.close();
      assertThat(cuda.openObjects()).hasSize(1);
      pool.addHook(new MemoryHook() {});
      pool.addPressureListener((_, _) -> 0);
    }
    assertThat(cuda.openObjects()).isEmpty();
  }

  private static boolean madeHere(LeakReport leak) {
    Throwable site = leak.site();
    return site != null
        && Arrays.stream(site.getStackTrace())
            .anyMatch(frame -> frame.getClassName().startsWith(LeakLevelTest.class.getName()));
  }
}
