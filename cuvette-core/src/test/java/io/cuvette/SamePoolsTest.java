package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.driverpool.BorrowedPool;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.driverpool.ImportedPool;
import io.cuvette.internal.driverpool.MadePool;
import io.cuvette.internal.driverpool.PoolOrigin;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Pools that are one for the driver: whose each is, and what it is asked before it ends. */
@Timeout(60)
class SamePoolsTest {
  private static final int READ_WRITE = 3;
  private static final long[] HANDLES = {7, 8};
  private static final PoolProperties PROPERTIES =
      new PoolProperties(MemAllocationType.PINNED, 0, MemLocationType.DEVICE, 0, 0);

  private enum Kind {
    MADE,
    IMPORTED,
    BORROWED
  }

  private record Known(Kind kind, DriverPool pool) {}

  private final List<String> calls = new ArrayList<>();

  /** The call that fails as long as it is there, and with what. */
  private String failing = "";

  private CudaStatus status = CudaStatus.SUCCESS;

  /** The handle of the pool that is made or imported next. */
  private long next;

  private final FakeDescriptors descriptors = new FakeDescriptors();
  private final Cuda cuda =
      Cuda.open(CudaOptions.simulated().withDevice("sim:devices=2").withDecorator(this::over));
  private final DriverPools pools = cuda.engine().driverPools();
  private final List<Known> all = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
    assertThat(descriptors.open()).isEmpty();
  }

  /** Knows of pools what it is told, and that all devices have access. */
  private CudaDriver over(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      String name = method.getName();
      if (name.startsWith("memPool")) {
        calls.add(name);
      }
      if (name.equals(failing)) {
        throw new CudaException(status, name, "the test's");
      }
      return switch (name) {
        case "memPoolCreate", "memPoolImportFromShareableHandle" -> next;
        case "memPoolGetAccess" -> READ_WRITE;
        case "memPoolGetAttribute" -> 0L;
        case "memPoolSetAccess", "memPoolSetAttribute", "memPoolDestroy", "memPoolTrimTo" -> null;
        default -> DriverProxy.forward(driver, method, arguments);
      };
    });
  }

  private Known pool(Kind kind, long handle) {
    next = handle;
    DriverPool pool =
        switch (kind) {
          case MADE -> MadePool.createKeeping(pools, PROPERTIES);
          case IMPORTED -> imported();
          case BORROWED -> BorrowedPool.borrow(pools, handle, null, false);
        };
    Known known = new Known(kind, pool);
    all.add(known);
    return known;
  }

  private DriverPool imported() {
    int file = descriptors.memoryFile("pool", 0);
    try (PoolHandle handle = PoolHandle.own(descriptors, file, null)) {
      return ImportedPool.imported(pools, cuda.device(0).core(), PoolOrigin.of(handle, pools));
    }
  }

  private boolean isAny(Known of, Kind kind) {
    return all.stream()
        .anyMatch(other ->
            other != of && other.kind() == kind && other.pool().handle() == of.pool().handle());
  }

  private void checkAll() {
    for (Known each : all) {
      boolean isMade = isAny(each, Kind.MADE);
      boolean isImported = isAny(each, Kind.IMPORTED);
      boolean isBorrowed =
          isMade || isAny(each, Kind.BORROWED) || (isImported && each.kind() != Kind.IMPORTED);
      assertThat(pools.isMadeHere(each.pool())).as("%s of %s", each, all).isEqualTo(isMade);
      assertThat(pools.isImportedHere(each.pool())).as("%s of %s", each, all).isEqualTo(isImported);
      assertThat(pools.isBorrowed(each.pool())).as("%s of %s", each, all).isEqualTo(isBorrowed);
    }
    for (long handle : new long[] {HANDLES[0], HANDLES[1], 9, 0}) {
      boolean isOwn =
          all.stream()
              .anyMatch(each -> each.kind() != Kind.IMPORTED && each.pool().handle() == handle);
      assertThat(pools.isOwn(handle)).as("0x%x of %s", handle, all).isEqualTo(isOwn);
    }
  }

  @Test
  void poolsOfOneHandle_areTheSame_whateverTheyAreHere() {
    checkAll();
    for (Kind first : Kind.values()) {
      for (Kind second : Kind.values()) {
        for (long handle : HANDLES) {
          pool(first, HANDLES[0]);
          checkAll();
          pool(second, handle);
          checkAll();
          pool(Kind.BORROWED, HANDLES[1]);
          checkAll();
          all.forEach(each -> each.pool().close());
          all.clear();
          assertThat(pools.hasRetired()).isFalse();
          checkAll();
        }
      }
    }
  }

  /** An old driver gives that for the pool of a device that has none. */
  @Test
  void handleOfNoPool_isNobodys() {
    DriverPool none = pool(Kind.BORROWED, 0).pool();
    assertThat(pools.isOwn(0)).isFalse();
    none.close();
  }

  private List<String> callsOfClosing(@Nullable Known pool) {
    calls.clear();
    if (pool != null) {
      pool.pool().close();
      all.remove(pool);
    }
    return List.copyOf(calls);
  }

  /** What is given back of one of two is not what the other needs. */
  @Test
  void poolsAccess_isTakenBeforeItsEnd_butNotFromOneThatIsImportedStill() {
    Known alone = pool(Kind.IMPORTED, 7);
    assertThat(callsOfClosing(alone))
        .as("a driver reports nothing of it but who has access")
        .containsExactly("memPoolGetAccess", "memPoolSetAccess", "memPoolDestroy");
    Known first = pool(Kind.IMPORTED, 7);
    Known second = pool(Kind.IMPORTED, 7);
    assertThat(callsOfClosing(first)).containsExactly("memPoolDestroy");
    assertThat(callsOfClosing(second)).endsWith("memPoolSetAccess", "memPoolDestroy");
    Known made = pool(Kind.MADE, 7);
    Known other = pool(Kind.IMPORTED, 8);
    assertThat(callsOfClosing(made)).endsWith("memPoolSetAccess", "memPoolDestroy");
    assertThat(callsOfClosing(other)).endsWith("memPoolSetAccess", "memPoolDestroy");
    Known borrowed = pool(Kind.BORROWED, 7);
    assertThat(callsOfClosing(borrowed)).as("it is somebody else's").isEmpty();
  }

  /** One that is imported, and waits for its end, is in nobody's way. */
  @Test
  void madePoolsAccess_isTakenBeforeItsEnd_alsoIfAnImportWaitsForThat() {
    Known made = pool(Kind.MADE, 7);
    Known imported = pool(Kind.IMPORTED, 7);
    assertThat(callsOfClosing(imported)).doesNotContain("memPoolDestroy");
    assertThat(pools.hasRetired()).isTrue();
    assertThat(callsOfClosing(made)).containsSubsequence("memPoolSetAccess", "memPoolDestroy");
    pools.poll();
    assertThat(destroyed()).isEqualTo(2);
    assertThat(pools.hasRetired()).isFalse();
  }

  private static List<CudaStatus> failures() {
    return Arrays.stream(CudaStatus.values()).filter(each -> each != CudaStatus.SUCCESS).toList();
  }

  private long destroyed() {
    return calls.stream().filter("memPoolDestroy"::equals).count();
  }

  /** The owner of what was imported as another device's cannot lose its access. */
  @Test
  void poolWhoseAccessCannotBeTaken_isDestroyedOnceItCan_orIfTheDriverHasNoneToTake() {
    for (Kind kind : List.of(Kind.MADE, Kind.IMPORTED)) {
      for (CudaStatus each : failures()) {
        boolean hasNone = each == CudaStatus.INVALID_VALUE || each == CudaStatus.INVALID_DEVICE;
        Known pool = pool(kind, 7);
        calls.clear();
        status = each;
        failing = "memPoolSetAccess";
        Throwable thrown = catchThrowable(pool.pool()::close);
        assertThat(thrown == null).as("%s", each).isEqualTo(hasNone);
        assertThat(destroyed()).as("%s", each).isEqualTo(hasNone ? 1 : 0);
        assertThat(pools.hasRetired()).isEqualTo(!hasNone);
        pools.poll();
        assertThat(destroyed()).as("still not").isEqualTo(hasNone ? 1 : 0);
        failing = "";
        pools.poll();
        assertThat(destroyed()).as("%s", each).isEqualTo(1);
        assertThat(pools.hasRetired()).isFalse();
      }
    }
  }

  /** After an error of the device its handle may be another's. */
  @Test
  void poolThatCannotBeDestroyed_isTriedAgain_unlessItMayBeGone() {
    for (Kind kind : List.of(Kind.MADE, Kind.IMPORTED)) {
      for (CudaStatus each : failures()) {
        boolean mayBeGone = Once.mayBeDone(new CudaException(each, "call", "the test's"));
        Known pool = pool(kind, 7);
        calls.clear();
        status = each;
        failing = "memPoolDestroy";
        assertThatThrownBy(pool.pool()::close).as("%s", each).isInstanceOf(CudaException.class);
        assertThat(destroyed()).isEqualTo(1);
        assertThat(pools.hasRetired()).isTrue();
        int made = calls.size();
        pools.poll();
        assertThat(destroyed()).as("%s", each).isEqualTo(mayBeGone ? 1 : 2);
        assertThat(calls.size() == made).as("nor asked about").isEqualTo(mayBeGone);
        failing = "";
        pools.poll();
        assertThat(destroyed()).as("%s", each).isEqualTo(mayBeGone ? 1 : 3);
        assertThat(pools.hasRetired()).isFalse();
        pools.poll();
        assertThat(destroyed()).as("%s", each).isEqualTo(mayBeGone ? 1 : 3);
      }
    }
  }

  /** Of host memory the driver gives none back as long as some is mapped. */
  @Test
  void oneOfTwoImports_thatCannotBeGivenBack_goesWithTheOther() {
    for (CudaStatus each : failures()) {
      if (Once.mayBeDone(new CudaException(each, "call", "the test's"))) {
        continue;
      }
      Known first = pool(Kind.IMPORTED, 7);
      Known second = pool(Kind.IMPORTED, 7);
      assertThat(descriptors.open()).hasSize(2);
      calls.clear();
      status = each;
      failing = "memPoolDestroy";
      assertThatCode(first.pool()::close).as("%s", each).doesNotThrowAnyException();
      assertThat(descriptors.open()).as("it needs none").hasSize(1);
      assertThat(pools.hasRetired()).isTrue();
      failing = "";
      calls.clear();
      second.pool().close();
      pools.poll();
      assertThat(destroyed()).as("%s", each).isEqualTo(2);
      assertThat(pools.hasRetired()).isFalse();
      assertThat(descriptors.open()).isEmpty();
    }
  }
}
