package io.cuvette.testkit.async;

import static io.cuvette.driver.CudaStatus.INVALID_VALUE;
import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.ManagedMemoryResourceOptions.LocationType;
import io.cuvette.MemoryLocation;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Pools of managed memory, and where they keep it preferably. */
class ManagedResourceTest {
  private static final int CONCURRENT_MANAGED_ACCESS = 89;
  private static final int HOST_NUMA_ID = 134;
  private static final ManagedMemoryResourceOptions DEFAULTS =
      ManagedMemoryResourceOptions.DEFAULTS;

  /** Notes of what pools were made, or are borrowed. */
  private static void notePools(ScriptedDriver driver) {
    driver.note(
        "memPoolCreate",
        call -> {
          PoolProperties properties = call.argument("properties", PoolProperties.class);
          return "%d %d:%d max %d handles %d"
              .formatted(
                  properties.allocationType(),
                  properties.locationType(),
                  properties.locationId(),
                  properties.maxBytes(),
                  properties.handleTypes());
        });
    driver.note(
        "memGetMemPool",
        call ->
            "current %d %d:%d"
                .formatted(
                    call.number("allocationType"),
                    call.number("locationType"),
                    call.number("locationId")));
  }

  private static void answerNode(ScriptedDriver driver, OptionalInt node) {
    answerAttribute(driver, HOST_NUMA_ID, node);
  }

  /** None is an attribute that the driver does not know. */
  private static void answerAttribute(ScriptedDriver driver, int attribute, OptionalInt value) {
    driver.answer(
        "deviceGetAttribute",
        call -> {
          if (call.number("attribute") != attribute) {
            return call.proceed();
          }
          return value.orElseThrow(() -> new CudaException(INVALID_VALUE.code(), call.name()));
        });
  }

  /** The rows of the options' table: the pool that is made, and what the resource says. */
  @CudaTest
  void everyRowOfTheTable_makesItsPool(Cuda cuda, ScriptedDriver driver) {
    notePools(driver);
    answerNode(driver, OptionalInt.of(0));
    MemoryLocation device = MemoryLocation.device(cuda.device(0));
    MemoryLocation node = MemoryLocation.hostNuma(0);
    row(cuda, driver, DEFAULTS, "0:0", null);
    row(cuda, driver, DEFAULTS.withPreferredLocation(null), "0:0", null);
    row(cuda, driver, DEFAULTS.withPreferredLocation(-1), "2:0", MemoryLocation.host());
    row(cuda, driver, DEFAULTS.withPreferredLocation(0), "1:0", device);
    row(cuda, driver, of(LocationType.DEVICE, 0), "1:0", device);
    row(cuda, driver, DEFAULTS.withPreferredLocation(device), "1:0", device);
    row(cuda, driver, DEFAULTS.withHost(), "2:0", MemoryLocation.host());
    row(
        cuda,
        driver,
        DEFAULTS.withPreferredLocation(MemoryLocation.host()),
        "2:0",
        MemoryLocation.host());
    row(cuda, driver, of(LocationType.HOST_NUMA, 0), "3:0", node);
    row(cuda, driver, DEFAULTS.withPreferredLocation(node), "3:0", node);
    row(cuda, driver, DEFAULTS.withHostNuma(), "3:0", node);
  }

  private static ManagedMemoryResourceOptions of(LocationType type, int location) {
    return ManagedMemoryResourceOptions.of(type, location);
  }

  private static void row(
      Cuda cuda,
      ScriptedDriver driver,
      ManagedMemoryResourceOptions options,
      String location,
      MemoryLocation preferred) {
    try (ManagedMemoryResource resource = new ManagedMemoryResource(cuda, options)) {
      assertThat(driver.takeNotes()).containsExactly("2 " + location + " max 0 handles 0");
      assertThat(resource.preferredLocation()).isEqualTo(Optional.ofNullable(preferred));
      assertThat(resource.deviceId())
          .isEqualTo(preferred instanceof MemoryLocation.Device device ? device.id() : -1);
      assertThat(resource.isHandleOwned()).isTrue();
      assertThat(resource.isManaged()).isTrue();
      assertThat(resource.isDeviceAccessible()).isTrue();
      assertThat(resource.isHostAccessible()).isTrue();
      useFromHostAndDevice(cuda, resource);
    }
  }

