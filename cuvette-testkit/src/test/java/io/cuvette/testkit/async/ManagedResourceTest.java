package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.ManagedMemoryResourceOptions.LocationType;
import io.cuvette.MemoryLocation;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** Pools of managed memory, and where they keep it preferably. */
class ManagedResourceTest {
  private static final long MIB = 1 << 20;
  private static final ManagedMemoryResourceOptions DEFAULTS =
      ManagedMemoryResourceOptions.DEFAULTS;

  /** Writes down of what pools were made, and has the attributes it is given. */
  private static class Watched extends ForwardingDriver {
    private static final int CONCURRENT_MANAGED_ACCESS = 89;
    private static final int HOST_NUMA_ID = 134;
    private final List<String> pools = new ArrayList<>();
    private OptionalInt node = OptionalInt.empty();
    private boolean able = true;

    Watched(CudaDriver driver) {
      super(driver);
    }

    @Override
    public int deviceGetAttribute(int attribute, int device) {
      return switch (attribute) {
        case HOST_NUMA_ID -> node();
        case CONCURRENT_MANAGED_ACCESS -> able ? 1 : 0;
        default -> super.deviceGetAttribute(attribute, device);
      };
    }

    private int node() {
      if (node.isEmpty()) {
        throw new CudaException(CudaStatus.INVALID_VALUE.code(), "cuDeviceGetAttribute");
      }
      return node.getAsInt();
    }

    @Override
    public long memPoolCreate(PoolProperties properties) {
      pools.add(
          "%d %d:%d max %d handles %d"
              .formatted(
                  properties.allocationType(),
                  properties.locationType(),
                  properties.locationId(),
                  properties.maxBytes(),
                  properties.handleTypes()));
      checkAble("cuMemPoolCreate");
      return super.memPoolCreate(properties);
    }

    @Override
    public long memGetMemPool(int locationType, int locationId, int allocationType) {
      pools.add("current %d %d:%d".formatted(allocationType, locationType, locationId));
      checkAble("cuMemGetMemPool");
      return super.memGetMemPool(locationType, locationId, allocationType);
    }

    private void checkAble(String call) {
      if (!able) {
        throw new CudaException(CudaStatus.NOT_SUPPORTED.code(), call);
      }
    }
  }

  /** The rows of the options' table: the pool that is made, and what the resource says. */
  @CudaTest
  void everyRowOfTheTable_makesItsPool(Subject subject) {
    Watched[] watched = new Watched[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> watched[0] = new Watched(d)));
    watched[0].node = OptionalInt.of(0);
    MemoryLocation device = MemoryLocation.device(cuda.device(0));
    MemoryLocation node = MemoryLocation.hostNuma(0);
    row(cuda, watched[0], DEFAULTS, "0:0", null);
    row(cuda, watched[0], DEFAULTS.withPreferredLocation(null), "0:0", null);
    row(cuda, watched[0], DEFAULTS.withPreferredLocation(-1), "2:0", MemoryLocation.host());
    row(cuda, watched[0], DEFAULTS.withPreferredLocation(0), "1:0", device);
    row(cuda, watched[0], of(LocationType.DEVICE, 0), "1:0", device);
    row(cuda, watched[0], DEFAULTS.withPreferredLocation(device), "1:0", device);
    row(cuda, watched[0], DEFAULTS.withHost(), "2:0", MemoryLocation.host());
    row(
        cuda,
        watched[0],
        DEFAULTS.withPreferredLocation(MemoryLocation.host()),
        "2:0",
        MemoryLocation.host());
    row(cuda, watched[0], of(LocationType.HOST_NUMA, 0), "3:0", node);
    row(cuda, watched[0], DEFAULTS.withPreferredLocation(node), "3:0", node);
    row(cuda, watched[0], DEFAULTS.withHostNuma(), "3:0", node);
  }

  private static ManagedMemoryResourceOptions of(LocationType type, int location) {
    return ManagedMemoryResourceOptions.of(type, location);
  }

  private static void row(
      Cuda cuda,
      Watched watched,
      ManagedMemoryResourceOptions options,
      String location,
      MemoryLocation preferred) {
    try (ManagedMemoryResource resource = new ManagedMemoryResource(cuda, options)) {
      assertThat(watched.pools).containsExactly("2 " + location + " max 0 handles 0");
      watched.pools.clear();
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
    refused(() -> DEFAULTS.withPreferredLocation(-2), "-2", "-1 for the host");
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
  void nearestNode_isThatOfTheCurrentDevice_orAClearError(Subject subject) {
    Watched[] watched = new Watched[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> watched[0] = new Watched(d)));
    for (OptionalInt answer : List.of(OptionalInt.of(-1), OptionalInt.empty())) {
      watched[0].node = answer;
      assertThatThrownBy(() -> new ManagedMemoryResource(cuda, DEFAULTS.withHostNuma()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("device 0")
          .hasMessageContaining("name a node");
    }
    assertThat(watched[0].pools).isEmpty();
  }

  @CudaTest
  void currentPool_isBorrowed_forEachLocation(Subject subject) {
    Watched[] watched = new Watched[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> watched[0] = new Watched(d)));
    try (ManagedMemoryResource anywhere = new ManagedMemoryResource(cuda);
        ManagedMemoryResource again = new ManagedMemoryResource(cuda);
        ManagedMemoryResource there =
            ManagedMemoryResource.ofCurrent(cuda, MemoryLocation.device(cuda.device(0)))) {
      assertThat(watched[0].pools)
          .containsExactly("current 2 0:0", "current 2 0:0", "current 2 1:0");
      assertThat(anywhere.isHandleOwned()).isFalse();
      assertThat(anywhere.preferredLocation()).isEmpty();
      assertThat(anywhere.handle()).isEqualTo(again.handle());
      assertThat(there.isHandleOwned()).isFalse();
      assertThat(there.handle()).isNotEqualTo(anywhere.handle());
      assertThat(there.deviceId()).isZero();
    }
  }

  @CudaTest
  void devicesWithoutConcurrentAccess_areTheReasonThatIsGiven(Subject subject) {
    Watched[] watched = new Watched[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> watched[0] = new Watched(d)));
    watched[0].able = false;
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

  @CudaTest
  void driverBefore13_isRefusedWithBothVersions(Subject subject) {
    Cuda cuda =
        subject.open(options ->
            options.withDecorator(driver ->
                new Watched(driver) {
                  @Override
                  public int driverGetVersion() {
                    return 12080;
                  }
                }));
    for (ManagedMemoryResourceOptions each : List.of(DEFAULTS, DEFAULTS.withHostNuma())) {
      assertThatThrownBy(() -> new ManagedMemoryResource(cuda, each))
          .isInstanceOfSatisfying(
              CudaException.class,
              e -> assertThat(e.status()).isEqualTo(CudaStatus.CALL_REQUIRES_NEWER_DRIVER))
          .hasMessageContaining("12080")
          .hasMessageContaining("13000");
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
        ManagedBuffer before = resource.allocate(1 << 20);
        change.accept(before);
        before.close();
        try (ManagedBuffer fresh = resource.allocate(1 << 20)) {
          assertThat(fresh.isReadMostly()).isFalse();
          assertThat(fresh.preferredLocation()).isEmpty();
          assertThat(fresh.accessedBy()).isEmpty();
          assertThat(fresh.slice(4096, 4096).lastPrefetchLocation()).isEmpty();
        }
      }
    }
  }
}
