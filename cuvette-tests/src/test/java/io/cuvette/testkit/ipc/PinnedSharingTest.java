package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.PoolCalls;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Host pools and their buffers from one process to another. */
class PinnedSharingTest extends TwoProcesses {
  /** More than the copies that such a fill is made of take at once, and not a multiple of that. */
  @Test
  void fillOfAnImportedPinnedBuffer_reachesAllOfIt_andNoMore() {
    int bytes = (9 << 20) + 12;
    try (PinnedMemoryResource resource = new PinnedMemoryResource(exporter, PINNED);
        PinnedBuffer ours = resource.allocate(bytes + 16);
        PinnedMemoryResource mapped =
            PinnedMemoryResource.fromAllocationHandle(importer, resource.allocationHandle());
        PinnedBuffer theirs = mapped.importBuffer(ours.descriptor())) {
      ours.segment().fill((byte) 1);
      theirs.slice(4, bytes).fillInts(0x04030201);
      ByteBuffer seen = ours.byteBuffer().order(ByteOrder.LITTLE_ENDIAN);
      assertThat(seen.getInt(0)).isEqualTo(0x01010101);
      assertThat(seen.getInt(bytes + 4)).isEqualTo(0x01010101);
      for (int at = 4; at < bytes + 4; at += Integer.BYTES) {
        if (seen.getInt(at) != 0x04030201) {
          assertThat(seen.getInt(at)).as("at %d", at).isEqualTo(0x04030201);
        }
      }
      theirs.fill((byte) 7);
      assertThat(bytes(ours)).containsOnly(7);
      there().synchronize();
      PoolCalls pools = importer.driver().pools();
      assertThat(
              pools.memPoolGetAttribute(
                  pools.deviceGetMemPool(0), MemPoolAttribute.USED_MEM_CURRENT))
          .as("what fills were made of")
          .isZero();
    }
  }

  /** The memory of the device that it is made of is no more than one of its copies takes. */
  @Test
  void fillOfAnImportedPinnedBuffer_takesMemoryForOneCopyAlone() {
    ScriptedDriver script = new ScriptedDriver();
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    try (PinnedMemoryResource resource = new PinnedMemoryResource(exporter, PINNED);
        PinnedBuffer ours = resource.allocate(9 * MIB);
        Cuda other = Cuda.open(CudaOptions.DEFAULTS.withDriver(script.over(driver)));
        PinnedMemoryResource mapped =
            PinnedMemoryResource.fromAllocationHandle(other, resource.allocationHandle());
        PinnedBuffer theirs = mapped.importBuffer(ours.descriptor())) {
      script.note("memAllocAsync", call -> Long.toString(call.number("bytes")));
      theirs.slice(0, 4096).fill((byte) 1);
      theirs.fill((byte) 2);
      assertThat(script.notes()).containsExactly("4096", Long.toString(4 * MIB));
      assertThat(bytes(ours)).containsOnly(2);
    }
  }

