package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a driver says of its memory, of whichever kinds a program has allocated it. */
class MemoryCountsTest extends SimTestBase {
  private static final long PAGE = 2 * MIB;
  private static final long UNIT = 512;
  private static final int STEPS = 100;
  private static final int MOST = 20;

  private final Arena arena = Arena.ofAuto();

  /** What stands for managed and for host memory in reports is a word for each kind. */
  enum Kind {
    PLAIN("DEVICE memory"),
    POOLED("DEVICE memory"),
    OF_GRAPH("DEVICE memory"),
    MAPPED(""),
    PINNED("PINNED memory"),
    MANAGED("MANAGED memory"),
    REGISTERED("REGISTERED memory"),
    POOLED_HOST("PINNED memory"),
    POOLED_MANAGED("MANAGED memory");

    private final String word;

    Kind(String word) {
      this.word = word;
    }

    boolean isOnDevice() {
      return ON_DEVICE.contains(this);
    }
  }

  private static final List<Kind> ON_DEVICE =
      List.of(Kind.PLAIN, Kind.POOLED, Kind.OF_GRAPH, Kind.MAPPED);

  private record Block(Kind kind, int device, long address, long bytes, Object handle) {
    @Override
    public String toString() {
      return "%s 0x%x: %d bytes, device %d".formatted(kind.word, address, bytes, device);
    }
  }

  private static long up(long bytes, long unit) {
    return (bytes + unit - 1) / unit * unit;
  }

  private Block allocate(SimulatedDriver on, Kind kind, int device, long bytes) {
    Object handle = "";
    long address =
        switch (kind) {
          case PLAIN -> on.memory().memAlloc(device, bytes);
          case POOLED -> on.ordered().memAllocAsync(device, bytes, 0);
          case OF_GRAPH -> ofGraph(on, device, bytes);
          case MAPPED ->
              on.virtual().memCreate(up(bytes, PAGE), AllocationProperties.ofDevice(device, 0));
          case PINNED -> on.memory().memHostAlloc(device, bytes, 0).address();
          case MANAGED -> on.memory().memAllocManaged(device, bytes, 1).address();
          case REGISTERED -> {
            MemorySegment memory = arena.allocate(bytes);
            handle = memory;
            on.memory().memHostRegister(device, memory, 0);
            yield memory.address();
          }
          case POOLED_HOST, POOLED_MANAGED -> {
            boolean managed = kind == Kind.POOLED_MANAGED;
            PoolProperties of = new PoolProperties(managed ? 2 : 1, 0, managed ? 1 : 2, 0, 0);
            handle = on.pools().memPoolCreate(of);
            yield on.ordered().memAllocFromPoolAsync(device, bytes, (long) handle, 0);
          }
        };
    return new Block(kind, device, address, bytes, handle);
  }

  private static long ofGraph(SimulatedDriver on, int device, long bytes) {
    long graph = on.graphs().graphCreate();
    GraphNodeParams of = new GraphNodeParams.Allocation(device, bytes, List.of(), 0);
    try {
      long node = on.graphs().graphAddNode(device, graph, new long[0], of).node();
      GraphNodeParams made = on.graphs().graphNodeGetParams(node);
      long executable = on.graphs().graphInstantiateWithParams(device, graph, 0, 0).executable();
      try {
        on.graphs().graphLaunch(device, executable, 0);
      } finally {
        on.graphs().graphExecDestroy(executable);
      }
      return ((GraphNodeParams.Allocation) made).address();
    } finally {
      on.graphs().graphDestroy(graph);
    }
  }

  private static void free(SimulatedDriver on, Block block) {
    switch (block.kind) {
      case PLAIN, MANAGED -> on.memory().memFree(block.device, block.address);
      case POOLED, OF_GRAPH -> on.ordered().memFreeAsync(block.device, block.address, 0);
      case MAPPED -> on.virtual().memRelease(block.address);
      case PINNED -> on.memory().memFreeHost(block.device, block.address);
      case REGISTERED -> on.memory().memHostUnregister(block.device, block.address);
      case POOLED_HOST, POOLED_MANAGED -> {
        on.ordered().memFreeAsync(block.device, block.address, 0);
        on.pools().memPoolDestroy((long) block.handle);
      }
    }
  }

