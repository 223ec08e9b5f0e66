package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.callback.Callbacks;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ThreadState;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.ref.Reference;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is released and waited for where memory is short, and what an end that fails leaves. */
@Timeout(60)
class EngineRulesTest {
  private static final Set<String> FREES = Set.of("memFree", "memFreeHost", "memFreeAsync");
  private static final CudaOptions TWO = CudaOptions.simulated().withDevice("sim:devices=2");

  private final List<String> calls = new CopyOnWriteArrayList<>();

  private final AtomicInteger trims = new AtomicInteger();

  /** What the collector is not to find. */
  private final List<Object> kept = new ArrayList<>();

  /** The calls that fail, if any, for want of memory. */
  private volatile boolean isShort;

  private CudaDriver noting(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      String name = method.getName();
      if (isShort && name.equals("memAlloc")) {
        throw new CudaException(CudaStatus.OUT_OF_MEMORY, name, "the test's");
      }
      if (name.equals("memPoolTrimTo")) {
        trims.incrementAndGet();
      }
      if (FREES.contains(name) || name.equals("ctxSynchronize")) {
        calls.add(name + " " + arguments[0]);
      }
      return DriverProxy.forward(driver, method, arguments);
    });
  }

  /** Memory of each class and device that is cached and not in use. */
  private void fill(Cuda cuda) {
    for (int id = 0; id < 2; id++) {
      cuda.allocate(4096, cuda.device(id).nullStream()).close();
      cuda.device(id).synchronize();
    }
    cuda.allocatePinned(4096).close();
    for (int id = 0; id < 2; id++) {
      DeviceMemoryResource pool =
          new DeviceMemoryResource(cuda.device(id), DeviceMemoryResourceOptions.DEFAULTS);
      CudaStream stream = cuda.device(id).createStream();
      pool.allocate(4096, stream).close();
      kept.addAll(List.of(pool, stream));
    }
    calls.clear();
  }

  @Test
  void shortage_releasesWhatIsCached_ofItsOwnClassAndDeviceAlone() {
    for (int id = -1; id < 2; id++) {
      try (Cuda cuda = Cuda.open(TWO.withDecorator(this::noting))) {
        @Nullable Device device = id < 0 ? null : cuda.device(id).core();
        fill(cuda);
        trims.set(0);
        long released = cuda.engine().releaseCached(device);
        assertThat(trims.get() > 0).as("pools of the driver").isEqualTo(device != null);
        List<String> expected =
            device == null
                ? List.of("memFreeHost 0")
                : List.of("memFree " + id, "memFreeAsync " + id);
        assertThat(calls).containsExactlyInAnyOrderElementsOf(expected);
        assertThat(released).isPositive();
        calls.clear();
        assertThat(cuda.engine().releaseCached(device)).isZero();
        assertThat(calls).isEmpty();
      }
    }
    Reference.reachabilityFence(kept);
  }

  /** Its work takes as long as it likes, and gives the host nothing. */
  @Test
  void shortageOfTheHost_waitsForNoMemoryOfADevice() {
    List<BusyDriver> made = new ArrayList<>();
    CudaOptions options =
        TWO.withDecorator(driver -> {
          made.add(new BusyDriver(driver));
          return made.getLast();
        });
    try (Cuda cuda = Cuda.open(options)) {
      BusyDriver busy = Objects.requireNonNull(made.getFirst());
      CudaStream home = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      CudaStream other = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      Buffer buffer = MemoryResource.async().allocate(4096, home);
      home.synchronize(); // that is idle by what the driver says, whatever the seed
      busy.begin(other);
      buffer.recordUse(other);
      home.close();
      buffer.close();
      int before = busy.waits();
      cuda.engine().awaitFrees(null);
      assertThat(busy.waits()).isEqualTo(before);
      cuda.engine().awaitFrees(cuda.device(0).core());
      assertThat(busy.waits()).isGreaterThan(before);
      busy.finish(other);
    }
  }

  /** Then freeing some cannot wait for streams that others made. */
  @Test
  void deviceWithoutMemory_isWaitedForInAnotherWay() {
    try (Cuda cuda = Cuda.open(TWO.withDecorator(this::noting))) {
      for (int id = 0; id < 2; id++) {
        cuda.device(id).synchronize();
        assertThat(calls).containsExactly("memFree " + id);
        isShort = true;
        calls.clear();
        long before = cuda.device(id).core().waits();
        cuda.device(id).synchronize();
        assertThat(calls).containsExactly("ctxSynchronize " + id);
        assertThat(cuda.device(id).core().isAwaitedSince(before)).isTrue();
        isShort = false;
        calls.clear();
      }
    }
  }

  /** Nobody is to believe that its work is done. */
  @Test
  void deviceThatCallbacksLeaveNoGapToWaitFor_isNotTakenForOneThatWasWaitedFor() {
    try (Cuda cuda = Cuda.open(TWO.withDecorator(this::noting))) {
      Device device = cuda.device(0).core();
      long before = device.waits();
      cuda.session().frees().beginHold();
      cuda.device(0).synchronize();
      assertThat(calls).isEmpty();
      assertThat(device.isAwaitedSince(before)).isFalse();
      cuda.session().frees().endHold();
      cuda.device(0).synchronize();
      assertThat(calls).containsExactly("memFree 0");
      assertThat(device.isAwaitedSince(before)).isTrue();
    }
  }

  @Test
  void closeInsideCodeOfTheUser_isRefused_unlessAllIsClosed() {
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    ThreadState state = cuda.engine().session().state();
    state.enterCode("hook");
    assertThatThrownBy(cuda.engine()::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("hook");
    assertThat(cuda.isClosed()).isFalse();
    state.leave();
    cuda.close();
    state.enterCode("hook");
    assertThatCode(cuda.engine()::close).doesNotThrowAnyException();
    assertThatCode(cuda::close).doesNotThrowAnyException();
    state.leave();
  }

  /** What is not closed; the caller keeps it, for the collector is not to find it. */
  private static List<Object> leaveAllOpen(Cuda cuda) {
    List<Object> all = new ArrayList<>();
    CudaDevice device = cuda.device(0);
    CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
    CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
    Buffer used = cuda.allocate(4096, stream);
    used.fill((byte) 1, other);
    Buffer async = MemoryResource.async().allocate(4096, stream);
    async.recordUse(other);
    other.waitFor(stream.record());
    stream.waitFor(other);
    DeviceMemoryResource pool =
        new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
    all.addAll(List.of(used, async, pool, pool.allocate(4096, stream)));
    all.add(MemoryResource.direct().allocate(4096, stream));
    all.addAll(List.of(cuda.allocatePinned(4096), cuda.directPinned().allocate(4096)));
    all.add(stream.capture(() -> {}).instantiate());
    return all;
  }

  /** Where a call of each name comes first, and where last. */
  private static Set<Integer> endsOf(List<String> names) {
    Set<Integer> ends = new TreeSet<>();
    for (String name : names) {
      ends.add(names.indexOf(name));
      ends.add(names.lastIndexOf(name));
    }
    return ends;
  }

  /** Closes a Cuda, and once more; what the call of a number fails with, if it comes to that. */
  private static @Nullable Error closedTwice(int failing, List<String> names) {
    return closedTwice("", failing, names);
  }

  /** The same for one of the calls whose names begin so: how many others there are may differ. */
  private static @Nullable Error closedTwice(String which, int failing, List<String> names) {
    AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    CudaDriver over =
        DriverProxy.of((method, arguments) -> {
          if (DriverProxy.isCall(method) && left.get() <= failing) {
            names.add(method.getName());
            if (method.getName().startsWith(which) && left.getAndDecrement() == 0) {
              throw new StackOverflowError("the test's " + method.getName());
            }
          }
          return DriverProxy.forward(driver, method, arguments);
        });
    Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(over));
    List<Object> open = leaveAllOpen(cuda);
    left.set(failing);
    @Nullable Error failure = null;
    try {
      cuda.close();
    } catch (StackOverflowError e) {
      failure = e;
    }
    assertThat(failure != null).as("call %d is told", failing).isEqualTo(left.get() < 0);
    if (failure != null) {
      names.clear(); // those of the next close are of interest
    }
    assertThatCode(cuda::close).doesNotThrowAnyException();
    assertThat(driver.report()).as("after %s", failure).isEmpty();
    Reference.reachabilityFence(open);
    return failure;
  }

  /** Such as a full stack: nobody is there to go on but who closes it again. */
  @Test
  void errorInAnyCallOfTheEnd_leavesTheRestToTheNextClose() {
    List<String> names = new CopyOnWriteArrayList<>();
    assertThat(closedTwice(1_000_000, names)).isNull();
    assertThat(names).contains("memFree", "memPoolDestroy", "eventDestroy", "graphDestroy");
    List<Error> failures = new ArrayList<>();
    for (int number : endsOf(List.copyOf(names))) {
      Error failure = closedTwice(number, names);
      if (failure != null) {
        failures.add(failure);
      }
    }
    assertThat(failures).hasSizeGreaterThan(10);
  }

  /** Plain memory that comes and goes is that wait. */
  @Test
  void closeAfterAnErrorInTheLastCalls_waitsForTheDeviceOnceMore() {
    List<String> names = new CopyOnWriteArrayList<>();
    assertThat(closedTwice(1_000_000, names)).isNull();
    int last = Collections.frequency(names, "memFreeAsync") - 1;
    assertThat(closedTwice("memFreeAsync", last, names)).isNotNull();
    assertThat(names).containsOnlyOnce("memAlloc");
  }

  /**
   * Closes a Cuda whose page-locked memory is not freed, and in which a later call of a number
   * fails with an error; what that is told with, if it comes to both.
   */
  private static @Nullable Throwable closedAfterAFailure(int failing) {
    AtomicInteger left = new AtomicInteger(Integer.MAX_VALUE);
    AtomicBoolean hasFailed = new AtomicBoolean();
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    CudaDriver over =
        DriverProxy.of((method, arguments) -> {
          if (DriverProxy.isCall(method) && left.get() <= failing && left.get() >= 0) {
            String name = method.getName();
            if (left.getAndDecrement() == 0) {
              throw new StackOverflowError("the test's " + name);
            }
            if (name.equals("memFreeHost")) {
              hasFailed.set(true);
              throw new CudaException(CudaStatus.UNKNOWN, name, "the test's");
            }
          }
          return DriverProxy.forward(driver, method, arguments);
        });
    Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(over));
    List<Object> open = leaveAllOpen(cuda);
    left.set(failing);
    Throwable failure = catchThrowable(cuda::close);
    boolean isBoth = hasFailed.get() && left.get() < 0;
    assertThatCode(cuda::close).doesNotThrowAnyException();
    Reference.reachabilityFence(open);
    return isBoth ? failure : null;
  }

  @Test
  void errorInACallOfTheEnd_isToldWithWhatFailedBefore() {
    List<String> names = new CopyOnWriteArrayList<>();
    assertThat(closedTwice(1_000_000, names)).isNull();
    List<Throwable> errors = new ArrayList<>();
    for (int number : endsOf(List.copyOf(names))) {
      Throwable failure = closedAfterAFailure(number);
      if (failure instanceof StackOverflowError) {
        assertThat(failure.getSuppressed()).hasAtLeastOneElementOfType(CudaException.class);
        errors.add(failure);
      } else if (failure != null) {
        assertThat(failure.getSuppressed()).hasAtLeastOneElementOfType(StackOverflowError.class);
      }
    }
    assertThat(errors).hasSizeGreaterThan(3);
  }

  /** Without a stack that overflows somewhere in the engine. */
  @Test
  void hundredResources_callEachOther_andNoMore() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      ThreadState state = cuda.engine().session().state();
      for (int i = 1; i <= 100; i++) {
        state.enter("resource " + i);
      }
      assertThatThrownBy(() -> state.enter("one more"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("resource 100 allocated from itself");
      for (int i = 0; i < 100; i++) {
        state.leave();
      }
      state.checkOutsideCode("call");
    }
  }

  /** Else the end of the Cuda would wait for it. */
  @Test
  void callbackThatCouldNotBeQueued_isForgotten() throws ReflectiveOperationException {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    CudaDriver over =
        DriverProxy.of((method, arguments) -> {
          if (method.getName().equals("launchHostFunc")) {
            throw new CudaException(CudaStatus.OUT_OF_MEMORY, method.getName(), "the test's");
          }
          return DriverProxy.forward(driver, method, arguments);
        });
    Field open = Callbacks.class.getDeclaredField("open");
    open.setAccessible(true);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(over));
        CudaStream stream = cuda.device(0).createStream()) {
      assertThatThrownBy(() -> stream.addCallback(() -> {})).isInstanceOf(CudaException.class);
      assertThat((Set<?>) open.get(cuda.engine().callbacks())).isEmpty();
    }
  }
}