  @Test
  void pinnedBuffers_areSeenByBothHosts() {
    try (PinnedMemoryResource resource = new PinnedMemoryResource(exporter, PINNED);
        PinnedBuffer ours = resource.allocate(4096);
        PinnedMemoryResource mapped =
            PinnedMemoryResource.fromAllocationHandle(importer, resource.allocationHandle())) {
      assertThat(resource.numaId())
          .isEqualTo(here().attribute(DeviceAttribute.HOST_NUMA_ID))
          .isNotNegative();
      assertThat(mapped.numaId()).isEqualTo(-1);
      assertThat(mapped.deviceId()).isEqualTo(-1);
      assertThat(mapped.isHostAccessible()).isTrue();
      ours.segment().set(ValueLayout.JAVA_LONG, 8, 42);
      try (PinnedBuffer theirs = mapped.importBuffer(ours.descriptor());
          PinnedBuffer again = mapped.importBuffer(ours.descriptor())) {
        assertThat(theirs.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(42);
        again.segment().set(ValueLayout.JAVA_LONG, 8, 43);
        assertThat(ours.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(43);
        MemorySegment dead = theirs.segment();
        theirs.close();
        assertThatThrownBy(() -> dead.get(ValueLayout.JAVA_LONG, 8))
            .isInstanceOf(IllegalStateException.class);
        assertThat(again.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(43);
      }
      assertThatThrownBy(() -> mapped.allocate(1))
          .isInstanceOf(UnsupportedOperationException.class);
    }
  }

  /** What a caching pool lends is of its upstream, whoever's that is. */
  @Test
  void blocksOfACachingPool_areSharedAndMappedAsTheirUpstream() {
    try (PinnedMemoryResource resource = new PinnedMemoryResource(exporter, PINNED);
        PinnedMemoryPool ours =
            new PinnedMemoryPool(
                exporter, PinnedPoolOptions.DEFAULTS.withUpstream(resource::allocate));
        PinnedBuffer block = ours.allocate(4096);
        PinnedMemoryResource mapped =
            PinnedMemoryResource.fromAllocationHandle(importer, resource.allocationHandle());
        PinnedMemoryPool theirs =
            new PinnedMemoryPool(
                importer,
                PinnedPoolOptions.DEFAULTS.withUpstream(
                    _ -> mapped.importBuffer(block.descriptor())));
        PinnedBuffer seen = theirs.allocate(4096)) {
      assertThat(block.isMapped()).isFalse();
      assertThat(seen.isMapped()).isTrue();
      block.segment().set(ValueLayout.JAVA_LONG, 8, 44);
      assertThat(seen.segment().get(ValueLayout.JAVA_LONG, 8)).isEqualTo(44);
    }
  }

  /** The free of what was there is done, but nobody has asked. */
  @Test
  void bufferThatIsMapped_whereAnotherOneWas_isImported() {
    ScriptedDriver script = new ScriptedDriver();
    SimulatedDriver driver =
        SimulatedDriver.open(SimulatedOptions.DEFAULTS.withMemoryBytes(64 * MIB));
    try (PinnedMemoryResource resource = new PinnedMemoryResource(exporter, PINNED);
        PinnedBuffer one = resource.allocate(4096);
        PinnedBuffer two = resource.allocate(4096);
        Cuda other = Cuda.open(CudaOptions.DEFAULTS.withDriver(script.over(driver)));
        CudaStream stream = other.device(0).createStream(StreamOptions.NON_BLOCKING);
        PinnedMemoryResource mapped =
            PinnedMemoryResource.fromAllocationHandle(other, resource.allocationHandle())) {
      two.segment().fill((byte) 2);
      PinnedBuffer first = mapped.importBuffer(one.descriptor(), stream);
      final long place = first.address();
      final Gate gate = Gate.on(stream);
      first.close();
      script.answer(
          "memPoolImportPointer",
          call -> {
            gate.open();
            driver.devices().ctxSynchronize(0);
            return call.proceed();
          });
      try (PinnedBuffer second = mapped.importBuffer(two.descriptor(), stream)) {
        assertThat(second.address()).isEqualTo(place);
        assertThat(second.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(2);
      }
    }
    assertThat(driver.report().isEmpty()).as("%s", driver.report()).isTrue();
  }

  @Test
  void numaNode_followsTheRules() {
    try (var plain = new PinnedMemoryResource(exporter, PinnedMemoryResourceOptions.DEFAULTS)) {
      assertThat(plain.numaId()).isEqualTo(-1);
      assertThat(plain.isIpcEnabled()).isFalse();
    }
    int node = here().attribute(DeviceAttribute.HOST_NUMA_ID);
    try (var placed =
            new PinnedMemoryResource(
                exporter, PinnedMemoryResourceOptions.DEFAULTS.withNumaId(node));
        var both = new PinnedMemoryResource(exporter, PINNED.withNumaId(node));
        var derived = new PinnedMemoryResource(exporter, PINNED)) {
      assertThat(placed.numaId()).isEqualTo(node);
      assertThat(both.numaId()).isEqualTo(node);
      assertThat(derived.numaId()).isEqualTo(node);
    }
    assertThatThrownBy(() -> PINNED.withNumaId(-1)).isInstanceOf(IllegalArgumentException.class);
    for (var options : List.of(PINNED, PinnedMemoryResourceOptions.DEFAULTS)) {
      assertThatThrownBy(() -> new PinnedMemoryResource(exporter, options.withNumaId(77)))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("numaId: 77 ");
    }
  }
}