  private void assertCounts(List<Block> blocks) {
    long addresses = blocks.stream().filter(block -> block.kind != Kind.MAPPED).count();
    assertThat(driver.liveAllocations()).isEqualTo((int) addresses);
    for (int device = 0; device < 2; device++) {
      assertThat(driver.liveBytes(device)).isEqualTo(bytesOn(device, blocks));
    }
    assertThat(driver.liveHostBytes())
        .isEqualTo(blocks.stream().filter(b -> !b.kind.isOnDevice()).mapToLong(Block::bytes).sum());
    List<String> lines =
        driver.report().lines().filter(line -> line.contains(" memory 0x")).toList();
    assertThat(lines).hasSize((int) addresses);
    assertThat(lines)
        .map(line -> line.replaceAll(" from a pool of .*", ""))
        .containsExactlyInAnyOrderElementsOf(
            blocks.stream()
                .filter(block -> block.kind != Kind.MAPPED)
                .map(Block::toString)
                .toList());
  }

  private static long bytesOn(int device, List<Block> blocks) {
    return blocks.stream()
        .filter(block -> block.kind.isOnDevice() && block.device == device)
        .mapToLong(block -> up(block.bytes, block.kind == Kind.MAPPED ? PAGE : UNIT))
        .sum();
  }

  @ParameterizedTest
  @ValueSource(longs = {5, 6})
  void counts_areThoseOfWhatIsAllocated(long seed) {
    Random random = new Random(seed);
    Map<Integer, Long> before = Map.of(0, freeBytes(driver, 0), 1, freeBytes(driver, 1));
    List<Block> blocks = new ArrayList<>();
    for (int step = 0; step < STEPS; step++) {
      if (blocks.size() < MOST && random.nextInt(5) < 3) {
        Kind kind = Kind.values()[random.nextInt(Kind.values().length)];
        blocks.add(allocate(driver, kind, random.nextInt(2), 1 + random.nextInt(100_000)));
      } else if (!blocks.isEmpty()) {
        Block block = blocks.get(random.nextInt(blocks.size()));
        if (random.nextBoolean()) {
          blocks.remove(block);
          free(driver, block);
        } else if (!block.kind.isOnDevice()) {
          long offset = random.nextLong(block.bytes);
          driver.memory().hostView(0, block.address + offset, block.bytes - offset, arena);
        }
      }
      assertCounts(blocks);
    }
    blocks.forEach(block -> free(driver, block));
    for (int device = 0; device < 2; device++) {
      driver.devices().ctxSynchronize(device);
      driver.graphs().deviceGraphMemTrim(device);
    }
    assertCounts(List.of());
    before.forEach((device, bytes) -> assertThat(freeBytes(driver, device)).isEqualTo(bytes));
  }

  private static long freeBytes(SimulatedDriver on, int device) {
    return on.devices().memGetInfo(device).freeBytes();
  }

  private static SimulatedDriver bare(String more) {
    return SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB," + more));
  }

  /** Where neither a context nor others have any of it. */
  @ParameterizedTest
  @EnumSource(names = {"PLAIN", "POOLED", "OF_GRAPH", "MAPPED"})
  void allOfADevice_isThereForOneAllocation_andNoByteMore(Kind kind) {
    try (SimulatedDriver bare = bare("context=0")) {
      Block all = allocate(bare, kind, 0, 64 * MIB);
      assertThat(freeBytes(bare, 0)).isZero();
      assertThat(bare.liveBytes(0)).isEqualTo(64 * MIB);
      for (Kind other : ON_DEVICE) {
        assertFails(CudaStatus.OUT_OF_MEMORY, "", () -> allocate(bare, other, 0, 1));
      }
      assertThat(bare.liveBytes(0)).isEqualTo(64 * MIB);
      free(bare, all);
      bare.devices().ctxSynchronize(0);
      bare.graphs().deviceGraphMemTrim(0);
      assertThat(freeBytes(bare, 0)).isEqualTo(64 * MIB);
      assertFails(CudaStatus.OUT_OF_MEMORY, "", () -> allocate(bare, kind, 0, 64 * MIB + 1));
      assertThat(bare.liveAllocations()).isZero();
      assertThat(freeBytes(bare, 0)).isEqualTo(64 * MIB);
    }
  }

