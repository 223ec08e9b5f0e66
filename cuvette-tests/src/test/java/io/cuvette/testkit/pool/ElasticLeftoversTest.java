package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryHook;
import io.cuvette.Registration;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.AtOnce;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What failing calls leave behind in an elastic pool goes with the next step, whichever it is. */
@Tag("simulated")
@Timeout(120)
class ElasticLeftoversTest {
  private static final long MIB = 1L << 20;

  private final AtOnce threads = new AtOnce();
  private final ScriptedDriver script = new ScriptedDriver();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
  private final CudaStream stream = cuda.device(0).createStream();
  private final ElasticMemoryPool pool =
      new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withReleaseThresholdBytes(0));
  private final long before = free();

  @AfterEach
  void close() {
    cuda.close();
  }

  private long free() {
    return cuda.device(0).memoryInfo().freeBytes();
  }

  /** Memory that was mapped in vain, and is so still. */
  private void leavePages(long bytes) {
    script.fail("memSetAccess", CudaStatus.NOT_PERMITTED, 1);
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(() -> pool.allocate(bytes, stream)).isInstanceOf(CudaException.class);
    script.unscript("memUnmap");
    assertThat(free()).isLessThanOrEqualTo(before - bytes);
    assertThat(pool.totalBytes()).isZero();
    pool.assertConsistent();
  }

  /** Memory of which nothing is mapped, but whose handle could not be released. */
  private void leaveAHandle() {
    script.fail("memRelease", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(() -> pool.allocate(MIB, stream)).isInstanceOf(CudaException.class);
    script.unscript("memRelease");
    assertThat(script.count("memRelease")).isZero();
    assertThat(free()).isLessThan(before);
    assertThat(pool.totalBytes()).isZero();
    pool.assertConsistent();
  }

  @Test
  void pagesThatAreStillMapped_makeWayForABlockInTheirPlace() {
    leavePages(6 * MIB);
    try (Buffer buffer = pool.allocate(6 * MIB, stream)) {
      buffer.fill((byte) 1, stream);
      assertThat(free()).isEqualTo(before - 6 * MIB);
    }
    stream.synchronize();
    long _ = pool.trim(0);
    assertThat(pool.totalBytes()).isZero();
    assertThat(free()).isEqualTo(before);
    pool.assertConsistent();
  }

  @Test
  void pagesThatAreStillMapped_goWithWhatIsUnmappedNext() {
    Buffer buffer = pool.allocate(2 * MIB, stream);
    script.fail("memSetAccess", CudaStatus.NOT_PERMITTED, 1);
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(() -> pool.allocate(6 * MIB, stream)).isInstanceOf(CudaException.class);
    script.unscript("memUnmap");
    assertThat(free()).isLessThanOrEqualTo(before - 8 * MIB);
    stream.synchronize();
    buffer.close();
    assertThat(pool.totalBytes()).as("no more than the threshold is kept").isZero();
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void handleThatWasNotReleased_isWithTheNextTrim() {
    leaveAHandle();
    assertThat(pool.trim(0)).isZero();
    assertThat(script.count("memRelease")).isOne();
    assertThat(free()).isEqualTo(before);
    assertThat(pool.trim(0)).isZero();
    assertThat(script.count("memRelease")).isOne();
  }

  @Test
  void handleThatWasNotReleased_isWithTheNextBlock() {
    leaveAHandle();
    try (Buffer _ = pool.allocate(MIB, stream)) {
      assertThat(script.count("memRelease")).isEqualTo(2);
      assertThat(free()).isEqualTo(before - 2 * MIB);
    }
  }

  /** It reports what earlier work failed with: the handle may be another's by now. */
  @Test
  void handleThatMayBeReleased_isNotReleasedAgain() {
    script.note("memRelease");
    script.answer(
        "memRelease",
        call -> {
          Object _ = call.proceed();
          throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, call.name(), "on purpose");
        });
    assertThatThrownBy(() -> pool.allocate(MIB, stream)).isInstanceOf(CudaException.class);
    script.unscript("memRelease");
    assertThat(pool.trim(0)).isZero();
    assertThat(script.notes()).hasSize(1);
    assertThat(free()).isEqualTo(before);
  }

  /** The addresses of what is still mapped are nobody else's. */
  @Test
  void addressesOfCachedMemoryThatCannotBeUnmapped_areKeptUntilItIs() {
    script.note("memAddressFree");
    ElasticMemoryPool caching = new ElasticMemoryPool(cuda);
    caching.allocate(6 * MIB, stream).close();
    stream.synchronize();
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(caching::close).isInstanceOf(CudaException.class);
    assertThat(script.notes()).isEmpty();
    script.unscript("memUnmap");
    caching.close();
    cuda.close();
    assertThat(script.notes()).hasSize((int) script.count("memAddressReserve"));
  }

  /** Whoever failed is no obstacle. */
  @Test
  void whatOneThreadCouldNotRelease_anotherCan() throws InterruptedException {
    leavePages(2 * MIB);
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED, 1);
    assertThatThrownBy(() -> pool.trim(0)).isInstanceOf(CudaException.class);
    Thread other = threads.start(() -> assertThat(pool.trim(0)).isZero());
    other.join(40_000);
    assertThat(other.isAlive()).isFalse();
    threads.assertNoFailures();
    assertThat(free()).isEqualTo(before);
  }

  @Test
  void pool_endsWithWhatWasLeftInIt() {
    leavePages(6 * MIB);
    pool.close();
    assertThat(free()).isEqualTo(before);
    assertThat(script.count("memAddressFree")).isEqualTo(script.count("memAddressReserve"));
  }

  @Test
  void memoryOfAnExportablePool_isSharedByItsPages() {
    try (Buffer ours = pool.allocate(MIB, stream)) {
      assertThatThrownBy(ours::descriptor).hasMessageContaining("without ElasticPoolOptions");
    }
    try (ElasticMemoryPool shared =
            new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withExportable(true));
        Buffer ours = shared.allocate(MIB, stream)) {
      assertThatThrownBy(ours::descriptor)
          .hasMessageContaining("its pages are exported by ElasticMemoryPool.export");
    }
  }

  /** The pool has no memory by its numbers. */
  @Test
  void addressesOfPagesThatAreStillMapped_areKeptUntilTheyAreUnmapped() {
    leavePages(6 * MIB);
    script.note("memAddressFree");
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(pool::close).isInstanceOf(CudaException.class);
    assertThat(script.notes()).isEmpty();
    script.unscript("memUnmap");
    cuda.defaultMemoryPool().freeAllBlocks(); // who looks for memory tries again
    assertThat(script.notes()).hasSize(1);
    assertThat(free()).isEqualTo(before);
    cuda.close();
    assertThat(script.notes()).hasSize(1);
  }

  @Test
  void handlesThatTwoThreadsCouldNotRelease_areAllWithTheNextTrim() throws InterruptedException {
    CountDownLatch both = new CountDownLatch(2);
    script.answer(
        "memRelease",
        call -> {
          both.countDown();
          assertThat(both.await(40, TimeUnit.SECONDS)).isTrue();
          throw new CudaException(CudaStatus.NOT_PERMITTED, call.name(), "on purpose");
        });
    threads.run(
        2,
        _ ->
            assertThatThrownBy(() -> pool.allocate(2 * MIB, stream))
                .isInstanceOf(CudaException.class));
    script.unscript("memRelease");
    assertThat(pool.trim(0)).isZero();
    assertThat(script.count("memRelease")).isEqualTo(2);
    assertThat(free()).isEqualTo(before);
  }

  /** The pool ends with the thread that maps. */
  @Test
  void addressesOfAPoolThatIsClosedMeanwhile_areKeptUntilAllIsUnmapped() {
    script.note("memAddressFree");
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
    script.answer(
        "memSetAccess",
        call -> {
          Thread closing = threads.start(pool::close);
          closing.join(40_000);
          assertThat(closing.isAlive()).isFalse();
          throw new CudaException(CudaStatus.NOT_PERMITTED, call.name(), "on purpose");
        });
    assertThatThrownBy(() -> pool.allocate(2 * MIB, stream)).isInstanceOf(CudaException.class);
    threads.assertNoFailures();
    assertThat(script.notes()).isEmpty();
    script.unscript("memUnmap");
    cuda.close();
    assertThat(script.notes()).hasSize((int) script.count("memAddressReserve"));
  }

  /** Nobody comes after it. */
  @Test
  void addressesOfWhatCannotBeUnmapped_goWithTheCuda() {
    leavePages(2 * MIB);
    script.note("memAddressFree");
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
    assertThat(script.notes()).isNotEmpty();
  }

  /** A plain refusal tells all: whatever the driver would say of the pages, they are mapped. */
  @Test
  void pagesThatTheDriverDoesNotUnmap_areNotAskedAbout() {
    ElasticMemoryPool caching = new ElasticMemoryPool(cuda);
    caching.allocate(2 * MIB, stream).close();
    stream.synchronize();
    script.note("memGetAccess");
    script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(() -> caching.trim(0)).isInstanceOf(CudaException.class);
    assertThat(script.notes()).isEmpty();
    script.unscript("memUnmap");
    assertThat(caching.trim(0)).isEqualTo(2 * MIB);
    assertThat(free()).isEqualTo(before);
  }

  /** It is told that there is none. */
  @Test
  void pagesThatWereMappedInVain_areBackWhenAHookIsToldSo() {
    List<Long> told = new ArrayList<>();
    MemoryHook hook =
        new MemoryHook() {
          @Override
          public void allocPostprocess(Growth growth) {
            told.add(free());
          }
        };
    try (Registration _ = pool.addHook(hook)) {
      script.fail("memSetAccess", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(() -> pool.allocate(6 * MIB, stream)).isInstanceOf(CudaException.class);
      assertThat(told).containsExactly(before);
      pool.allocate(6 * MIB, stream).close();
      assertThat(told).containsExactly(before, before - 6 * MIB);
    }
  }

  /** Whoever tries is told. */
  @Test
  void handleThatCannotBeReleasedAgain_failsTheNextStepToo_andIsKept() {
    leaveAHandle();
    for (int i = 0; i < 2; i++) {
      script.fail("memRelease", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(() -> pool.trim(0))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("memRelease");
      assertThat(free()).isLessThan(before);
    }
    assertThat(pool.trim(0)).isZero();
    assertThat(script.count("memRelease")).isOne();
    assertThat(free()).isEqualTo(before);
  }
}
