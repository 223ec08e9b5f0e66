package io.cuvette.testkit.ipc;

import static io.cuvette.testkit.support.Sizes.KIB;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.support.Forgetting;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Pools and their buffers from one process to another. */
class PoolSharingTest extends TwoProcesses {
  @Test
  void importerSeesTheExportersBytes_andTheExporterTheImporters() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(64 * KIB);
        DeviceMemoryResource mapped = mapped(resource)) {
      byte[] one = pattern(64 * KIB, 1);
      byte[] two = pattern(64 * KIB, 2);
      put(ours, one);
      try (DeviceBuffer theirs = mapped.importBuffer(ours.descriptor())) {
        assertThat(theirs.byteSize()).isEqualTo(64 * KIB);
        assertThat(theirs.isMapped()).isTrue();
        assertThat(ours.isMapped()).isFalse();
        assertThat(bytes(theirs)).isEqualTo(one);
        put(theirs, two);
      }
      assertThat(bytes(ours)).isEqualTo(two);
    }
  }

  @Test
  @SuppressWarnings("try") // its end is what is tested
  void exportedResource_hasAnIdentityAndOneHandle() {
    try (DeviceMemoryResource resource = shared()) {
      assertThat(resource.isIpcEnabled()).isTrue();
      assertThat(resource.isMapped()).isFalse();
      assertThat(resource.isHandleOwned()).isTrue();
      AllocationHandle handle = resource.allocationHandle();
      assertThat(resource.allocationHandle()).isSameAs(handle);
      assertThat(handle.uuid()).isPresent().isEqualTo(resource.uuid());
      assertThat(handle.descriptor()).isNotNegative();
      try (DeviceMemoryResource mapped = mapped(resource)) {
        assertThat(mapped.uuid()).isEqualTo(resource.uuid());
        assertThat(mapped.allocationHandle().uuid()).isEqualTo(resource.uuid());
        assertThat(mapped.allocationHandle().descriptor()).isNotEqualTo(handle.descriptor());
      }
      resource.close();
      assertThat(handle.isClosed()).isTrue();
      assertThatThrownBy(resource::allocationHandle).isInstanceOf(IllegalStateException.class);
    }
    try (DeviceMemoryResource other =
        new DeviceMemoryResource(here(), DeviceMemoryResourceOptions.DEFAULTS)) {
      assertThat(other.isIpcEnabled()).isFalse();
      assertThat(other.uuid()).isEmpty();
      assertThatThrownBy(other::allocationHandle)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("withIpcEnabled");
    }
  }

  @Test
  void sliceOfABuffer_arrivesAsThatPart() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(4096);
        DeviceMemoryResource mapped = mapped(resource)) {
      byte[] all = pattern(4096, 3);
      put(ours, all);
      BufferDescriptor part = ours.slice(1000, 200).descriptor();
      assertThat(part.offset()).isEqualTo(1000);
      assertThat(part.byteSize()).isEqualTo(200);
      try (DeviceBuffer whole = mapped.importBuffer(ours.descriptor());
          DeviceBuffer theirs = mapped.importBuffer(part)) {
        assertThat(theirs.address()).isEqualTo(whole.address() + 1000);
        assertThat(bytes(theirs)).isEqualTo(Arrays.copyOfRange(all, 1000, 1200));
      }
    }
  }

  @Test
  void descriptorOfAClosedBuffer_isNotGoodForTheNextOfItsSize() {
    try (DeviceMemoryResource resource = shared();
        DeviceMemoryResource mapped = mapped(resource)) {
      DeviceBuffer closed = resource.allocate(4096);
      BufferDescriptor descriptor = closed.descriptor();
      closed.close();
      try (DeviceBuffer next = resource.allocate(4096)) {
        assertThatThrownBy(() -> mapped.importBuffer(descriptor))
            .isInstanceOf(CudaException.class)
            .hasMessageContaining("freed");
        assertThat(next.descriptor()).isNotEqualTo(descriptor);
      }
    }
  }

  @Test
  void rawDescriptor_staysTheCallers() {
    DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(100)) {
      int raw = calls.duplicate(resource.allocationHandle().descriptor());
      try (DeviceMemoryResource mapped = DeviceMemoryResource.fromAllocationHandle(there(), raw)) {
        assertThat(calls.isOpen(raw)).isTrue();
        calls.close(raw);
        assertThat(mapped.uuid()).isEmpty();
        mapped.importBuffer(ours.descriptor()).close();
        UUID uuid = resource.uuid().orElseThrow();
        assertThat(mapped.register(uuid)).isSameAs(mapped);
        assertThat(mapped(resource)).as("now known by its UUID").isSameAs(mapped);
      }
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(there(), raw))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("not open");
      assertThatThrownBy(() -> DeviceMemoryResource.fromAllocationHandle(there(), -1))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void cachingPoolOnASharedResource_sharesItsBlocks() {
    try (DeviceMemoryResource resource = shared()) {
      var pool = new MemoryPool(exporter, PoolOptions.DEFAULTS.withUpstream(resource));
      try (pool;
          var one = pool.allocate(UNIT);
          var two = pool.allocate(UNIT);
          DeviceMemoryResource mapped = mapped(resource)) {
        two.fill((byte) 9);
        try (DeviceBuffer theirs = mapped.importBuffer(two.descriptor())) {
          assertThat(theirs.byteSize()).isEqualTo(512);
          assertThat(bytes(theirs)).containsOnly(9);
        }
        assertThat(one.descriptor().kind()).isEqualTo(BufferDescriptor.Kind.DEVICE_POOL);
      }
    }
  }

  @Test
  void reexport_reachesAThirdProcess() {
    try (var third = Cuda.open(CudaOptions.simulated());
        DeviceMemoryResource first = shared();
        DeviceBuffer ours = first.allocate(UNEVEN);
        DeviceMemoryResource second = mapped(first);
        DeviceBuffer theirs = second.importBuffer(ours.descriptor());
        DeviceMemoryResource last =
            DeviceMemoryResource.fromAllocationHandle(third.device(0), second.allocationHandle());
        DeviceBuffer end = last.importBuffer(theirs.slice(500).descriptor())) {
      end.fill((byte) 5);
      assertThat(bytes(ours.slice(500))).containsOnly(5);
      assertThat(bytes(ours.slice(0, 500))).doesNotContain(5);
    }
  }

  @Test
  void threadsThatImportTheSameDescriptor_allSeeTheMemory() throws Exception {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(4096);
        DeviceMemoryResource mapped = mapped(resource);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      ours.fill((byte) 7);
      BufferDescriptor descriptor = ours.descriptor();
      List<Callable<Void>> work = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        work.add(() -> {
          try (CudaStream stream = there().createStream()) {
            for (int round = 0; round < 25; round++) {
              try (DeviceBuffer theirs = mapped.importBuffer(descriptor, stream);
                  DeviceBuffer twice = mapped.importBuffer(descriptor, stream)) {
                assertThat(bytes(theirs)).containsOnly(7);
                assertThat(twice.address()).isEqualTo(theirs.address());
              }
            }
          }
          return null;
        });
      }
      for (Future<Void> each : threads.invokeAll(work)) {
        each.get();
      }
    }
  }

  @Test
  void rounds_leaveNeitherDescriptorsNorMemory() {
    long descriptors = 0;
    for (int round = 0; round < 100; round++) {
      try (DeviceMemoryResource resource = shared();
          DeviceBuffer ours = resource.allocate(64 * KIB);
          DeviceMemoryResource mapped = mapped(resource);
          DeviceBuffer theirs = mapped.importBuffer(ours.descriptor())) {
        theirs.fill((byte) round);
        assertThat(bytes(ours)).containsOnly(round);
      }
      if (round == 0) {
        descriptors = openFiles();
      }
    }
    assertThat(openFiles()).isLessThanOrEqualTo(descriptors);
  }

  /** Once all work is done, and what waited for it is given back. */
  private long openFiles() {
    for (int i = 0; i < 2; i++) {
      there().synchronize();
      here().synchronize();
    }
    return OpenFiles.count();
  }

  @Test
  void exporterThatEndsFirst_leavesTheImportersMapping() {
    DeviceMemoryResource resource = shared();
    DeviceBuffer ours = resource.allocate(UNEVEN);
    ours.fill((byte) 3);
    DeviceMemoryResource mapped = mapped(resource);
    DeviceBuffer theirs = mapped.importBuffer(ours.descriptor());
    assertThat(bytes(theirs)).containsOnly(3);
    exporter.close(); // which frees the memory: what is there is nobody's now
    theirs.fill((byte) 4);
    assertThat(bytes(theirs)).hasSize(1000);
    theirs.close();
    mapped.close();
  }

  @Test
  void forgottenImport_isFoundAndFreed() throws InterruptedException {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(UNEVEN);
        DeviceMemoryResource mapped = mapped(resource)) {
      BufferDescriptor descriptor = ours.descriptor();
      Forgetting.of(3, () -> mapped.importBuffer(descriptor));
      assertThat(Forgetting.collectUntil(() -> importer.leaksFound() == 3)).isTrue();
      try (DeviceBuffer again = mapped.importBuffer(descriptor)) {
        again.fill((byte) 1);
      }
    }
  }

  @Test
  void peers_areSetAnewOnTheMappedResource() {
    try (DeviceMemoryResource resource = shared()) {
      resource.peerAccessibleBy().add(exporter.device(1));
      try (DeviceBuffer ours = resource.allocate(100);
          DeviceMemoryResource mapped = mapped(resource)) {
        assertThat(mapped.peerAccessibleBy()).isEmpty();
        mapped.peerAccessibleBy().add(importer.device(1));
        assertThat(mapped.peerAccessibleBy()).containsExactly(importer.device(1));
        try (DeviceBuffer theirs = mapped.importBuffer(ours.descriptor())) {
          theirs.fill((byte) 4);
        }
        assertThat(bytes(ours)).containsOnly(4);
      }
    }
  }

  @Test
  void cudaWithEverythingLeftOpen_closesInOrder() {
    DeviceMemoryResource resource = shared();
    DeviceBuffer ours = resource.allocate(UNEVEN);
    PinnedMemoryResource pinned = new PinnedMemoryResource(exporter, PINNED);
    PinnedBuffer host = pinned.allocate(UNEVEN);
    DeviceMemoryResource mapped = mapped(resource);
    mapped.importBuffer(ours.descriptor());
    mapped.importBuffer(ours.descriptor());
    PinnedMemoryResource.fromAllocationHandle(importer, pinned.allocationHandle())
        .importBuffer(host.descriptor())
        .segment();
    importer.close();
    exporter.close();
    assertThat(ours.isClosed()).isTrue();
    // nothingIsLeft() counts
  }

  @Test
  void deallocateByAddress_asInTheSeed() {
    try (DeviceMemoryResource resource = shared();
        CudaStream stream = here().createStream()) {
      DeviceBuffer one = resource.allocate(100);
      DeviceBuffer two = resource.allocate(200, stream);
      assertThatThrownBy(() -> resource.deallocate(one.address(), 99))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("100");
      assertThatThrownBy(() -> resource.deallocate(12345, 100))
          .isInstanceOf(IllegalArgumentException.class);
      resource.deallocate(one.address(), 100);
      resource.deallocate(two.address(), 200, stream);
      resource.deallocate(0, 0);
      assertThat(one.isClosed()).isTrue();
      assertThat(two.isClosed()).isTrue();
      assertThatThrownBy(() -> resource.deallocate(one.address(), 100))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  /** Access of peers is not taken over, neither theirs nor ours. */
  @Test
  void importedMemory_isCopiedOnStreamsOfAnotherDevice() {
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer ours = resource.allocate(64 * KIB);
        DeviceMemoryResource mapped = mapped(resource);
        CudaStream other = importer.device(1).createStream();
        Buffer host = MemoryResource.managed().allocate(64 * KIB, other)) {
      byte[] one = pattern(64 * KIB, 1);
      put(ours, one);
      resource.peerAccessibleBy().add(exporter.device(1));
      try (DeviceBuffer theirs = mapped.importBuffer(ours.descriptor())) {
        theirs.copyTo(host, other);
        host.slice(0, 1000).fill((byte) 7, other);
        theirs.slice(1000, 1000).copyFrom(host.slice(0, 1000), other);
      }
      other.synchronize();
      System.arraycopy(bytes(host), 0, one, 1000, 1000);
      assertThat(bytes(ours)).isEqualTo(one);
    }
  }
}
