package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
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

/** Copies and fills between all kinds of memory, those of two processes too, beside arrays. */
class SimCopiesTest extends SimSharingBase {
  private static final int BYTES = 150_000;
  private static final long PAGE = 2 * MIB;
  private static final int STEPS = 120;

  /** Memory of any kind, and what it has to hold. */
  @SuppressWarnings("ArrayRecordComponent") // nobody compares these
  private record Memory(String kind, long address, byte[] content) {}

  private final List<Memory> all = new ArrayList<>();
  private final Arena arena = Arena.ofAuto();

  private void add(String kind, long address) {
    importer.transfers().memsetD8Async(0, address, (byte) 0, BYTES, in);
    importer.streams().streamSynchronize(0, in);
    all.add(new Memory(kind, address, new byte[BYTES]));
  }

  private long ofGraph() {
    long graph = importer.graphs().graphCreate();
    GraphNodeParams of = new GraphNodeParams.Allocation(0, BYTES, List.of(), 0);
    long node = importer.graphs().graphAddNode(0, graph, new long[0], of).node();
    GraphNodeParams made = importer.graphs().graphNodeGetParams(node);
    long executable = importer.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    importer.graphs().graphLaunch(0, executable, in);
    return ((GraphNodeParams.Allocation) made).address();
  }

  /** In the middle of two mappings. */
  private long mapped() {
    long range = importer.virtual().memAddressReserve(2 * PAGE, 0, 0);
    for (int i = 0; i < 2; i++) {
      long handle = importer.virtual().memCreate(PAGE, AllocationProperties.ofDevice(0, 0));
      importer.virtual().memMap(range + i * PAGE, PAGE, 0, handle);
    }
    importer.virtual().memSetAccess(range, 2 * PAGE, DEVICE, new int[] {0}, 3);
    return range + PAGE - 65_536;
  }

  private void addAll() {
    add("plain", importer.memory().memAlloc(0, BYTES));
    add("pooled", importer.ordered().memAllocAsync(0, BYTES, in));
    add("of a graph", ofGraph());
    add("mapped", mapped());
    add("pinned", importer.memory().memHostAlloc(0, BYTES, 0).address());
    add("managed", importer.memory().memAllocManaged(0, BYTES, 1).address());
    MemorySegment registered = arena.allocate(BYTES, 64);
    importer.memory().memHostRegister(0, registered, 0);
    add("registered", registered.address());
    long own = importer.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, 0));
    add("to be shared", importer.ordered().memAllocFromPoolAsync(0, BYTES, own, in));
    long exported = importer.memory().memAlloc(0, BYTES);
    assertThat(importer.sharing().ipcGetMemHandle(0, exported)).isNotEmpty();
    add("exported", exported);
    for (int location : new int[] {DEVICE, HOST_NUMA}) {
      long pool = pool(location);
      byte[] handle = exporter.sharing().memPoolExportPointer(allocate(pool, BYTES));
      add("imported", importer.sharing().memPoolImportPointer(imported(pool), handle));
    }
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, exporter.memory().memAlloc(0, BYTES));
    add("opened", importer.sharing().ipcOpenMemHandle(0, handle));
  }

  private void fill(SplittableRandom random, Memory memory) {
    int unit = 1 << random.nextInt(3);
    int count = random.nextInt(BYTES / unit);
    int first = random.nextInt(BYTES / unit - count + 1) * unit;
    int value = random.nextInt();
    long at = memory.address + first;
    switch (unit) {
      case 1 -> importer.transfers().memsetD8Async(0, at, (byte) value, count, in);
      case 2 -> importer.transfers().memsetD16Async(0, at, (short) value, count, in);
      default -> importer.transfers().memsetD32Async(0, at, value, count, in);
    }
    for (int i = 0; i < count * unit; i++) {
      memory.content[first + i] = (byte) (value >>> (8 * (i % unit)));
    }
  }

  private void copy(SplittableRandom random, Memory to, Memory from) {
    int bytes = 1 + random.nextInt(random.nextBoolean() ? 100 : BYTES / 2);
    int target = random.nextInt(BYTES / 2 - bytes / 2 + 1) / 2;
    int source = BYTES / 2 + random.nextInt(BYTES / 2 - bytes + 1);
    if (random.nextBoolean() && to != from) {
      target = random.nextInt(BYTES - bytes + 1);
    }
    bytes = to == from ? Math.min(bytes, source - target) : bytes;
    long at = to.address + target;
    if (random.nextInt(4) == 0) {
      importer.transfers().memcpyPeerAsync(0, at, 0, from.address + source, 0, bytes, in);
    } else {
      importer.transfers().memcpyAsync(0, at, from.address + source, bytes, in);
    }
    System.arraycopy(from.content, source, to.content, target, bytes);
  }

  /** Rows of a box that lie apart. */
  private void copyRows(SplittableRandom random, Memory to, Memory from) {
    int width = 1 + random.nextInt(500);
    int pitch = width + random.nextInt(300);
    int rows = 1 + random.nextInt(BYTES / 2 / pitch);
    int target = random.nextInt(100);
    int source = BYTES / 2 + random.nextInt(100);
    rows = Math.min(rows, (BYTES / 2 - 100) / pitch);
    BoxCopy box =
        new BoxCopy(
            new BoxCopy.Side(to.address + target, pitch, rows),
            new BoxCopy.Side(from.address + source, pitch, rows),
            width,
            rows,
            1);
    importer.transfers().memcpy3DAsync(0, box, in);
    for (int row = 0; row < rows; row++) {
      System.arraycopy(from.content, source + row * pitch, to.content, target + row * pitch, width);
    }
  }

  /** In and out again, elsewhere. */
  private void copyOfTheProgram(SplittableRandom random, Memory to, Memory from) {
    int bytes = 1 + random.nextInt(BYTES - 1);
    int source = random.nextInt(BYTES - bytes + 1);
    int target = random.nextInt(BYTES - bytes + 1);
    MemorySegment pageable = arena.allocate(bytes);
    importer.transfers().memcpyDtoHAsync(0, pageable, from.address + source, in);
    importer.streams().streamSynchronize(0, in);
    assertThat(pageable.toArray(ValueLayout.JAVA_BYTE))
        .as(from.kind)
        .isEqualTo(Arrays.copyOfRange(from.content, source, source + bytes));
    importer.transfers().memcpyHtoDAsync(0, to.address + target, pageable, in);
    System.arraycopy(from.content.clone(), source, to.content, target, bytes);
  }

  private void assertContent(Memory memory) {
    assertThat(read(importer, memory.address, BYTES)).as(memory.kind).isEqualTo(memory.content);
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  void bytesOfEveryKindOfMemory_areThoseOfTheCopiesAndFills(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    addAll();
    for (int step = 0; step < STEPS; step++) {
      Memory to = all.get(random.nextInt(all.size()));
      Memory from = all.get(random.nextInt(all.size()));
      switch (random.nextInt(5)) {
        case 0 -> fill(random, to);
        case 1 -> copyRows(random, to, from);
        case 2 -> copyOfTheProgram(random, to, from);
        default -> copy(random, to, from);
      }
      importer.streams().streamSynchronize(0, in);
      if (step % 10 == 0) {
        assertContent(to);
      }
    }
    all.forEach(this::assertContent);
  }
}
