package io.cuvette.testkit.device;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.DebugPrintHook;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.GraphMemory;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.ManagedMemoryResourceOptions.LocationType;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.NativeFunctionResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.Registration;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.FirstDevice;
import io.cuvette.testkit.support.NativeFunctions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What handles and callbacks of users say of one device, whichever is the first. */
class SecondDeviceHandlesTest {
  private static final int PAGE = 64 << 10;

  private static void watch(ScriptedDriver driver) {
    FirstDevice.watch(driver);
    for (String name : List.of("deviceGetAttribute", "memPoolGetAccess")) {
      driver.note(name, _ -> null); // resources ask about all devices
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void handles_sayTheDeviceThatTheyAreOf(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) @NonBlocking CudaStream stream) {
    watch(driver);
    CudaDevice device = stream.device();
    try (CudaGraph graph = stream.capture(() -> {});
        CudaGraphExec executable = graph.instantiate();
        GraphMemory memory = device.createGraphMemory();
        DeviceMemoryResource resource = new DeviceMemoryResource(device);
        ManagedMemoryResource managed =
            new ManagedMemoryResource(
                cuda, ManagedMemoryResourceOptions.of(LocationType.DEVICE, 1))) {
      assertThat(
              List.of(
                  graph.deviceId(),
                  executable.deviceId(),
                  memory.deviceId(),
                  resource.deviceId(),
                  managed.deviceId()))
          .containsOnly(1);
      assertThat(stream.priority()).isZero();
      device.profiler().start();
      device.profiler().stop();
    }
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void managedMemory_isMovedToTheDevice_andAdvisedForIt(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    watch(driver);
    MemoryLocation place = MemoryLocation.device(stream.device());
    try (ManagedBuffer buffer = (ManagedBuffer) MemoryResource.managed().allocate(PAGE, stream)) {
      buffer.prefetch(place, stream);
      buffer.advise(MemoryAdvice.SET_PREFERRED_LOCATION, place);
      buffer.advise(MemoryAdvice.SET_ACCESSED_BY, place);
      stream.synchronize();
      assertThat(buffer.lastPrefetchLocation()).contains(place);
      assertThat(buffer.preferredLocation()).contains(place);
      assertThat(buffer.accessedBy()).containsExactly(place);
    }
    try (ManagedMemoryResource current = ManagedMemoryResource.ofCurrent(cuda, place)) {
      assertThat(current.deviceId()).isOne();
    }
    ManagedMemoryResourceOptions options =
        ManagedMemoryResourceOptions.DEFAULTS.withPreferredLocation(place);
    new ManagedMemoryResource(cuda, options).close();
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void hooksAndListeners_areToldTheDevice(
      ScriptedDriver driver, MemoryPool pool, @OnDevice(1) CudaStream stream) {
    List<CudaDevice> told = new ArrayList<>();
    StringBuilder printed = new StringBuilder();
    MemoryHook hook =
        new MemoryHook() {
          @Override
          public void allocPostprocess(Growth growth) {
            told.add(growth.device());
          }

          @Override
          public void mallocPostprocess(Block block) {
            told.add(block.device());
          }
        };
    try (Registration _ = pool.addHook(hook);
        Registration _ = pool.addHook(new DebugPrintHook(printed));
        Registration _ =
            pool.addPressureListener((device, _) -> {
              told.add(device);
              return 0;
            })) {
      pool.allocate(PAGE, stream).close();
      driver.fail("memAlloc", CudaStatus.OUT_OF_MEMORY);
      assertThatThrownBy(() -> pool.allocate(64 * MIB, stream))
          .isInstanceOf(OutOfDeviceMemoryException.class);
    }
    assertThat(told).hasSizeGreaterThanOrEqualTo(3).containsOnly(stream.device());
    assertThat(printed.toString()).contains("\"device_id\":1").doesNotContain("\"device_id\":0");
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void functionsOfOthers_areGivenTheDevice(Subject subject, @OnDevice(1) CudaStream stream) {
    List<Integer> devices = new ArrayList<>();
    try (Arena arena = Arena.ofShared()) {
      NativeFunctions functions =
          new NativeFunctions(
              subject,
              arena,
              (_, bytes, device) -> {
                devices.add(device);
                return subject.cuda().driver().memory().memAlloc(device, bytes);
              },
              (_, address, device) -> {
                devices.add(device);
                subject.cuda().driver().memory().memFree(device, address);
              });
      new NativeFunctionResource(functions.malloc(), functions.free(), MemorySegment.NULL, arena)
          .allocate(PAGE, stream)
          .close();
    }
    assertThat(devices).containsExactly(1, 1);
  }

  @CudaTest(devices = 2)
  void streamsOfThreadsAndOfCallbacks_areOfTheirDevice(
      Cuda cuda, CudaStream first, @OnDevice(1) CudaStream second) {
    for (int i = 0; i < 2; i++) {
      for (CudaStream stream : List.of(first, second)) {
        CudaDevice device = stream.device();
        assertThat(device.perThreadStream().device()).isEqualTo(device);
        stream
            .addCallback(() -> assertThat(cuda.currentStream(device).device()).isEqualTo(device))
            .join();
      }
    }
  }

  @CudaTest(devices = 2, peers = "none")
  void poolOfAnotherDevice_isRefusedWhereverNewOnesAreChosen(Cuda cuda) {
    PoolProperties ofFirst = new PoolProperties(1, 0, 1, 0, 0);
    long pool = cuda.driver().pools().memPoolCreate(ofFirst);
    List<AsyncPoolChoice> choices =
        List.of(AsyncPoolChoice.ofNew(0), AsyncPoolChoice.ofHandle(pool));
    assertThatThrownBy(() -> new AsyncMemoryPool(cuda, choices))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("no pool that device 1");
    cuda.driver().pools().memPoolDestroy(pool);
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void hostMemory_isMadeAccessibleToEachDeviceThatHasNoAccess(Cuda cuda, ScriptedDriver driver) {
    driver.answer(
        "memPoolGetAccess",
        call ->
            call.number("locationId") == 0 ? (Object) MemAccessFlags.READ_WRITE : call.proceed());
    driver.note(
        "memPoolSetAccess", call -> Arrays.toString(call.argument("locationIds", int[].class)));
    new PinnedMemoryResource(cuda).close();
    assertThat(driver.notes()).containsExactly("[1]");
  }
}
