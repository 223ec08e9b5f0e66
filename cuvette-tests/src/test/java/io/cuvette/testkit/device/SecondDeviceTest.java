package io.cuvette.testkit.device;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EventOptions;
import io.cuvette.GrowableBuffer;
import io.cuvette.GrowableOptions;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.FirstDevice;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is done on one device is asked of the driver for that device, whichever is the first. */
class SecondDeviceTest {
  private static final int MIB = 1 << 20;

  private static void use(Buffer buffer, CudaStream stream) {
    buffer.fill((byte) 1, stream);
    buffer.fillShorts((short) 1, stream);
    buffer.fillInts(1, stream);
    buffer.recordUse(stream);
    MemorySegment host = MemorySegment.ofArray(new byte[(int) buffer.byteSize()]);
    buffer.copyFrom(host);
    buffer.copyTo(host);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment nativeHost = arena.allocate(buffer.byteSize());
      buffer.copyFrom(nativeHost, stream);
      buffer.copyTo(nativeHost, stream);
      buffer.copyFrom(nativeHost.asSlice(0, 64), stream);
      buffer.copyFromAsync(nativeHost, stream).join();
    }
    buffer.slice(0, 64).copyFrom(buffer.slice(128, 64), stream);
    buffer.slice(0, 64).copyFromAsync(buffer.slice(128, 64), stream).join();
    stream.synchronize();
    assertThat(buffer.device()).isEqualTo(stream.device());
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void streamOfOthers_isAskedWhetherItBlocks_onItsDevice(Cuda cuda, ScriptedDriver driver) {
    FirstDevice.watch(driver);
    long handle = cuda.driver().streams().streamCreateWithPriority(1, 1, 0);
    try (CudaStream stream = cuda.device(1).wrapStream(handle, null)) {
      assertThat(stream.isNonBlocking()).isTrue();
      stream.synchronize();
    }
    cuda.driver().streams().streamDestroy(1, handle);
    assertThat(driver.takeNotes()).isEmpty();
  }

  /** A wait would make its context, which takes hundreds of megabytes. */
  @Test
  void deviceThatNobodyUsed_isNotWaitedForAtTheEnd() {
    ScriptedDriver driver = new ScriptedDriver();
    try (driver;
        Cuda cuda =
            Cuda.open(
                CudaOptions.DEFAULTS.withDevice("sim:devices=2").withDecorator(driver::over))) {
      cuda.device(1).createStream().close();
      FirstDevice.watch(driver);
    }
    assertThat(driver.takeNotes()).isEmpty();
  }

