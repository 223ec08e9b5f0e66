package io.cuvette.testkit.async;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PoolAttributes;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Set;

class MemoryResourcesTest {

  @CudaTest
  void deviceResourceWithoutOptions_borrowsTheCurrentPool(Cuda cuda) {
    try (DeviceMemoryResource resource = new DeviceMemoryResource(cuda.device(0))) {
      assertThat(resource.handle()).isEqualTo(cuda.driver().pools().deviceGetMemPool(0));
      assertThat(resource.isHandleOwned()).isFalse();
      assertThat(resource.deviceId()).isZero();
      assertThat(resource.isDeviceAccessible()).isTrue();
      assertThat(resource.isHostAccessible()).isFalse();
      resource.allocate(100).close();
    }
    assertThat(
            cuda.driver().pools().memPoolGetAttribute(cuda.driver().pools().deviceGetMemPool(0), 4))
        .as("nobody's threshold is changed")
        .isZero();
  }

  @CudaTest
  void deviceResourceWithOptions_ownsItsPool(Cuda cuda) {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    assertThat(resource.isHandleOwned()).isTrue();
    try (Buffer buffer = resource.allocate(MIB)) {
      buffer.fillInts(42);
      assertThat(resource.attributes().usedMemCurrent()).isEqualTo(MIB);
    }
    Set<CudaDevice> peers = resource.peerAccessibleBy();
    resource.close();
    assertThat(resource.isHandleOwned()).isFalse();
    assertThatThrownBy(() -> resource.allocate(1)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(resource::handle)
        .as("the driver may give it to another pool")
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
    assertThatThrownBy(peers::size).isInstanceOf(IllegalStateException.class);
    assertThat(peers.toString()).as("a text never throws").contains("unknown", "is closed");
  }

  @CudaTest
  void negativeSize_isRefused_beforeTheDriverIsAsked(
      ScriptedDriver driver,
      AsyncMemoryPool pool,
      DeviceMemoryResource resource,
      CudaStream stream) {
    for (MemoryResource from : List.of(pool, resource)) {
      assertThatThrownBy(() -> from.allocate(-1, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("bytes: -1 (expected: ");
    }
    assertThat(driver.count("memAllocFromPoolAsync")).isZero();
  }

  @CudaTest
  void attributes_areReadAndSet(DeviceMemoryResource resource) {
    PoolAttributes attributes = resource.attributes();
    assertThat(attributes.reuseFollowEventDependencies()).isTrue();
    assertThat(attributes.reuseAllowOpportunistic()).isTrue();
    assertThat(attributes.reuseAllowInternalDependencies()).isTrue();
    attributes.setReuseFollowEventDependencies(false);
    attributes.setReuseAllowOpportunistic(false);
    attributes.setReuseAllowInternalDependencies(false);
    assertThat(attributes.reuseFollowEventDependencies()).isFalse();
    assertThat(attributes.reuseAllowOpportunistic()).isFalse();
    assertThat(attributes.reuseAllowInternalDependencies()).isFalse();
    attributes.setReuseFollowEventDependencies(true);
    attributes.setReuseAllowOpportunistic(true);
    attributes.setReuseAllowInternalDependencies(true);
    assertThat(attributes.reuseFollowEventDependencies()).isTrue();
    assertThat(attributes.reuseAllowOpportunistic()).isTrue();
    assertThat(attributes.reuseAllowInternalDependencies()).isTrue();
    attributes.setReleaseThreshold(123 * MIB);
    assertThat(attributes.releaseThreshold()).isEqualTo(123 * MIB);
    assertThatThrownBy(() -> attributes.setReleaseThreshold(-1))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @CudaTest
  void attributesOfAClosedResource_areThoseItHadThen(Cuda cuda) {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    PoolAttributes attributes = resource.attributes();
    attributes.setReleaseThreshold(123 * MIB);
    attributes.setReuseAllowOpportunistic(false);
    resource.allocate(64 * MIB).close();
    cuda.device(0).synchronize();
    try (DeviceBuffer inUse = resource.allocate(4 * MIB)) {
      resource.close();
      inUse.fill((byte) 1);
    }
    cuda.device(0).synchronize();
    assertThat(resource.attributes()).isSameAs(attributes);
    assertThat(attributes.releaseThreshold()).isEqualTo(123 * MIB);
    assertThat(attributes.reuseAllowOpportunistic()).isFalse();
    assertThat(attributes.reuseAllowInternalDependencies()).isTrue();
    assertThat(attributes.usedMemHigh()).isGreaterThanOrEqualTo(64 * MIB);
    assertThat(attributes.usedMemCurrent()).isEqualTo(4 * MIB);
    assertThat(attributes.reservedMemCurrent()).isGreaterThanOrEqualTo(4 * MIB);
    assertThat(attributes.toString()).contains("used=" + 4 * MIB);
    assertThatThrownBy(() -> attributes.setReleaseThreshold(0))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }

  @CudaTest
  void highWaterMarks_areReset_andTrimReleases(Cuda cuda, DeviceMemoryResource resource) {
    resource.allocate(64 * MIB).close();
    cuda.device(0).synchronize();
    PoolAttributes attributes = resource.attributes();
    assertThat(attributes.usedMemHigh()).isEqualTo(64 * MIB);
    assertThat(attributes.usedMemCurrent()).isZero();
    resource.trimTo(0);
    assertThat(attributes.reservedMemCurrent()).isZero();
    assertThat(attributes.reservedMemHigh()).isGreaterThanOrEqualTo(64 * MIB);
    attributes.resetUsedMemHigh();
    attributes.resetReservedMemHigh();
    assertThat(attributes.usedMemHigh()).isZero();
    assertThat(attributes.reservedMemHigh()).isZero();
  }

  @CudaTest
  void pinnedResourceOnANode_givesHostMemory_thatDevicesReach(Cuda cuda, CudaStream stream) {
    try (PinnedMemoryResource resource =
        new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withNumaId(0))) {
      assertThat(resource.numaId()).isZero();
      assertThat(resource.toString()).endsWith(", numaId=0]");
      assertThat(resource.deviceId()).isEqualTo(-1);
      useFromHostAndDevice(cuda, resource, stream);
    }
  }

  @CudaTest
  void pinnedResourceWithOptions_leavesThePlaceToTheSystem(Cuda cuda, CudaStream stream) {
    try (PinnedMemoryResource resource =
        new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS)) {
      assertThat(resource.numaId()).isEqualTo(-1);
      assertThat(resource.isHandleOwned()).isTrue();
      useFromHostAndDevice(cuda, resource, stream);
    }
  }

  @CudaTest
  void pinnedResourceWithoutOptions_borrowsTheCurrentHostPool(Cuda cuda, CudaStream stream) {
    try (PinnedMemoryResource resource = new PinnedMemoryResource(cuda)) {
      assertThat(resource.isHandleOwned()).isFalse();
      assertThat(resource.numaId()).isEqualTo(-1);
      useFromHostAndDevice(cuda, resource, stream);
    }
  }

  private static void useFromHostAndDevice(
      Cuda cuda, PinnedMemoryResource resource, CudaStream stream) {
    assertThat(resource.isHostAccessible()).isTrue();
    assertThat(resource.isDeviceAccessible()).isTrue();
    try (PinnedBuffer pinned = resource.allocate(4096, stream);
        Buffer device = cuda.allocate(4096, stream)) {
      stream.synchronize();
      pinned.segment().fill((byte) 5);
      device.copyFrom(pinned, stream);
      stream.synchronize();
      assertThat(Bytes.of(device)).containsOnly(5);
      device.fill((byte) 6, stream);
      pinned.copyFrom(device, stream);
      stream.synchronize();
      assertThat(pinned.segment().get(ValueLayout.JAVA_BYTE, 4095)).isEqualTo((byte) 6);
    }
    stream.synchronize();
  }

  @CudaTest
  void viewOfPooledHostMemory_isDeadAfterClose(Cuda cuda) {
    try (PinnedMemoryResource resource =
        new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withNumaId(0))) {
      PinnedBuffer pinned = resource.allocate(64);
      MemorySegment view = pinned.segment();
      pinned.close();
      assertThatThrownBy(() -> view.get(ValueLayout.JAVA_BYTE, 0))
          .isInstanceOf(IllegalStateException.class);
      cuda.device(0).synchronize();
    }
  }

  @CudaTest
  void deallocate_takesOnlyBuffersOfTheResource(
      Cuda cuda, DeviceMemoryResource resource, CudaStream other) {
    try (Buffer foreign = cuda.allocate(64)) {
      Buffer first = resource.allocate(64);
      resource.deallocate(first);
      assertThat(first.isClosed()).isTrue();
      Buffer second = resource.allocate(64);
      resource.deallocate(second, other);
      assertThat(second.isClosed()).isTrue();
      assertThatThrownBy(() -> resource.deallocate(foreign))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("%s is no buffer of %s", foreign, resource);
      cuda.device(0).synchronize();
    }
  }

  @CudaTest
  void nodeThatNobodyNamed_isNotTheReason(Cuda cuda, ScriptedDriver driver) {
    Map<CudaStatus, Boolean> isForWant =
        Map.of(
            CudaStatus.NOT_SUPPORTED, true,
            CudaStatus.CALL_REQUIRES_NEWER_DRIVER, true,
            CudaStatus.INVALID_VALUE, true,
            CudaStatus.OUT_OF_MEMORY, false,
            CudaStatus.OPERATING_SYSTEM, false);
    isForWant.forEach((status, isExplained) -> {
      for (boolean isNamed : new boolean[] {false, true}) {
        driver.fail("memPoolCreate", status);
        PinnedMemoryResourceOptions usual = PinnedMemoryResourceOptions.DEFAULTS;
        PinnedMemoryResourceOptions options = isNamed ? usual.withNumaId(0) : usual;
        String message =
            assertThatThrownBy(() -> new PinnedMemoryResource(cuda, options))
                .isInstanceOf(CudaException.class)
                .actual()
                .getMessage();
        assertThat(message.contains("Cuda.allocatePinned works everywhere"))
            .as(message)
            .isEqualTo(isExplained);
        assertThat(message.contains("numaId: 0 is no node of this machine"))
            .as(message)
            .isEqualTo(isExplained && isNamed);
      }
    });
  }

  @CudaTest
  void wrongOptions_areRefused(Cuda cuda) {
    assertThatThrownBy(() -> new DeviceMemoryResourceOptions(-1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> PinnedMemoryResourceOptions.DEFAULTS.withNumaId(-1))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() ->
            new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withNumaId(4096)))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("numaId: 4096 is no node of this machine");
  }
}