  private static void useFromHostAndDevice(Cuda cuda, ManagedMemoryResource resource) {
    try (CudaStream stream = cuda.device(0).createStream();
        ManagedBuffer managed = resource.allocate(MIB, stream)) {
      managed.fillInts(9, stream);
      stream.synchronize();
      assertThat(managed.segment().get(ValueLayout.JAVA_INT, MIB - 4)).isEqualTo(9);
      managed.segment().fill((byte) 3);
      managed.prefetch(MemoryLocation.device(cuda.device(0)), stream);
      managed.slice(0, MIB / 2).fill((byte) 4, stream);
      managed.prefetch(MemoryLocation.host(), stream);
      stream.synchronize();
      assertThat(Bytes.of(managed.slice(0, MIB / 2))).containsOnly(4);
      assertThat(Bytes.of(managed.slice(MIB / 2))).containsOnly(3);
    }
    cuda.device(0).synchronize();
  }

  @Test
  void everythingElse_isRefusedWithTheRule() {
    refused(() -> DEFAULTS.withPreferredLocation(-2), "-2 of type none", "-1 for the host");
    refused(() -> of(LocationType.DEVICE, -1), "-1 of type DEVICE", "a device, >= 0");
    refused(
        () -> new ManagedMemoryResourceOptions(LocationType.DEVICE, OptionalInt.empty()),
        "none of type DEVICE",
        "a device, >= 0");
    refused(() -> of(LocationType.HOST, 0), "0 of type HOST", "expected: none");
    refused(() -> of(LocationType.HOST_NUMA, -1), "-1 of type HOST_NUMA", "a NUMA node, >= 0");
    refused(
        () -> DEFAULTS.withPreferredLocation(MemoryLocation.hostNumaCurrent()),
        "current NUMA node",
        "withHostNuma");
  }

