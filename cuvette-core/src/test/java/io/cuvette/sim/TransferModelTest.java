package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What memory of every kind holds after random copies and fills, beside arrays of the same. */
class TransferModelTest extends SimTestBase {
  private static final int BYTES = 300_000;
  private static final int STEPS = 120;
  private static final long GRANULE = 2 * MIB;
  private static final int RELAXED = 2;

  /** One memory: where it is, on which device, and what it holds. */
  private record Block(String name, long address, int device, byte[] content) {}

  private final long stream = stream(0);
  private final Arena arena = Arena.ofShared();
  private final List<Block> blocks = new ArrayList<>();

  private void add(String name, long address, int device) {
    byte[] content = new byte[BYTES];
    Arrays.fill(content, (byte) (blocks.size() + 1));
    driver.transfers().memsetD8Async(0, address, content[0], BYTES, stream);
    blocks.add(new Block(name, address, device, content));
  }

  private void make() {
    driver.devices().ctxEnablePeerAccess(0, 1);
    add("device", driver.memory().memAlloc(0, BYTES), 0);
    add("other device", driver.memory().memAlloc(1, BYTES), 1);
    add("pinned", driver.memory().memHostAlloc(0, BYTES, 0).address(), 0);
    add("managed", driver.memory().memAllocManaged(0, BYTES, 1).address(), 0);
    MemorySegment registered = arena.allocate(BYTES, 64);
    driver.memory().memHostRegister(0, registered, 0);
    add("registered", registered.address(), 0);
    add("mapped", mapped(AllocationProperties.ofDevice(0, 0)), 0);
    add("mapped elsewhere", mapped(AllocationProperties.ofDevice(1, 0)), 1);
    add("mapped on the host", mapped(new AllocationProperties(0, 2, 0)), 0);
    for (int location : new int[] {1, 3, 1}) {
      long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, location, 0, 0));
      driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
      long address = driver.ordered().memAllocFromPoolAsync(0, BYTES, pool, stream);
      add("pool at %d".formatted(location), address, 0);
    }
    long graph = driver.graphs().graphCreate();
    GraphNodeParams allocation = new GraphNodeParams.Allocation(0, BYTES, List.of(), 0);
    long address = driver.graphs().graphAddNode(0, graph, new long[0], allocation).address();
    launch(graph);
    add("graph", address, 0);
  }

  private void launch(long graph) {
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphLaunch(0, executable, stream);
  }

  /** In two mappings, of which one ends within it. */
  private long mapped(AllocationProperties properties) {
    long range = driver.virtual().memAddressReserve(2 * GRANULE, 0, 0);
    for (long at : new long[] {range, range + GRANULE}) {
      driver.virtual().memMap(at, GRANULE, 0, driver.virtual().memCreate(GRANULE, properties));
    }
    driver.virtual().memSetAccess(range, 2 * GRANULE, 1, new int[] {0, 1}, 3);
    return range + GRANULE - BYTES / 2;
  }

  private void copy(SplittableRandom random) {
    Block to = blocks.get(random.nextInt(blocks.size()));
    Block from = blocks.get(random.nextInt(blocks.size()));
    int bytes = size(random);
    int at = random.nextInt(BYTES - bytes + 1);
    int of = random.nextInt(BYTES - bytes + 1);
    boolean asPeers = random.nextBoolean();
    Runnable call =
        () -> {
          if (asPeers) {
            driver
                .transfers()
                .memcpyPeerAsync(
                    0, to.address + at, to.device, from.address + of, from.device, bytes, stream);
          } else {
            driver.transfers().memcpyAsync(0, to.address + at, from.address + of, bytes, stream);
          }
        };
    if (to == from && Math.abs(at - of) < bytes) {
      assertFails(CudaStatus.INVALID_VALUE, "bytes are in the source", call::run);
    } else {
      perhapsInAGraph(random, call);
      System.arraycopy(from.content, of, to.content, at, bytes);
    }
  }

  private static int size(SplittableRandom random) {
    return 1 + (random.nextInt(4) == 0 ? random.nextInt(BYTES) : random.nextInt(5000));
  }

  private void perhapsInAGraph(SplittableRandom random, Runnable call) {
    if (random.nextInt(4) > 0) {
      call.run();
      return;
    }
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    call.run();
    launch(driver.captures().streamEndCapture(0, stream));
  }

  private void fill(SplittableRandom random) {
    Block to = blocks.get(random.nextInt(blocks.size()));
    int unit = 1 << random.nextInt(3);
    int count = 1 + (size(random) - 1) / unit;
    int at = (random.nextInt(BYTES - count * unit + 1) + 3) / 4 * 4;
    at = Math.min(at, (BYTES - count * unit) / 4 * 4);
    long address = to.address + at;
    int value = random.nextInt();
    perhapsInAGraph(
        random,
        () -> {
          switch (unit) {
            case 1 -> driver.transfers().memsetD8Async(0, address, (byte) value, count, stream);
            case 2 -> driver.transfers().memsetD16Async(0, address, (short) value, count, stream);
            default -> driver.transfers().memsetD32Async(0, address, value, count, stream);
          }
        });
    for (int i = 0; i < count * unit; i++) {
      to.content[at + i] = (byte) (value >>> (8 * (i % unit)));
    }
  }

  private void rows(SplittableRandom random) {
    int to = random.nextInt(blocks.size());
    int from = (to + 1 + random.nextInt(blocks.size() - 1)) % blocks.size();
    int width = 1 + random.nextInt(60);
    int height = 1 + random.nextInt(9);
    int depth = 1 + random.nextInt(4);
    int[] pitch = {width + random.nextInt(30), width + random.nextInt(30)};
    int[] all = {height + random.nextInt(4), height + random.nextInt(4)};
    int at = random.nextInt(1000);
    int of = random.nextInt(1000);
    BoxCopy box =
        new BoxCopy(
            new BoxCopy.Side(blocks.get(to).address + at, pitch[0], all[0]),
            new BoxCopy.Side(blocks.get(from).address + of, pitch[1], all[1]),
            width,
            height,
            depth);
    perhapsInAGraph(random, () -> driver.transfers().memcpy3DAsync(0, box, stream));
    for (int z = 0; z < depth; z++) {
      for (int y = 0; y < height; y++) {
        System.arraycopy(
            blocks.get(from).content,
            of + (z * all[1] + y) * pitch[1],
            blocks.get(to).content,
            at + (z * all[0] + y) * pitch[0],
            width);
      }
    }
  }

  private void batch(SplittableRandom random) {
    int count = 1 + random.nextInt(4);
    long[] targets = new long[count];
    long[] sources = new long[count];
    long[] bytes = new long[count];
    for (int i = 0; i < count; i++) {
      Block to = blocks.get(i);
      Block from = blocks.get(blocks.size() - 1 - random.nextInt(5));
      int size = size(random);
      int at = random.nextInt(BYTES - size + 1);
      int of = random.nextInt(BYTES - size + 1);
      targets[i] = to.address + at;
      sources[i] = from.address + of;
      bytes[i] = size;
      System.arraycopy(from.content, of, to.content, at, size);
    }
    driver.transfers().memcpyBatchAsync(0, targets, sources, bytes, stream);
  }

  /** To and from memory that the driver did not make. */
  private void pageable(SplittableRandom random) {
    Block block = blocks.get(random.nextInt(blocks.size()));
    int bytes = size(random);
    int at = random.nextInt(BYTES - bytes + 1);
    MemorySegment segment = arena.allocate(bytes);
    if (random.nextBoolean()) {
      byte[] values = new byte[bytes];
      random.nextBytes(values);
      segment.copyFrom(MemorySegment.ofArray(values));
      driver.transfers().memcpyHtoDAsync(0, block.address + at, segment, stream);
      segment.fill((byte) 0); // the call has taken it
      System.arraycopy(values, 0, block.content, at, bytes);
    } else {
      driver.transfers().memcpyDtoHAsync(0, segment, block.address + at, stream);
      driver.streams().streamSynchronize(0, stream);
      assertThat(segment.toArray(ValueLayout.JAVA_BYTE))
          .as(block.name)
          .isEqualTo(Arrays.copyOfRange(block.content, at, at + bytes));
    }
  }

  private void assertContents() {
    MemorySegment segment = arena.allocate(BYTES);
    for (Block block : blocks) {
      driver.transfers().memcpyDtoHAsync(0, segment, block.address, stream);
      driver.streams().streamSynchronize(0, stream);
      assertThat(segment.mismatch(MemorySegment.ofArray(block.content)))
          .as(block.name)
          .isEqualTo(-1);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void memoryOfEveryKind_holdsWhatWasCopiedAndFilled(int seed) {
    SplittableRandom random = new SplittableRandom(seed);
    make();
    for (int step = 1; step <= STEPS; step++) {
      switch (random.nextInt(8)) {
        case 0, 1, 2 -> copy(random);
        case 3, 4 -> fill(random);
        case 5 -> rows(random);
        case 6 -> batch(random);
        default -> pageable(random);
      }
      if (step % 40 == 0) {
        assertContents();
      }
    }
    driver.memory().memHostUnregister(0, blocks.get(4).address);
    arena.close();
  }
}