  /** What was prefetched leaves the device page by page; what nobody can have stays free. */
  @ParameterizedTest
  @EnumSource(names = {"PLAIN", "POOLED", "OF_GRAPH", "MAPPED"})
  void managedMemory_makesRoomForAll(Kind kind) {
    long kept = (148 * MIB / 74 + PAGE - 1) / PAGE * PAGE;
    try (SimulatedDriver bare =
        SimulatedDriver.open(SimulatedOptions.parse("memory=192MiB,context=148MiB"))) {
      long managed = bare.memory().memAllocManaged(0, 48 * MIB, 1).address();
      bare.memory().memPrefetchAsync(0, managed, 48 * MIB, 1, 0, 0);
      bare.streams().streamSynchronize(0, 0);
      assertThat(freeBytes(bare, 0)).isEqualTo(kept);
      for (int i = 0; i < 3; i++) {
        allocate(bare, kind, 0, 8 * MIB);
        assertThat(freeBytes(bare, 0)).isEqualTo(kept);
      }
      bare.memory().memFree(0, managed);
      assertThat(freeBytes(bare, 0)).isEqualTo(192 * MIB - 148 * MIB - 24 * MIB);
    }
  }

  /** Which memory has how many pages where, as each prefetch says. */
  @Test
  void managedMemory_countsOnTheDeviceThatWantedItLast() {
    Random random = new Random(8);
    long[] memory = new long[3];
    int[] places = new int[memory.length];
    List<BitSet> pages = List.of(new BitSet(), new BitSet(), new BitSet());
    for (int step = 0; step < STEPS; step++) {
      int which = random.nextInt(memory.length);
      if (memory[which] == 0 || random.nextInt(10) == 0) {
        if (memory[which] != 0) {
          driver.memory().memFree(0, memory[which]);
        }
        pages.get(which).clear();
        memory[which] = driver.memory().memAllocManaged(0, 8 * PAGE, 1).address();
      } else {
        int device = random.nextInt(2);
        int from = random.nextInt(8);
        int to = from + 1 + random.nextInt(8 - from);
        long start = memory[which] + from * PAGE;
        driver.memory().memPrefetchAsync(device, start, (to - from) * PAGE, 1, device, 0);
        driver.streams().streamSynchronize(device, 0);
        if (places[which] != device) {
          pages.get(which).clear();
        }
        places[which] = device;
        pages.get(which).set(from, to);
      }
      long[] free = {64 * MIB, 64 * MIB};
      for (int i = 0; i < memory.length; i++) {
        free[places[i]] -= pages.get(i).cardinality() * PAGE;
      }
      assertThat(freeBytes(driver, 0)).isEqualTo(free[0]);
      assertThat(freeBytes(driver, 1)).isEqualTo(free[1]);
    }
  }

  /** What has to go when a device has no room is what nobody has wanted for longest. */
  @Test
  void managedMemoryThatWasWantedLast_staysLongest() {
    long[] memory = new long[2];
    for (int step = 0; step < 3; step++) {
      int which = step % 2;
      if (memory[which] == 0) {
        memory[which] = driver.memory().memAllocManaged(0, 8 * PAGE, 1).address();
      }
      driver.memory().memPrefetchAsync(0, memory[which], 8 * PAGE, 1, 0, 0);
      driver.streams().streamSynchronize(0, 0);
    }
    long plain = driver.memory().memAlloc(0, 64 * MIB - 10 * PAGE);
    assertThat(freeBytes(driver, 0)).isZero();
    driver.memory().memFree(0, memory[1]);
    assertThat(freeBytes(driver, 0)).as("of the one that was wanted before").isEqualTo(2 * PAGE);
    driver.memory().memFree(0, memory[0]);
    assertThat(freeBytes(driver, 0)).isEqualTo(10 * PAGE);
    driver.memory().memFree(0, plain);
  }

