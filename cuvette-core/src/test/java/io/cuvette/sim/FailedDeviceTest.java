package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A device that has failed says so to every call that needs it, and to whoever waits for it. */
class FailedDeviceTest {
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
  private static final CudaStatus FAILED = CudaStatus.LAUNCH_FAILED;

  private final SimulatedKernel failing =
      SimulatedKernel.of(
          "failsWhenItRuns",
          _ -> {
            throw new IllegalStateException("it fails");
          });
  private final SimulatedKernels.Registered registered = SimulatedKernels.register(failing);

  @AfterEach
  void unregister() {
    registered.close();
  }

  private static SimulatedDriver open() {
    return Attended.only(
        SimulatedDriver.open(SimulatedOptions.parse("devices=2,memory=64MiB,pace=lazy,queues=0")));
  }

  /** Queues what fails a device when it runs. */
  private void fail(SimulatedDriver driver, int device) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(failing)));
    long kernel = driver.kernels().libraryGetKernel(library, failing.name());
    LaunchParameters none = new LaunchParameters(MemorySegment.NULL, List.of());
    driver.kernels().launchKernel(device, 0, kernel, ONE, none);
  }

  /** What a free waits for may fail the device that is current, and not that of the memory. */
  @Test
  void freeOfMemoryOfAnotherDevice_saysThatTheCurrentOneHasFailed() {
    Map<String, ToLongFunction<SimulatedDriver>> kinds = new LinkedHashMap<>();
    kinds.put("managed", driver -> driver.memory().memAllocManaged(1, 64, 1).address());
    kinds.put("pooled", driver -> driver.ordered().memAllocAsync(1, 64, 0));
    kinds.forEach((name, kind) -> {
      try (SimulatedDriver driver = open()) {
        long memory = kind.applyAsLong(driver);
        driver.devices().ctxSynchronize(1);
        fail(driver, 0);
        SimTestBase.assertFails(FAILED, "it fails", () -> driver.memory().memFree(0, memory));
        SimTestBase.assertFails(
            CudaStatus.INVALID_VALUE, "live memory", () -> driver.memory().memFree(1, memory));
        assertThat(driver.liveAllocations()).as(name).isZero();
      }
    });
  }

  /** Who waits for work is told of it, whatever the wait, if the work fails meanwhile. */
  @Test
  void everyWait_saysThatTheDeviceHasFailedMeanwhile() {
    Map<String, BiConsumer<SimulatedDriver, Long>> waits = new LinkedHashMap<>();
    waits.put("stream", (driver, _) -> driver.streams().streamSynchronize(0, 0));
    waits.put("event", (driver, event) -> driver.events().eventSynchronize(0, event));
    waits.put("event, elsewhere", (driver, event) -> driver.events().eventSynchronize(1, event));
    waits.put("device", (driver, _) -> driver.devices().ctxSynchronize(0));
    for (int device = 0; device < 2; device++) {
      for (String kind : List.of("plain", "pinned", "managed", "registered")) {
        int current = device;
        waits.put("free of " + kind + " " + device, (driver, _) -> free(driver, current, kind));
      }
    }
    waits.forEach((name, wait) -> {
      try (SimulatedDriver driver = open()) {
        long event = driver.events().eventCreate(0, 0);
        driver.devices().ctxSynchronize(0);
        fail(driver, 0);
        driver.events().eventRecord(0, event, 0);
        assertThatThrownBy(() -> wait.accept(driver, event))
            .as(name)
            .isInstanceOfSatisfying(
                CudaException.class, e -> assertThat(e.status()).isEqualTo(FAILED))
            .hasMessageContaining("it fails");
      }
    });
  }

  /** Frees memory of the device that fails, with another one current perhaps. */
  private static void free(SimulatedDriver driver, int current, String kind) {
    MemoryCalls memory = driver.memory();
    switch (kind) {
      case "plain" -> memory.memFree(current, memory.memAlloc(0, 64));
      case "pinned" -> memory.memFreeHost(current, memory.memHostAlloc(0, 64, 0).address());
      case "managed" -> memory.memFree(current, memory.memAllocManaged(0, 64, 1).address());
      default -> {
        MemorySegment own = Arena.ofAuto().allocate(64, 8);
        memory.memHostRegister(0, own, 0);
        memory.memHostUnregister(current, own.address());
      }
    }
  }

  /** The calls that ask what is known without the context of a device, or look at pools. */
  private static final List<String> NEED_NO_CONTEXT =
      List.of(
          "deviceCanAccessPeer",
          "deviceGetAttribute",
          "deviceGetDefaultMemPool",
          "deviceGetMemPool",
          "deviceGetName",
          "deviceGetPciBusId",
          "deviceGetUuid",
          "deviceSetMemPool",
          "deviceTotalMem",
          "hostView",
          "memGetDefaultMemPool",
          "memGetMemPool",
          "memPoolGetAccess",
          "memPoolGetAttribute",
          "memPoolImportFromShareableHandle",
          "memPoolSetAccess",
          "memPoolSetAttribute",
          "memSetMemPool");

  /** The calls that refuse other things first. */
  private static final List<String> LOOK_FIRST =
      List.of("memAllocManaged", "memHostAlloc", "streamBeginCaptureToGraph");

  private static Object value(Class<?> type, Arena arena) {
    MatrixProduct.Operand lies = new MatrixProduct.Operand(false, 1, 0);
    Map<Class<?>, Object> values = new LinkedHashMap<>();
    values.put(int.class, 0);
    values.put(long.class, 0L);
    values.put(byte.class, (byte) 0);
    values.put(short.class, (short) 0);
    values.put(boolean.class, false);
    values.put(int[].class, new int[0]);
    values.put(long[].class, new long[0]);
    values.put(byte[].class, new byte[IpcCalls.HANDLE_BYTES]);
    values.put(String.class, "");
    values.put(List.class, List.of());
    values.put(Arena.class, arena);
    values.put(MemorySegment.class, arena.allocate(64));
    values.put(Runnable.class, (Runnable) () -> {});
    values.put(
        BoxCopy.class, new BoxCopy(new BoxCopy.Side(0, 1, 1), new BoxCopy.Side(0, 1, 1), 1, 1, 1));
    values.put(LaunchShape.class, ONE);
    values.put(LaunchParameters.class, new LaunchParameters(MemorySegment.NULL, List.of()));
    values.put(MathLibrary.class, MathLibrary.CUBLAS);
    values.put(
        MatrixProduct.class, new MatrixProduct(MatrixType.FLOAT, 1, 1, 1, lies, lies, lies, 1));
    values.put(GraphNodeParams.class, new GraphNodeParams.Empty());
    values.put(GraphMemAttribute.class, GraphMemAttribute.USED_HIGH);
    values.put(PoolProperties.class, new PoolProperties(1, 0, 1, 0, 0));
    values.put(AllocationProperties.class, AllocationProperties.ofDevice(0, 0));
    return values.getOrDefault(type, "unknown " + type);
  }

  private static boolean saysSo(Object calls, Method method, Arena arena) {
    Object[] arguments =
        Arrays.stream(method.getParameterTypes()).map(type -> value(type, arena)).toArray();
    try {
      Object _ = method.invoke(calls, arguments);
      return false;
    } catch (InvocationTargetException e) {
      return e.getCause() instanceof CudaException failure && failure.status() == FAILED;
    } catch (IllegalAccessException e) {
      throw new AssertionError(method.toString(), e);
    }
  }

  /** With arguments that are wrong too: the device comes first. */
  @Test
  void everyCallThatNeedsADevice_saysThatItHasFailed() {
    TreeSet<String> silent = new TreeSet<>();
    int said = 0;
    try (SimulatedDriver driver = open();
        Arena arena = Arena.ofConfined()) {
      fail(driver, 0);
      SimTestBase.assertFails(FAILED, "it fails", () -> driver.streams().streamSynchronize(0, 0));
      SimTestBase.assertFails(FAILED, "", () -> driver.memory().memAllocManaged(0, 1, 1));
      SimTestBase.assertFails(FAILED, "", () -> driver.memory().memHostAlloc(0, 1, 0));
      List<Object> all =
          List.of(
              driver.devices(),
              driver.memory(),
              driver.transfers(),
              driver.pools(),
              driver.ordered(),
              driver.streams(),
              driver.events(),
              driver.captures(),
              driver.sharing());
      for (Object calls : all) {
        for (Method method : calls.getClass().getInterfaces()[0].getMethods()) {
          boolean takesDevice = Arrays.asList(method.getParameterTypes()).contains(int.class);
          if (saysSo(calls, method, arena)) {
            said++;
          } else if (takesDevice) {
            silent.add(method.getName());
          }
        }
      }
    }
    TreeSet<String> expected = new TreeSet<>(NEED_NO_CONTEXT);
    expected.addAll(LOOK_FIRST);
    assertThat(silent).isEqualTo(expected);
    assertThat(said).isGreaterThan(30);
  }

  /** The other device goes on, and what waits for the one that failed learns of it. */
  @Test
  void whoWaitsForWorkThatFails_isToldSo_withAnyDeviceCurrent() {
    Map<String, ToLongFunction<SimulatedDriver>> made = new LinkedHashMap<>();
    made.put("device", d -> d.memory().memAlloc(0, 64));
    made.put("pinned", d -> d.memory().memHostAlloc(0, 64, 0).address());
    made.put("managed", d -> d.memory().memAllocManaged(0, 64, 1).address());
    made.put("pooled", d -> d.ordered().memAllocAsync(0, 64, 0));
    made.put(
        "registered",
        d -> {
          MemorySegment memory = Arena.ofAuto().allocate(64);
          d.memory().memHostRegister(0, memory, 0);
          return memory.address();
        });
    made.forEach((name, make) -> {
      for (int current = 0; current < 2; current++) {
        int by = current;
        try (SimulatedDriver driver = open()) {
          long address = make.applyAsLong(driver);
          driver.devices().ctxSynchronize(0);
          fail(driver, 0);
          SimTestBase.assertFails(
              FAILED,
              "it fails",
              () -> {
                switch (name) {
                  case "pinned" -> driver.memory().memFreeHost(by, address);
                  case "registered" -> driver.memory().memHostUnregister(by, address);
                  default -> driver.memory().memFree(by, address);
                }
              });
          driver.memory().memFree(1, driver.memory().memAlloc(1, 64));
        }
      }
    });
  }

  @Test
  void everyQuestion_isAnsweredWithTheFailure_andNothingElseIs() {
    for (int i = 0; i < 4; i++) {
      try (SimulatedDriver driver = open()) {
        long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
        long event = driver.events().eventCreate(0, 0);
        driver.events().eventRecord(0, event, stream);
        fail(driver, 0);
        List<Runnable> waits =
            List.of(
                () -> driver.streams().streamSynchronize(0, 0),
                () -> driver.devices().ctxSynchronize(0),
                () -> ask(driver),
                () -> driver.memory().memFree(0, driver.memory().memAlloc(0, 64)));
        SimTestBase.assertFails(FAILED, "it fails", waits.get(i)::run);
        SimTestBase.assertFails(FAILED, "", () -> driver.events().eventQuery(0, event));
        SimTestBase.assertFails(FAILED, "", () -> driver.events().eventSynchronize(0, event));
        SimTestBase.assertFails(FAILED, "", () -> driver.streams().streamQuery(0, stream));
        driver.devices().ctxSynchronize(1);
        assertThat(driver.streams().streamQuery(1, 0)).isTrue();
      }
    }
  }

  private static void ask(SimulatedDriver driver) {
    boolean done = false;
    while (!done) {
      done = driver.streams().streamQuery(0, 0);
    }
  }

  /** What stopped at a word on it is gone with it. */
  @Test
  void deviceThatFailsWhileAStreamWaitsForTheHost_holdsNoOtherUp() {
    try (SimulatedDriver driver = open()) {
      MemorySegment word = driver.memory().memHostAlloc(0, 4, 0);
      word.fill((byte) 0);
      long waiting = driver.streams().streamCreateWithPriority(0, 1, 0);
      driver.streams().streamWaitValue32(0, waiting, word.address(), 1, 1);
      fail(driver, 0);
      assertThatThrownBy(() -> driver.streams().streamSynchronize(0, 0))
          .isInstanceOf(CudaException.class);
      long there = driver.memory().memAlloc(1, 64);
      driver.transfers().memsetD8Async(1, there, (byte) 1, 64, 0);
      driver.streams().streamSynchronize(1, 0);
      assertThat(driver.streams().streamQuery(1, 0)).isTrue();
      driver.memory().memFree(1, there);
    }
  }
}
