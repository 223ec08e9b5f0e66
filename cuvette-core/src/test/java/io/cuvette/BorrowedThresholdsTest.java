package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.driverpool.BorrowedPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.DriverPools;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The release thresholds of pools that several borrow at once, some of whom keep what is freed. */
@Timeout(60)
class BorrowedThresholdsTest {
  private static final long KEEP_ALL = MemPoolAttribute.KEEP_ALL;
  private static final PoolProperties PROPERTIES =
      new PoolProperties(MemAllocationType.PINNED, 0, MemLocationType.DEVICE, 0, 0);

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final DriverPools pools = cuda.engine().driverPools();

  @AfterEach
  void close() {
    cuda.close();
  }

  private record Borrower(DriverPool pool, boolean isKeeping) {}

  private long threshold(long pool) {
    return cuda.driver().pools().memPoolGetAttribute(pool, MemPoolAttribute.RELEASE_THRESHOLD);
  }

  private void check(Map<Long, List<Borrower>> open, Map<Long, Long> own) {
    open.forEach((handle, users) -> {
      boolean isKept = users.stream().anyMatch(Borrower::isKeeping);
      long before = own.get(handle);
      assertThat(threshold(handle)).isEqualTo(isKept ? KEEP_ALL : before);
      assertThat(pools.thresholds().before(handle)).isEqualTo(isKept ? before : KEEP_ALL);
    });
  }

  /** Those who keep nothing change nothing, whenever they come and go. */
  @Test
  void threshold_isRaisedAsLongAsSomebodyKeeps_andThenAsItWas() {
    SplittableRandom random = new SplittableRandom(11);
    Map<Long, List<Borrower>> open = new HashMap<>();
    Map<Long, Long> own = new HashMap<>();
    for (int i = 0; i < 3; i++) {
      long handle = cuda.driver().pools().memPoolCreate(PROPERTIES);
      long bytes = i << 20;
      cuda.driver().pools().memPoolSetAttribute(handle, MemPoolAttribute.RELEASE_THRESHOLD, bytes);
      open.put(handle, new ArrayList<>());
      own.put(handle, bytes);
    }
    List<Long> handles = List.copyOf(open.keySet());
    for (int step = 0; step < 600; step++) {
      long handle = handles.get(random.nextInt(handles.size()));
      List<Borrower> users = open.get(handle);
      if (random.nextBoolean() || users.isEmpty()) {
        boolean isKeeping = random.nextInt(3) == 0;
        users.add(new Borrower(BorrowedPool.borrow(pools, handle, null, isKeeping), isKeeping));
      } else {
        Borrower gone = users.remove(random.nextInt(users.size()));
        gone.pool().close();
        gone.pool().close();
      }
      check(open, own);
    }
    open.values().forEach(users -> users.forEach(each -> each.pool().close()));
    own.forEach((handle, bytes) -> assertThat(threshold(handle)).isEqualTo(bytes));
  }

  /** By its handle it is there until it is given back; of a place it may be another one by now. */
  @Test
  void thresholdOfAPoolThatMayBeGone_isNotTouched() {
    for (boolean isByHandle : new boolean[] {true, false}) {
      for (boolean isCurrent : new boolean[] {true, false}) {
        for (boolean isKeeping : new boolean[] {true, false}) {
          long handle = cuda.driver().pools().memPoolCreate(PROPERTIES);
          AtomicLong current = new AtomicLong(handle);
          DriverPool pool =
              isByHandle
                  ? BorrowedPool.borrow(pools, handle, null, isKeeping)
                  : BorrowedPool.borrow(pools, handle, current::get, isKeeping);
          current.set(isCurrent ? handle : 0);
          pool.close();
          boolean isLeft = isKeeping && !isByHandle && !isCurrent;
          assertThat(threshold(handle)).isEqualTo(isLeft ? KEEP_ALL : 0);
          assertThat(pools.thresholds().before(handle)).as("nobody").isEqualTo(KEEP_ALL);
          cuda.driver().pools().memPoolDestroy(handle);
        }
      }
    }
  }

  /** What it keeps unused is its owner's, but for what it keeps because of this Cuda. */
  @Test
  void poolOfOthers_isTrimmedOnlyAsLongAsItIsRaised() {
    for (boolean isKeeping : new boolean[] {true, false}) {
      long handle = cuda.driver().pools().memPoolCreate(PROPERTIES);
      DriverPool pool = BorrowedPool.borrow(pools, handle, null, isKeeping);
      cuda.driver()
          .pools()
          .memPoolSetAttribute(handle, MemPoolAttribute.RELEASE_THRESHOLD, KEEP_ALL);
      fillOnce(handle);
      long kept = reserved(handle);
      assertThat(kept).isPositive();
      pool.trimKept();
      assertThat(reserved(handle)).isEqualTo(isKeeping ? 0 : kept);
      pool.close();
      cuda.driver().pools().memPoolDestroy(handle);
    }
  }

  private void fillOnce(long handle) {
    try (CudaStream stream = cuda.device(0).createStream()) {
      long address =
          cuda.driver().ordered().memAllocFromPoolAsync(0, 1 << 20, handle, stream.handle());
      cuda.driver().ordered().memFreeAsync(0, address, stream.handle());
      cuda.driver().streams().streamSynchronize(0, stream.handle());
    }
  }

  private long reserved(long handle) {
    return cuda.driver().pools().memPoolGetAttribute(handle, MemPoolAttribute.RESERVED_MEM_CURRENT);
  }
}
