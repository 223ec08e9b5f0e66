package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.block.Block;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the collector has found comes back before anything is made that could want for it. */
@Timeout(60)
class TakenBackTest {
  private static final int BYTES = 4096;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakListener(_ -> {}));
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream();
  private final Arena arena = Arena.ofAuto();

  /** Reachable: what the collector finds itself is not what is tested. */
  private final List<Object> made = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  /** Its block, which the collector is said to have found. */
  private Block forgotten(Buffer buffer) {
    made.add(buffer);
    Block block = ((BufferBase) buffer).block();
    assertThat(block.enqueue()).isTrue();
    assertThat(block.isForgotten()).isTrue();
    return block;
  }

  private Map<String, Supplier<Object>> everything() {
    Map<String, Supplier<Object>> all = new LinkedHashMap<>();
    all.put("direct", () -> MemoryResource.direct().allocate(BYTES, stream));
    all.put("managed", () -> MemoryResource.managed().allocate(BYTES, stream));
    all.put("async", () -> MemoryResource.async().allocate(BYTES, stream));
    all.put("direct pinned", () -> cuda.directPinned().allocate(BYTES));
    all.put("registered", () -> cuda.registerHost(arena.allocate(BYTES)));
    all.put("growable", () -> device.growable(4L << 20));
    all.put("event", device::createEvent);
    all.put("stream", device::createStream);
    all.put("record", stream::record);
    all.put("pool", () -> new MemoryPool(cuda).allocate(BYTES, stream));
    all.put("elastic pool", () -> new ElasticMemoryPool(cuda).allocate(BYTES, stream));
    all.put("pinned pool", () -> new PinnedMemoryPool(cuda).allocate(BYTES));
    all.put("definition", () -> new GraphDefinition(device));
    all.put("leaksFound", cuda::leaksFound);
    return all;
  }

  @Test
  void whatWasFound_isTakenBack_byWhateverIsMade() {
    everything()
        .forEach((name, make) -> {
          for (MemoryResource of :
              List.of(MemoryResource.direct(), MemoryResource.async(), new MemoryPool(cuda))) {
            Block block = forgotten(of.allocate(BYTES, stream));
            made.add(make.get());
            assertThat(block.ended()).as(name).isTrue();
          }
        });
  }

  /** The driver takes no memory twice. */
  @Test
  void memoryWhoseBufferWasForgotten_canBeRegisteredAgain() {
    MemorySegment segment = arena.allocate(BYTES);
    for (int i = 0; i < 3; i++) {
      Block block = forgotten(cuda.registerHost(segment));
      assertThat(block.ended()).isFalse();
    }
    PinnedBuffer last = cuda.registerHost(segment);
    last.close();
  }
}