  @CudaTest(devices = 3, simulatedOnly = true)
  void devicesOfAPool_areLookedAtInOrderOfTheirNumbers_whicheverWasUsedFirst(
      Cuda cuda, ScriptedDriver driver) {
    MemoryPool pool = new MemoryPool(cuda);
    for (int device : new int[] {2, 0, 1}) {
      pool.allocate(MIB, cuda.device(device).nullStream()).close();
    }
    driver.note("memFree", call -> "device " + call.number("device"));
    pool.close();
    assertThat(driver.takeNotes()).containsExactly("device 0", "device 1", "device 2");
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void descriptorOfAnEvent_isAskedOfItsDeviceAlone_andOnce(Cuda cuda, ScriptedDriver driver) {
    FirstDevice.watch(driver);
    EventOptions options = EventOptions.ORDER_ONLY.withInterprocess(true);
    try (CudaEvent event = cuda.device(1).createEvent(options)) {
      assertThat(event.descriptor()).isEqualTo(event.descriptor());
    }
    assertThat(driver.takeNotes()).isEmpty();
    assertThat(driver.count("ipcGetEventHandle")).isOne();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryOfEachKind_isTheBusinessOfItsDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    for (Kind kind : Kind.values()) {
      try (Scope _ = stream.use();
          Buffer buffer =
              kind == Kind.ASYNC // which is on the null stream there
                  ? MemoryResource.async().allocate(3 * MIB, stream)
                  : kind.allocate(stream.device(), 3 * MIB)) {
        use(buffer, stream);
      }
      assertThat(driver.takeNotes()).as("%s", kind).isEmpty();
    }
    try (Scope _ = stream.use();
        PinnedBuffer pinned = cuda.directPinned().allocate(MIB);
        Buffer shared = MemoryResource.direct().allocate(MIB, stream)) {
      shared.copyFrom(pinned);
      assertThat(shared.descriptor().byteSize()).isEqualTo(MIB);
    }
    assertThat(driver.takeNotes()).as("direct, and shared").isEmpty();
    cuda.device(1).synchronize();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryOfEachPool_isTheBusinessOfItsDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    driver.note("memPoolGetAccess", _ -> null); // a resource asks who has access
    try (Scope _ = stream.use();
        MemoryPool caching = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        AsyncMemoryPool async = new AsyncMemoryPool(cuda);
        DeviceMemoryResource resource =
            new DeviceMemoryResource(cuda.device(1), DeviceMemoryResourceOptions.DEFAULTS)) {
      boolean _ = driver.takeNotes().isEmpty(); // pools have a part for each device
      for (MemoryResource pool : List.of(caching, elastic, async, resource)) {
        try (Buffer buffer = pool.allocate(3 * MIB, stream)) {
          use(buffer, stream);
        }
        assertThat(driver.takeNotes()).as("%s", pool).isEmpty();
      }
      caching.freeAllBlocks();
      elastic.freeAllBlocks();
      async.freeAllBlocks();
      resource.trimTo(0);
      assertThat(driver.takeNotes()).as("given back").isEmpty();
    }
    assertThat(driver.takeNotes()).as("closed").isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void shortageOfADevice_isItsBusinessAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    for (String name : List.of("memAlloc", "memAllocAsync", "memAllocFromPoolAsync", "memCreate")) {
      driver.fail(name, CudaStatus.OUT_OF_MEMORY);
    }
    try (MemoryPool caching = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        AsyncMemoryPool own = new AsyncMemoryPool(cuda)) {
      FirstDevice.watch(driver);
      for (MemoryResource pool :
          List.of(MemoryResource.direct(), MemoryResource.async(), caching, elastic, own)) {
        assertThatThrownBy(() -> pool.allocate(MIB, stream))
            .isInstanceOfSatisfying(
                OutOfDeviceMemoryException.class,
                e -> assertThat(e.details().device()).isEqualTo(1));
        assertThat(driver.takeNotes()).as("%s", pool).isEmpty();
      }
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void pagesAndWhatOthersHave_areTheBusinessOfTheirDeviceAlone(
      Cuda cuda, ScriptedDriver driver, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(driver);
    CudaDevice device = stream.device();
    try (Scope _ = stream.use();
        Arena arena = Arena.ofShared();
        GrowableBuffer growable = device.growable(64 * MIB);
        PinnedBuffer registered = cuda.registerHost(arena.allocate(MIB, 4096))) {
      growable.grow(3 * MIB);
      use(growable, stream);
      growable.shrink(MIB);
      assertThat(driver.takeNotes()).as("growable").isEmpty();
      use(registered, stream);
      assertThat(driver.takeNotes()).as("registered").isEmpty();
      try (Buffer wrapped = device.wrap(growable.address(), MIB, growable)) {
        use(wrapped, stream);
      }
      assertThat(driver.takeNotes()).as("wrapped").isEmpty();
    }
    assertThat(driver.takeNotes()).as("closed").isEmpty();
  }

  @CudaTest(devices = 2, peers = "none")
  void poolsThatAreNewOrOfOthers_areOfTheirDevice(Cuda cuda, ScriptedDriver driver) {
    CudaStream stream = cuda.device(1).nullStream();
    PoolProperties properties =
        new PoolProperties(
            MemAllocationType.PINNED, MemHandleType.NONE, MemLocationType.DEVICE, 1, 0);
    long others = cuda.driver().pools().memPoolCreate(properties);
    driver.note("memPoolGetAccess", call -> "access of " + call.number("locationId"));
    driver.note(
        "memPoolCreate",
        call -> "pool of " + call.argument("properties", PoolProperties.class).locationId());
    for (List<AsyncPoolChoice> choices :
        List.of(
            List.of(AsyncPoolChoice.ofDefault(), AsyncPoolChoice.ofHandle(others)),
            List.of(AsyncPoolChoice.ofNew(0), AsyncPoolChoice.ofNew(0)))) {
      try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, choices)) {
        pool.allocate(MIB, stream).close();
        stream.synchronize();
      }
    }
    assertThat(driver.notes()).startsWith("access of 1", "pool of 1");
    cuda.driver().pools().memPoolDestroy(others);
  }

  @CudaTest(devices = 2, peers = "all")
  void peers_areAskedWhetherTheyHaveAccessToTheMemoryOfTheDevice(Cuda cuda, ScriptedDriver driver) {
    driver.note(
        "deviceCanAccessPeer", call -> call.number("device") + " to " + call.number("peer"));
    driver.note("memSetAccess", call -> Arrays.toString(call.argument("locationIds", int[].class)));
    List<CudaDevice> peers = new ArrayList<>(cuda.devices());
    peers.addAll(cuda.devices()); // each is asked and named once
    GrowableOptions options = GrowableOptions.ofMaxBytes(MIB).withPeers(peers);
    for (CudaDevice device : cuda.devices()) {
      try (GrowableBuffer growable = device.growable(options)) {
        growable.grow(MIB);
      }
    }
    assertThat(driver.notes()).containsExactly("1 to 0", "[0, 1]", "0 to 1", "[1, 0]");
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void streamsAndCallbacks_areTheBusinessOfTheirDeviceAlone(
      ScriptedDriver driver, @OnDevice(1) CudaStream first) {
    FirstDevice.watch(driver);
    CudaDevice device = first.device();
    try (CudaStream stream = device.createStream();
        CudaEvent event = first.record()) {
      stream.waitFor(first);
      stream.waitFor(event);
      stream.addCallback(() -> {}).join();
      stream.onComplete().join(); // by what may still hold the stream
      stream.synchronize();
      assertThat(stream.isDone()).isTrue();
      device.nullStream().synchronize();
      device.synchronize();
    }
    assertThat(device.memoryInfo().freeBytes()).isPositive();
    assertThat(driver.notes()).isEmpty();
  }

  /** A batch has addresses alone, which the stream's device may not have access to. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void batchWithMemoryThatTheStreamsDeviceCannotAccess_isCopiedByItsOwner(
      Cuda cuda,
      ScriptedDriver script,
      @NonBlocking CudaStream near,
      @OnDevice(1) DeviceMemoryResource resource,
      @OnDevice(1) CudaStream far) {
    try (PinnedBuffer in = cuda.allocatePinned(MIB);
        PinnedBuffer out = cuda.allocatePinned(MIB);
        Buffer kept = resource.allocate(MIB, far);
        Buffer plain = MemoryResource.direct().allocate(MIB, near)) {
      far.synchronize();
      in.segment().fill((byte) 6);
      CopyBatch.of(halves(kept), halves(in)).copy(near);
      near.synchronize();
      CopyBatch.of(halves(out), halves(kept)).copy(near);
      near.synchronize();
      assertThat(out.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(6);
      assertThat(script.count("memcpyBatchAsync")).isZero();
      in.segment().fill((byte) 5);
      CopyBatch.of(halves(plain), halves(in)).copy(near);
      CopyBatch.of(halves(out), halves(plain)).copy(near);
      near.synchronize();
      assertThat(out.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(5);
      assertThat(script.count("memcpyBatchAsync")).isEqualTo(2);
    }
  }

  private static List<Buffer> halves(Buffer buffer) {
    long half = buffer.byteSize() / 2;
    return List.of(buffer.slice(0, half), buffer.slice(half, half));
  }
}
