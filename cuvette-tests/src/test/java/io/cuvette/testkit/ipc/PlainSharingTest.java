package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Device memory without a pool of the driver, from one process to another. */
class PlainSharingTest extends TwoProcesses {

  private Buffer direct(long bytes) {
    return MemoryResource.direct().allocate(bytes, here().nullStream());
  }

  @Test
  void directMemory_isSharedWithItsOffsetAndSize() {
    try (Buffer ours = direct(4096)) {
      byte[] all = pattern(4096, 1);
      put(ours, all);
      BufferDescriptor descriptor = ours.slice(100, 50).descriptor();
      assertThat(descriptor.kind()).isEqualTo(BufferDescriptor.Kind.PLAIN);
      assertThat(descriptor.offset()).isEqualTo(100);
      assertThat(descriptor.deviceUuid()).isEqualTo(here().uuid());
      try (DeviceBuffer theirs = there().importBuffer(descriptor)) {
        assertThat(theirs.isMapped()).isTrue();
        assertThat(importer.openObjects())
            .singleElement()
            .satisfies(open -> assertThat(open.what()).startsWith("imported buffer of 50 bytes"));
        assertThat(bytes(theirs)).isEqualTo(Arrays.copyOfRange(all, 100, 150));
        theirs.fill((byte) 0);
      }
      Arrays.fill(all, 100, 150, (byte) 0);
      assertThat(bytes(ours)).isEqualTo(all);
    }
  }

  @Test
  void blocksOfACachingPool_areSharedWithTheirPlaceInTheChunk() {
    var pool = exporter.defaultMemoryPool();
    Buffer chunk = pool.allocate(4096);
    chunk.close();
    try (Buffer one = pool.allocate(512);
        Buffer two = pool.allocate(1000)) {
      assertThat(two.address()).isEqualTo(one.address() + 512);
      one.fill((byte) 1);
      two.fill((byte) 2);
      assertThat(two.descriptor().offset()).isEqualTo(512);
      assertThat(two.descriptor().byteSize()).isEqualTo(1000);
      try (DeviceBuffer theirTwo = there().importBuffer(two.descriptor());
          DeviceBuffer theirOne = there().importBuffer(one.descriptor())) {
        assertThat(bytes(theirOne)).containsOnly(1);
        assertThat(bytes(theirTwo)).containsOnly(2);
        assertThat(theirTwo.address()).as("one mapping").isEqualTo(theirOne.address() + 512);
      }
    }
  }

  @Test
  void imports_areOfTheImportersCurrentStream_unlessOneIsNamed() {
    try (DeviceMemoryResource resource = shared();
        PinnedMemoryResource host = new PinnedMemoryResource(exporter, PINNED);
        Buffer plain = direct(64);
        Buffer pooled = resource.allocate(64);
        Buffer pinned = host.allocate(64);
        DeviceMemoryResource theirs = mapped(resource);
        PinnedMemoryResource theirHost =
            PinnedMemoryResource.fromAllocationHandle(importer, host.allocationHandle());
        CudaStream stream = there().createStream();
        Scope _ = stream.use();
        Buffer theirPlain = there().importBuffer(plain.descriptor());
        Buffer theirPooled = theirs.importBuffer(pooled.descriptor());
        Buffer theirPinned = theirHost.importBuffer(pinned.descriptor())) {
      for (Buffer each : List.of(theirPlain, theirPooled, theirPinned)) {
        assertThat(each.stream()).as("%s", each).isEqualTo(stream);
      }
    }
  }

  @Test
  void lastClose_waitsForTheWorkOfAll() {
    try (Buffer ours = direct(4096);
        CudaStream one = there().createStream();
        CudaStream two = there().createStream()) {
      DeviceBuffer first = there().importBuffer(ours.descriptor(), one);
      DeviceBuffer second = there().importBuffer(ours.descriptor(), two);
      first.fill((byte) 1, one);
      first.close();
      second.fill((byte) 2, two);
      second.close();
      assertThat(one.isDone()).isTrue();
      assertThat(two.isDone()).isTrue();
    }
  }

  @Test
  void ownDescriptor_isRefusedBeforeTheDriver() {
    try (Buffer ours = direct(4096)) {
      assertThatThrownBy(() -> here().importBuffer(ours.descriptor()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("this very process");
    }
  }

  @Test
  void memoryThatIsGone_isTheDriversRefusal() {
    Buffer ours = direct(4096);
    BufferDescriptor descriptor = ours.descriptor();
    ours.close();
    assertThatThrownBy(() -> there().importBuffer(descriptor)).isInstanceOf(CudaException.class);
  }

  @Test
  void importedMemory_isPassedOn() {
    try (var third = Cuda.open(CudaOptions.simulated());
        Buffer ours = direct(1000);
        DeviceBuffer theirs = there().importBuffer(ours.descriptor());
        DeviceBuffer last = third.device(0).importBuffer(theirs.slice(10, 20).descriptor())) {
      last.fill((byte) 8);
      assertThat(bytes(ours.slice(10, 20))).containsOnly(8);
    }
  }

  @Test
  void wrappedMemory_isSharedIfTheDriverCan() {
    try (Buffer ours = direct(1000)) {
      Buffer wrapped = exporter.wrap(ours.address() + 100, 200, ours);
      try (DeviceBuffer theirs = there().importBuffer(wrapped.descriptor())) {
        theirs.fill((byte) 6);
      }
      assertThat(bytes(ours.slice(100, 200))).containsOnly(6);
    }
    try (Buffer ordered = MemoryResource.async().allocate(1000, here().nullStream())) {
      Buffer wrapped = exporter.wrap(ordered.address(), 200, ordered);
      assertThatThrownBy(wrapped::descriptor).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(ordered::descriptor).isInstanceOf(IllegalStateException.class);
    }
  }
}