  /** Of no kind of memory of a device is anything left of what was in it before. */
  @ParameterizedTest
  @EnumSource(names = {"PLAIN", "POOLED", "OF_GRAPH"})
  void memoryThatIsAllocatedAgain_hasNothingOfWhatItWas(Kind kind) {
    for (int i = 0; i < 3; i++) {
      Block block = allocate(driver, kind, 0, KIB);
      assertThat(read(block.address, (int) KIB)).containsOnly(0xA5);
      driver.transfers().memsetD8Async(0, block.address, (byte) 7, KIB, 0);
      free(driver, block);
    }
  }

  /** The same executable gives the same addresses, and each time what nobody wrote. */
  @Test
  void memoryOfALaunch_isNewEachTime() {
    long graph = driver.graphs().graphCreate();
    GraphNodeParams of = new GraphNodeParams.Allocation(0, KIB, List.of(), 0);
    long node = driver.graphs().graphAddNode(0, graph, new long[0], of).node();
    long address =
        ((GraphNodeParams.Allocation) driver.graphs().graphNodeGetParams(node)).address();
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    for (int i = 0; i < 3; i++) {
      driver.graphs().graphLaunch(0, executable, 0);
      assertThat(read(address, (int) KIB)).containsOnly(0xA5);
      driver.transfers().memsetD8Async(0, address, (byte) 7, KIB, 0);
      driver.ordered().memFreeAsync(0, address, 0);
    }
  }

  @Test
  void smallAllocations_shareAPage_inUnits() {
    long free = driver.devices().memGetInfo(0).freeBytes();
    for (int i = 0; i < 2; i++) {
      long _ = driver.memory().memAlloc(0, PAGE / 2 - UNIT / 2);
      assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free - PAGE);
    }
    long last = driver.memory().memAlloc(0, UNIT);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free - 2 * PAGE);
    driver.memory().memFree(0, last);
    assertThat(driver.devices().memGetInfo(0).freeBytes()).isEqualTo(free - PAGE);
  }

  @Test
  void whatOthersHave_isNeitherFreeNorAllocated() {
    try (SimulatedDriver shared =
        SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB,context=0,others=16MiB"))) {
      assertThat(shared.devices().memGetInfo(0).freeBytes()).isEqualTo(48 * MIB);
      assertThat(shared.devices().memGetInfo(0).totalBytes()).isEqualTo(64 * MIB);
      assertFails(CudaStatus.OUT_OF_MEMORY, "free=", () -> shared.memory().memAlloc(0, 50 * MIB));
      long _ = shared.memory().memAlloc(0, 48 * MIB);
      assertThat(shared.devices().memGetInfo(0).freeBytes()).isZero();
    }
  }

  /** As on an H200, where each but the first two takes 0.548 MiB, to the next page or before. */
  @Test
  void streams_takeMemoryOfTheContext_inPages() {
    try (SimulatedDriver large = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      long free = large.devices().memGetInfo(0).freeBytes();
      for (int i = 0; i < 8; i++) {
        long _ = large.streams().streamCreateWithPriority(0, 1, 0);
      }
      assertThat(free - large.devices().memGetInfo(0).freeBytes()).isEqualTo(2 * PAGE);
    }
  }

  @Test
  void partOfManagedMemoryThatIsFilled_comesToTheDevice_eachOnce() {
    long managed = driver.memory().memAllocManaged(0, 2 * PAGE, 1).address();
    long free = driver.devices().memGetInfo(0).freeBytes();
    for (long[] partAndTaken : new long[][] {{1, 1}, {1, 1}, {0, 2}, {1, 2}}) {
      long part = managed + partAndTaken[0] * PAGE;
      driver.transfers().memsetD8Async(0, part, (byte) 1, PAGE, 0);
      driver.streams().streamSynchronize(0, 0);
      assertThat(driver.devices().memGetInfo(0).freeBytes())
          .isEqualTo(free - partAndTaken[1] * PAGE);
    }
  }
}
