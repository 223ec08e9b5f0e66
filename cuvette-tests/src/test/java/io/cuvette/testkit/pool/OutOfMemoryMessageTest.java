package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.OutOfPinnedMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PinnedPoolStats;
import io.cuvette.PoolStats;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** What memory that ran out says: a short line first, then numbers that are true. */
class OutOfMemoryMessageTest {
  private static final int LIMIT = 1 << 20;
  private static final int COLUMNS = 100;

  /** Less than memory that is being freed is waited for: not in a callback, which holds it up. */
  private static final long PATIENCE_SECONDS = 8;

  @CudaTest
  void limitOfAPool_isInTheFirstLine(Cuda cuda) {
    try (MemoryPool pool = limited(cuda);
        Buffer _ = pool.allocate(LIMIT / 4)) {
      var e = catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(LIMIT));
      assertThat(lines(e)[0])
          .isEqualTo(
              "out of device memory: 1048576 bytes on device 0, free 786432 of a limit of 1048576");
      assertThat(e)
          .hasMessageContainingAll(
              "requested=1048576", "limit=1048576", "used=262144", "pending=0", "(2)");
    }
  }

  @CudaTest
  void fullDriver_isInTheFirstLine(Cuda cuda, MemoryPool pool) {
    for (MemoryResource from : new MemoryResource[] {pool, MemoryResource.direct()}) {
      CudaStream stream = cuda.currentStream();
      var e =
          catchThrowableOfType(
              OutOfDeviceMemoryException.class, () -> from.allocate(1L << 50, stream));
      assertThat(lines(e)[0])
          .matches(
              "out of device memory: 1125899906842624 bytes on device 0,"
                  + " free \\d+ in the driver");
    }
  }

  @CudaTest
  void limitOfADriversPool_isAboutItsLiveBytes(AsyncMemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(4096));
    try (Buffer _ = pool.allocate(1024)) {
      var e = catchThrowableOfType(OutOfDeviceMemoryException.class, () -> pool.allocate(4096));
      assertThat(lines(e)[0]).endsWith("on device 0, free 3072 of a limit of 4096");
      assertThat(e.details().usedBytes()).isEqualTo(1024);
      assertThat(e.details().driverFreeBytes()).as("which is not the limit's").isGreaterThan(4096);
    }
  }

  @CudaTest
  void pinnedMemory_saysTheSame(Cuda cuda) {
    try (PinnedMemoryPool pool = limitedPinned(cuda);
        PinnedBuffer _ = pool.allocate(LIMIT / 4)) {
      var e = catchThrowableOfType(OutOfPinnedMemoryException.class, () -> pool.allocate(LIMIT));
      assertThat(lines(e)[0])
          .isEqualTo("out of page-locked memory: 1048576 bytes, free 786432 of a limit of 1048576");
      assertThat(e).hasMessageContainingAll("held=262144", "pending=0", "(2)");
    }
    var e =
        catchThrowableOfType(
            OutOfPinnedMemoryException.class, () -> cuda.directPinned().allocate(1L << 50));
    assertThat(lines(e)[0]).isEqualTo("out of page-locked memory: 1125899906842624 bytes");
  }

  /** What a callback frees is freed when it has returned: until then it counts, as pending. */
  @CudaTest
  void memoryFreedInACallback_isPendingUntilItReturns(Cuda cuda, CudaStream stream)
      throws Exception {
    AtomicReference<PoolStats> inside = new AtomicReference<>();
    AtomicReference<OutOfDeviceMemoryException> failure = new AtomicReference<>();
    try (MemoryPool pool = limited(cuda)) {
      pool.allocate(LIMIT).close();
      stream
          .addCallback(() -> {
            assertThat(pool.freeAllBlocks(cuda.device(0))).isEqualTo(LIMIT);
            inside.set(pool.stats(cuda.device(0)));
            failure.set(
                catchThrowableOfType(
                    OutOfDeviceMemoryException.class,
                    () -> pool.allocate(512, cuda.device(0).nullStream())));
          })
          .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
      assertThat(inside.get().heldBytes()).isEqualTo(LIMIT);
      assertThat(inside.get().pendingBytes()).isEqualTo(LIMIT);
      assertThat(failure.get())
          .hasMessageContainingAll("held=" + LIMIT, "used=0", "pending=" + LIMIT)
          .hasMessageContaining("free 0 of a limit of " + LIMIT);
      stream.synchronize();
      pool.allocate(LIMIT).close();
      assertThat(pool.stats().pendingBytes()).isZero();
      pool.assertConsistent();
    }
  }

  @CudaTest
  void pinnedMemoryFreedInACallback_isPendingUntilItReturns(Cuda cuda, CudaStream stream)
      throws Exception {
    AtomicReference<PinnedPoolStats> inside = new AtomicReference<>();
    AtomicReference<OutOfPinnedMemoryException> failure = new AtomicReference<>();
    try (PinnedMemoryPool pool = limitedPinned(cuda)) {
      pool.allocate(LIMIT).close();
      stream
          .addCallback(() -> {
            pool.freeAllBlocks();
            inside.set(pool.stats());
            failure.set(
                catchThrowableOfType(OutOfPinnedMemoryException.class, () -> pool.allocate(512)));
          })
          .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
      assertThat(inside.get().heldBytes()).isEqualTo(LIMIT);
      assertThat(inside.get().pendingBytes()).isEqualTo(LIMIT);
      assertThat(failure.get())
          .hasMessageContainingAll("held=" + LIMIT, "used=0", "pending=" + LIMIT);
      stream.synchronize();
      pool.allocate(LIMIT).close();
      assertThat(pool.stats().pendingBytes()).isZero();
      pool.assertConsistent();
    }
  }

  private static String[] lines(CudaException e) {
    String[] lines = e.getMessage().split("\n");
    assertThat(lines).hasSizeGreaterThan(1);
    assertThat(lines[0]).hasSizeLessThanOrEqualTo(COLUMNS).doesNotContain("=");
    return lines;
  }

  private static MemoryPool limited(Cuda cuda) {
    MemoryPool pool = new MemoryPool(cuda);
    pool.setLimit(MemoryLimit.ofBytes(LIMIT));
    return pool;
  }

  private static PinnedMemoryPool limitedPinned(Cuda cuda) {
    return new PinnedMemoryPool(
        cuda, PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(LIMIT)));
  }
}