  private static void refused(Runnable options, String found, String rule) {
    assertThatThrownBy(options::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(found)
        .hasMessageContaining(rule);
  }

  @CudaTest
  void placesThatAreNot_areRefused(Cuda cuda) {
    int devices = cuda.deviceCount();
    assertThatThrownBy(
            () -> new ManagedMemoryResource(cuda, DEFAULTS.withPreferredLocation(devices)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(Integer.toString(devices));
    assertThatThrownBy(
            () -> ManagedMemoryResource.ofCurrent(cuda, new MemoryLocation.Device(devices)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(
            () -> ManagedMemoryResource.ofCurrent(cuda, MemoryLocation.hostNumaCurrent()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> new ManagedMemoryResource(cuda, of(LocationType.HOST_NUMA, 99_999)))
        .isInstanceOf(CudaException.class);
  }

  @CudaTest
  void nearestNode_isThatOfTheCurrentDevice_orAClearError(Cuda cuda, ScriptedDriver driver) {
    notePools(driver);
    for (OptionalInt answer : List.of(OptionalInt.of(-1), OptionalInt.empty())) {
      answerNode(driver, answer);
      assertThatThrownBy(() -> new ManagedMemoryResource(cuda, DEFAULTS.withHostNuma()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("device 0")
          .hasMessageContaining("name a node");
    }
    assertThat(driver.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void nodeOfTheCurrentDevice_isAskedFor(Cuda cuda, ScriptedDriver driver) {
    driver.answer(
        "deviceGetAttribute",
        call ->
            call.number("attribute") == HOST_NUMA_ID && call.number("device") == 1
                ? -1
                : call.proceed());
    var shared = PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
    new PinnedMemoryResource(cuda, shared).close();
    new ManagedMemoryResource(cuda, DEFAULTS.withHostNuma()).close();
    try (Scope _ = cuda.device(1).use()) {
      assertThatThrownBy(() -> new PinnedMemoryResource(cuda, shared))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("device 1");
      assertThatThrownBy(() -> new ManagedMemoryResource(cuda, DEFAULTS.withHostNuma()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("device 1");
    }
  }

  @CudaTest
  void currentPool_isBorrowed_forEachLocation(Cuda cuda, ScriptedDriver driver) {
    notePools(driver);
    try (ManagedMemoryResource anywhere = new ManagedMemoryResource(cuda);
        ManagedMemoryResource again = new ManagedMemoryResource(cuda);
        ManagedMemoryResource there =
            ManagedMemoryResource.ofCurrent(cuda, MemoryLocation.device(cuda.device(0)))) {
      assertThat(driver.notes()).containsExactly("current 2 0:0", "current 2 0:0", "current 2 1:0");
      assertThat(anywhere.isHandleOwned()).isFalse();
      assertThat(anywhere.preferredLocation()).isEmpty();
      assertThat(anywhere.handle()).isEqualTo(again.handle());
      assertThat(there.isHandleOwned()).isFalse();
      assertThat(there.handle()).isNotEqualTo(anywhere.handle());
      assertThat(there.deviceId()).isZero();
    }
  }

  @CudaTest
  void devicesWithoutConcurrentAccess_areTheReasonThatIsGiven(Cuda cuda, ScriptedDriver driver) {
    notePools(driver);
    answerAttribute(driver, CONCURRENT_MANAGED_ACCESS, OptionalInt.of(0));
    for (String call : List.of("memPoolCreate", "memGetMemPool")) {
      driver.fail(call, CudaStatus.NOT_SUPPORTED);
    }
    List<ThrowingCallable> ways =
        List.of(
            () -> new ManagedMemoryResource(cuda), () -> new ManagedMemoryResource(cuda, DEFAULTS));
    for (ThrowingCallable way : ways) {
      assertThatThrownBy(way)
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_SUPPORTED))
          .hasMessageContaining("device 0 has no concurrent managed access")
          .hasMessageContaining("allocateManaged");
    }
  }

  /** Once in a process, by whichever device it is that has none. */
  @CudaTest(simulatedOnly = true)
  void hostThatMustNotTouchWhatADeviceWorksOn_isToldOnce(Cuda cuda, ScriptedDriver driver)
      throws ReflectiveOperationException {
    Field warned = ManagedMemoryResource.class.getDeclaredField("WARNED");
    warned.setAccessible(true);
    ((AtomicBoolean) warned.get(null)).set(false);
    List<LogRecord> told = new ArrayList<>();
    long thread = Thread.currentThread().threadId();
    Logger log = Logger.getLogger(ManagedMemoryResource.class.getName());
    log.setFilter(each -> each.getLongThreadID() != thread || !told.add(each));
    try {
      new ManagedMemoryResource(cuda).close();
      assertThat(told).as("there is no reason").isEmpty();
      answerAttribute(driver, CONCURRENT_MANAGED_ACCESS, OptionalInt.of(0));
      new ManagedMemoryResource(cuda).close();
      new ManagedMemoryResource(cuda, DEFAULTS).close();
    } finally {
      log.setFilter(null);
    }
    assertThat(told).hasSize(1);
    assertThat(told.getFirst().getLevel()).isEqualTo(Level.WARNING);
    assertThat(told.getFirst().getMessage()).contains("has no concurrent managed access");
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void deviceThatHasNoConcurrentAccess_isTheOneThatIsNamed(Cuda cuda, ScriptedDriver driver) {
    driver.answer(
        "deviceGetAttribute",
        call ->
            call.number("attribute") == CONCURRENT_MANAGED_ACCESS && call.number("device") == 1
                ? 0
                : call.proceed());
    driver.fail("memPoolCreate", CudaStatus.NOT_SUPPORTED);
    assertThatThrownBy(() -> new ManagedMemoryResource(cuda, DEFAULTS))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("device 1 has no concurrent managed access");
  }

  @CudaTest(simulatedOnly = true)
  void nearestNode_isThatWhichTheDeviceReports(Cuda cuda, ScriptedDriver driver) {
    answerNode(driver, OptionalInt.of(3));
    List<Integer> asked = new ArrayList<>();
    driver.answer(
        "memPoolCreate",
        call -> {
          asked.add(call.argument("properties", PoolProperties.class).locationId());
          throw new CudaException(CudaStatus.NOT_SUPPORTED.code(), call.name());
        });
    List<ThrowingCallable> ways =
        List.of(
            () ->
                new PinnedMemoryResource(
                    cuda, PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true)),
            () -> new ManagedMemoryResource(cuda, DEFAULTS.withHostNuma()));
    for (ThrowingCallable way : ways) {
      assertThatThrownBy(way).isInstanceOf(CudaException.class);
    }
    assertThat(asked).containsExactly(3, 3);
  }

  @CudaTest
  void driverBefore13_isRefusedWithBothVersions(Subject subject, ScriptedDriver driver) {
    driver.answer("driverGetVersion", _ -> 12080);
    Cuda cuda = subject.cuda();
    for (ManagedMemoryResourceOptions each : List.of(DEFAULTS, DEFAULTS.withHostNuma())) {
      assertThatThrownBy(() -> new ManagedMemoryResource(cuda, each))
          .isInstanceOfSatisfying(
              CudaException.class,
              e -> assertThat(e.status()).isEqualTo(CudaStatus.CALL_REQUIRES_NEWER_DRIVER))
          .hasMessageContaining("CUDA 12.8 (expected: >= 13.0)");
    }
  }

  /** A buffer is never born with the advice and the place of one that was closed before. */
  @CudaTest(simulatedOnly = true)
  void newMemory_hasNoAdvice(Cuda cuda) {
    List<Consumer<ManagedBuffer>> changes =
        List.of(
            buffer -> buffer.setReadMostly(true),
            buffer -> buffer.setPreferredLocation(MemoryLocation.host()),
            buffer -> buffer.accessedBy().add(MemoryLocation.host()),
            buffer -> buffer.slice(4096, 4096).prefetch(MemoryLocation.host()),
            buffer -> buffer.prefetch(MemoryLocation.host()));
    try (ManagedMemoryResource resource =
        new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS)) {
      for (Consumer<ManagedBuffer> change : changes) {
        ManagedBuffer before = resource.allocate(MIB);
        change.accept(before);
        before.close();
        try (ManagedBuffer fresh = resource.allocate(MIB)) {
          assertThat(fresh.isReadMostly()).isFalse();
          assertThat(fresh.preferredLocation()).isEmpty();
          assertThat(fresh.accessedBy()).isEmpty();
          assertThat(fresh.slice(4096, 4096).lastPrefetchLocation()).isEmpty();
        }
      }
    }
  }

  @CudaTest(simulatedOnly = true)
  void errorThatSaysNothingOfSupport_isGivenAsItIs(Cuda cuda, ScriptedDriver driver) {
    driver.fail("memPoolCreate", CudaStatus.INVALID_VALUE, 1);
    assertThatThrownBy(() -> new ManagedMemoryResource(cuda, DEFAULTS.withHost()))
        .isInstanceOf(CudaException.class)
        .hasMessageNotContaining("managed");
  }

  @CudaTest(simulatedOnly = true)
  void pinnedPoolWhoseAccessIsNotKnown_isDestroyed(Cuda cuda, ScriptedDriver driver) {
    driver.fail("memPoolGetAccess", INVALID_VALUE, 1);
    long before = driver.count("memPoolDestroy");
    assertThatThrownBy(() -> new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(INVALID_VALUE));
    assertThat(driver.count("memPoolDestroy")).isEqualTo(before + 1);
  }
}
