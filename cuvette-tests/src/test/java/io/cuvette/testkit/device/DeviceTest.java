package io.cuvette.testkit.device;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.ComputeCapability;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.DeviceAttribute;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class DeviceTest {

  @CudaTest
  void devices_areNumberedFromZero(Cuda cuda) {
    List<CudaDevice> devices = cuda.devices();
    assertThat(devices).hasSize(cuda.deviceCount()).isNotEmpty();
    for (int id = 0; id < devices.size(); id++) {
      assertThat(devices.get(id).id()).isEqualTo(id);
      assertThat(cuda.device(id)).isSameAs(devices.get(id));
      assertThat(devices.get(id).toString()).isEqualTo("device " + id);
      assertThat(devices.get(id).cuda()).isSameAs(cuda);
    }
  }

  @CudaTest
  void numbersOfNoDevice_areRefused(Cuda cuda) {
    for (int id : new int[] {-1, cuda.deviceCount(), 100, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
      assertThatThrownBy(() -> cuda.device(id))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device: " + id)
          .hasMessageContaining("expected: 0 to " + (cuda.deviceCount() - 1));
    }
  }

  @CudaTest
  void nameAndIdentity_areThere_andStable(Cuda cuda) {
    Set<UUID> seen = new HashSet<>();
    for (CudaDevice device : cuda.devices()) {
      assertThat(device.name()).isNotBlank();
      assertThat(device.uuid()).isEqualTo(device.uuid());
      assertThat(seen.add(device.uuid())).isTrue();
    }
  }

  @CudaTest
  void pciBusId_leadsBackToTheDevice(Cuda cuda) {
    for (CudaDevice device : cuda.devices()) {
      assertThat(device.pciBusId())
          .matches("[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\\.[0-7]");
      assertThat(cuda.deviceByPciBusId(device.pciBusId())).isEqualTo(device);
    }
  }

  @CudaTest
  void pciBusIdsOfNoDevice_areRefused(Cuda cuda) {
    assertThatThrownBy(() -> cuda.deviceByPciBusId("fake:id"))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE))
        .hasMessageContaining("fake:id");
    assertThatThrownBy(() -> cuda.deviceByPciBusId("FFFF:FF:1F.0"))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_DEVICE));
    assertThatThrownBy(() -> cuda.deviceByPciBusId("")).isInstanceOf(CudaException.class);
  }

  @CudaTest
  void computeCapability_isThatOfTheAttributes(Cuda cuda) {
    ComputeCapability capability = cuda.device(0).computeCapability();
    assertThat(capability.major()).isBetween(5, 20);
    assertThat(capability.digits()).isEqualTo("" + capability.major() + capability.minor());
    assertThat(capability.toString()).isEqualTo(capability.major() + "." + capability.minor());
    assertThat(cuda.device(0).attribute(75)).isEqualTo(capability.major());
    assertThat(cuda.device(0).attribute(76)).isEqualTo(capability.minor());
  }

  @Test
  void computeCapabilities_compareByMajorThenMinor() {
    assertThat(new ComputeCapability(9, 0)).isGreaterThan(new ComputeCapability(8, 9));
    assertThat(new ComputeCapability(8, 6)).isLessThan(new ComputeCapability(8, 9));
    assertThat(new ComputeCapability(12, 1).digits()).isEqualTo("121");
  }

  @CudaTest
  void attributes_areReadOnce_andAgreeWithEachOne(Cuda cuda) {
    Map<DeviceAttribute, Integer> attributes = cuda.device(0).attributes();
    assertThat(attributes).hasSizeGreaterThan(100);
    assertThat(attributes).containsKey(DeviceAttribute.CONCURRENT_MANAGED_ACCESS);
    attributes.forEach((attribute, value) ->
        assertThat(cuda.device(0).attribute(attribute)).as("%s", attribute).isEqualTo(value));
    assertThat(cuda.device(0).attribute(1)).as("threads in a block").isGreaterThanOrEqualTo(512);
    assertThatThrownBy(attributes::clear).isInstanceOf(UnsupportedOperationException.class);
    assertThat(cuda.device(0).attributes()).isSameAs(attributes);
  }

  @CudaTest
  void attributesOfNoMeaning_areRefusedByTheDriver(Cuda cuda) {
    for (int code : new int[] {-1, 100_000, Integer.MAX_VALUE}) {
      assertThatThrownBy(() -> cuda.device(0).attribute(code))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE));
    }
  }

  @CudaTest
  void memoryInfo_followsAllocations(Subject subject) {
    CudaDevice device = subject.cuda().device(0);
    MemoryInfo before = device.memoryInfo();
    assertThat(before.freeBytes()).isPositive().isLessThanOrEqualTo(before.totalBytes());
    assertThat(device.totalBytes()).isGreaterThanOrEqualTo(before.totalBytes());
    try (Buffer _ = subject.cuda().allocate(256 * MIB)) {
      long taken = before.freeBytes() - device.memoryInfo().freeBytes();
      if (subject.isSimulated()) {
        assertThat(taken).isEqualTo(256 * MIB);
      } else {
        assertThat(taken).isGreaterThanOrEqualTo(200 * MIB);
      }
    }
  }

  @CudaTest(devices = 2)
  void devices_areOrdered_equalAndHashedByNumber(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaDevice zero = cuda.device(0);
    CudaDevice one = cuda.device(1);
    assertThat(zero).isLessThan(one).isEqualByComparingTo(zero);
    assertThat(one).isGreaterThan(zero);
    assertThat(zero).isEqualTo(cuda.device(0)).isNotEqualTo(one);
    assertThat(zero).isNotEqualTo(null).isNotEqualTo(0).isNotEqualTo(new Object());
    assertThat(Set.of(zero, one)).contains(cuda.device(1));
    Cuda other = subject.open(options -> options);
    assertThat(zero).isNotEqualTo(other.device(0));
  }

  @CudaTest(devices = 2)
  void use_makesADeviceCurrentUntilItsScopeCloses(Cuda cuda) {
    assertThat(cuda.currentDevice().id()).isZero();
    try (Scope _ = cuda.device(1).use()) {
      assertThat(cuda.currentDevice().id()).isEqualTo(1);
      try (Buffer buffer = cuda.allocate(10)) {
        assertThat(buffer.device().id()).isEqualTo(1);
        assertThat(cuda.deviceOf(buffer.address()).id()).isEqualTo(1);
      }
    }
    assertThat(cuda.currentDevice().id()).isZero();
    cuda.defaultMemoryPool().freeAllBlocks(cuda.device(1));
  }

  @CudaTest
  void deviceOfAnAddressThatIsNone_isRefused(Cuda cuda) {
    assertThatThrownBy(() -> cuda.deviceOf(0x1234))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_VALUE));
  }

  @CudaTest
  void synchronize_waitsForEveryStream(Cuda cuda) {
    try (var stream = cuda.device(0).createStream();
        Buffer buffer = cuda.allocate(MIB)) {
      for (int i = 0; i < 50; i++) {
        buffer.fill((byte) i, stream);
      }
      cuda.device(0).synchronize();
      assertThat(stream.isDone()).isTrue();
    }
  }

  @CudaTest
  void resourceLimits_areReadAndSet(Cuda cuda) {
    int printfBytes = 1;
    CudaDevice device = cuda.device(0);
    long before = device.limit(printfBytes);
    assertThat(before).isPositive();
    device.setLimit(printfBytes, 2 << 20);
    assertThat(device.limit(printfBytes)).isGreaterThanOrEqualTo(2 * MIB);
    device.setLimit(printfBytes, before);
    assertThatThrownBy(() -> device.limit(-1)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> device.setLimit(printfBytes, -1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("value: -1");
    assertThatThrownBy(() -> device.limit(12_345)).isInstanceOf(CudaException.class);
  }

  @CudaTest
  void versions_areThousandsOfTheMajor(Cuda cuda) {
    assertThat(cuda.driverVersion()).isBetween(11_000, 99_990);
    cuda.runtimeVersion().ifPresent(version -> assertThat(version).isBetween(9_000, 99_990));
    assertThat(cuda.toString()).contains("devices=" + cuda.deviceCount());
  }

  @CudaTest(devices = 2)
  void eachDevice_isFoundByItsAddressOnTheBus(Cuda cuda) {
    for (CudaDevice device : cuda.devices()) {
      assertThat(cuda.deviceByPciBusId(device.pciBusId())).isSameAs(device);
    }
  }

  /** Without a device it cannot be opened, and that is all that is asked. */
  @Test
  void availability_isWhetherItCanBeOpened() {
    boolean opens = false;
    try (Cuda cuda = Cuda.open()) {
      opens = cuda.deviceCount() > 0;
    } catch (CudaException | UnsupportedOperationException e) {
      assertThat(e).isNotNull();
    }
    assertThat(Cuda.isAvailable()).isEqualTo(opens);
  }

  @CudaTest
  void simulation_isThatOfTheDriver(Subject subject) {
    assertThat(subject.cuda().isSimulated()).isEqualTo(subject.isSimulated());
  }
}
