package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryLocation;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PoolAttributes;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.ValueLayout;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** The programs of docs/guide/pools.md. */
class PoolsGuideTest {
  private static final long MIB = 1 << 20;

  @CudaTest
  void asyncPool_allocatesAndFreesInOrderOfAStream(Cuda cuda) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
        CudaStream stream = cuda.currentDevice().createStream()) {
      try (DeviceBuffer buffer = pool.allocate(1 << 20, stream)) {
        buffer.fill((byte) 1, stream);
        assertThat(pool.usedBytes()).isEqualTo(1 << 20);
      } // freed in order of the stream; nobody waits
      stream.synchronize();
      assertThat(pool.usedBytes()).isEqualTo(0);
      assertThat(pool.freeBytes()).isEqualTo(pool.totalBytes());
      pool.freeAllBlocks(stream); // waits for the stream, then gives back
      assertThat(pool.totalBytes()).isEqualTo(0);

      try (Scope _ = cuda.useAllocator(pool);
          Buffer buffer = cuda.allocate(1000)) { // from the pool
        buffer.fill((byte) 2);
      }
    }
  }

  @CudaTest
  void limit_isHard_andTheThresholdIsNoLimit(Cuda cuda) {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      pool.setLimit(MemoryLimit.ofBytes(1024)); // what may be live through this object
      try (Buffer _ = pool.allocate(500)) { // counts as 512
        assertThat(pool.liveBytes()).isEqualTo(512);
        assertThatThrownBy(() -> pool.allocate(513)).isInstanceOf(OutOfDeviceMemoryException.class);
      }
      PoolAttributes attributes = pool.attributes();
      assertThat(attributes.releaseThreshold()).isEqualTo(Long.MAX_VALUE); // a new pool keeps all
      attributes.setReleaseThreshold(64 << 20); // beyond this, given back at a synchronisation
    }
  }

  @CudaTest
  void choices_areOneForEachDevice(Cuda cuda) {
    List<AsyncPoolChoice> choices =
        Collections.nCopies(cuda.deviceCount(), AsyncPoolChoice.ofDefault());
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, choices)) {
      for (CudaDevice device : cuda.devices()) {
        assertThat(pool.handle(device))
            .isEqualTo(cuda.driver().pools().deviceGetDefaultMemPool(device.id()));
      }
    }
  }

  @CudaTest
  void deviceResource_hasAttributesAndGivesBack(Cuda cuda) {
    CudaDevice device = cuda.currentDevice();
    try (DeviceMemoryResource resource =
            new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
        CudaStream stream = device.createStream()) {
      PoolAttributes attributes = resource.attributes();
      DeviceBuffer buffer = resource.allocate(1 << 20, stream);
      assertThat(attributes.usedMemCurrent()).isEqualTo(1 << 20);
      resource.deallocate(buffer); // the same as buffer.close()
      stream.synchronize();
      assertThat(attributes.usedMemCurrent()).isEqualTo(0);
      assertThat(attributes.usedMemHigh()).isEqualTo(1 << 20);
      attributes.resetUsedMemHigh();
      assertThat(attributes.usedMemHigh()).isEqualTo(0);
      resource.trimTo(0); // to the driver
      assertThat(attributes.reservedMemCurrent()).isEqualTo(0);
      assertThat(resource.isHandleOwned()).isTrue();
    }
    try (DeviceMemoryResource current = new DeviceMemoryResource(device)) { // the current pool
      assertThat(current.isHandleOwned()).isFalse(); // close() leaves it alone
    }
  }

  @CudaTest
  void pinnedResource_isPlacedOnANode(Cuda cuda) {
    int node = cuda.currentDevice().attribute(DeviceAttribute.HOST_NUMA_ID);
    assumeTrue(node >= 0, "no NUMA node is known");
    try {
      PinnedMemoryResourceOptions near = PinnedMemoryResourceOptions.DEFAULTS.withNumaId(node);
      try (PinnedMemoryResource resource = new PinnedMemoryResource(cuda, near);
          PinnedBuffer buffer = resource.allocate(4096)) {
        buffer.stream().synchronize(); // before the host touches it
        buffer.segment().set(ValueLayout.JAVA_LONG, 0, 1);
        assertThat(resource.numaId()).isEqualTo(node);
        assertThat(resource.deviceId()).isEqualTo(-1);
      }
    } catch (CudaException e) {
      assumeTrue(e.status() != CudaStatus.NOT_SUPPORTED, "no pools of host memory");
      throw e;
    }
  }

  @CudaTest(devices = 2)
  void peers_areALiveSet(Cuda cuda) {
    CudaDevice one = cuda.device(0);
    CudaDevice two = cuda.device(1);
    assumeTrue(two.canAccess(one), "no peers");
    try (DeviceMemoryResource resource =
        new DeviceMemoryResource(one, DeviceMemoryResourceOptions.DEFAULTS)) {
      resource.peerAccessibleBy().add(two); // one driver call; two.canAccess(one) is true
      assertThat(resource.peerAccessibleBy()).containsExactly(two);
      resource.setPeerAccessibleBy(Set.of(two)); // exactly these: one call at most, here none
      resource.peerAccessibleBy().clear();
    }
  }

  @CudaTest
  void managedMemory_readsItsAdviceBack(Cuda cuda) {
    assumeTrue(
        cuda.currentDevice().attribute(DeviceAttribute.CONCURRENT_MANAGED_ACCESS) != 0,
        "the device only moves memory on demand");
    try (ManagedBuffer buffer = cuda.allocateManaged(4 << 20)) {
      MemoryLocation device = MemoryLocation.device(buffer.device());
      ManagedBuffer half = buffer.slice(0, 2 << 20);
      half.setReadMostly(true);
      assertThat(half.isReadMostly()).isTrue();
      assertThat(buffer.isReadMostly()).isFalse(); // not all of it
      buffer.setPreferredLocation(device);
      assertThat(buffer.preferredLocation()).contains(device);
      buffer.accessedBy().add(MemoryLocation.host());
      assertThat(buffer.accessedBy()).containsExactly(MemoryLocation.host());

      buffer.prefetch(device);
      cuda.currentStream().synchronize();
      assertThat(buffer.lastPrefetchLocation()).contains(device);
    }
  }

  @CudaTest
  void managedPool_hasAPreference(Cuda cuda) {
    MemoryLocation device = MemoryLocation.device(cuda.currentDevice());
    var near = ManagedMemoryResourceOptions.DEFAULTS.withPreferredLocation(device);
    try (ManagedMemoryResource resource = new ManagedMemoryResource(cuda, near);
        ManagedBuffer buffer = resource.allocate(MIB)) {
      assertThat(resource.preferredLocation()).isEqualTo(Optional.of(device));
      buffer.fill((byte) 7);
      assertThat(buffer.segment().get(ValueLayout.JAVA_BYTE, 99)).isEqualTo((byte) 7);
    } catch (CudaException e) {
      assumeTrue(e.status() != CudaStatus.NOT_SUPPORTED, "no pools of managed memory");
      throw e;
    }
  }
}
