package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.streamcache.CachedBlock;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is true of memory from upstream is true of each block that a pool cuts out of it. */
@Timeout(60)
class BlockOfAChunkTest {
  private static final int BYTES = 4096;

  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDevice("sim:devices=2")
              .withDecorator(driver ->
                  DriverProxy.of((method, arguments) ->
                      switch (method.getName()) {
                        case "ipcOpenMemHandle" ->
                            driver.memory().memAlloc((int) arguments[0], BYTES);
                        case "ipcCloseMemHandle" -> {
                          driver.memory().memFree((int) arguments[0], (long) arguments[1]);
                          yield null;
                        }
                        case "memPoolExportPointer" -> new byte[64];
                        default -> DriverProxy.forward(driver, method, arguments);
                      })));
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream();

  /** Reachable: the collector takes back what is not. */
  private final List<Object> kept = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  private Map<String, MemoryResource> upstreams() {
    Map<String, MemoryResource> all = new LinkedHashMap<>();
    DeviceMemoryResource shared =
        new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
    shared.pool().memory().shareAs(BufferDescriptor.Kind.DEVICE_POOL);
    BufferDescriptor theirs =
        new BufferDescriptor(
            BufferDescriptor.Kind.PLAIN, 0, BYTES, new UUID(7, 7), new UUID(0, 0), new byte[64]);
    all.put("direct", MemoryResource.direct());
    all.put("managed", MemoryResource.managed());
    all.put("async", MemoryResource.async());
    all.put("shared", shared);
    all.put("imported", (_, of) -> device.importBuffer(theirs, of));
    all.put("a pool", new MemoryPool(cuda));
    all.put("an elastic pool", new ElasticMemoryPool(cuda));
    all.put(
        "a pool of managed memory",
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed())));
    return all;
  }

  @Test
  void block_hasWhatItsChunkHas() {
    upstreams()
        .forEach((name, upstream) -> {
          MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
          pool.allocate(BYTES, stream).close();
          Buffer first = pool.allocate(1000, stream);
          Buffer second = pool.allocate(2000, stream);
          kept.addAll(List.of(pool, first, second));
          for (Buffer each : List.of(first, second)) {
            CachedBlock block = (CachedBlock) ((BufferBase) each).block();
            Block of = block.chunk.block();
            assertThat(block.isMapped()).as(name).isEqualTo(of.isMapped());
            assertThat(block.isMapped()).as(name).isEqualTo(name.equals("imported"));
            assertThat(block.isPlain()).as(name).isEqualTo(of.isPlain());
            for (CudaDevice asked : cuda.devices()) {
              assertThat(block.deniesAccess(asked.core()))
                  .as("%s, %s", name, asked)
                  .isEqualTo(of.deniesAccess(asked.core()));
            }
            assertThat(block.depth()).as(name).isEqualTo(of.depth() + 1);
            assertThat(block.requestedBytes()).as(name).isEqualTo(each.byteSize());
            assertThat(block.blockBytes()).as(name).isBetween(each.byteSize(), 2048L);
            assertThat(block.describe()).contains(Long.toString(each.byteSize()));
          }
          assertThat(pool.stats().chunks()).as(name).isOne();
        });
  }

  /** The place is that in the whole of what the driver exports. */
  @Test
  void descriptorOfABlock_isThatOfItsPlaceInTheChunk() {
    MemoryResource shared = upstreams().get("shared");
    MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(shared));
    pool.allocate(BYTES, stream).close();
    DeviceBuffer first = (DeviceBuffer) pool.allocate(1024, stream);
    DeviceBuffer second = (DeviceBuffer) pool.allocate(1024, stream);
    assertThat(List.of(first.descriptor().offset(), second.descriptor().offset()))
        .containsExactly(0L, 1024L);
    assertThat(second.descriptor().byteSize()).isEqualTo(1024);
    assertThat(second.slice(8, 16).descriptor().offset()).isEqualTo(1032);
  }
}
