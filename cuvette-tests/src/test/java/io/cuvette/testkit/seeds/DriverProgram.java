package io.cuvette.testkit.seeds;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamHandle;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.seeds.CellBlock.Cell;
import io.cuvette.testkit.seeds.CellBlock.Kind;
import io.cuvette.testkit.seeds.CellBlock.Use;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A random program of the driver's calls, by one or several threads in turn: blocking streams and
 * others, the default stream, those of the threads, functions of the host, kernels, and {@link
 * DriverGraphs}. It waits only where the rules of CUDA do not order its work already. What it reads
 * is compared with a model; the sanitizer finds nothing, and nothing is left behind.
 */
final class DriverProgram {
  private static final int STEPS = 60;
  private static final int STAGED = 1 << 16;
  private static final int MOST_BLOCKS = 7;
  private static final int[] WORDS = {4, 4, 4, 4, 4, 64, 64, 64, 64, 64, 600, 2500};
  private static final List<Kind> KINDS =
      List.of(Kind.PLAIN, Kind.ORDERED, Kind.PINNED, Kind.MANAGED);
  private static final List<String> SETTINGS =
      List.of("", ",queues=1,queueLength=16", ",concurrentManaged=false", ",queueLength=4", "");

  private final SplittableRandom random;
  private final SimulatedDriver device;
  private final CudaDriver driver;
  private final boolean canTouchManaged;
  private final int words;
  private final List<ExecutorService> threads = new ArrayList<>();
  private final List<CellBlock> blocks = new ArrayList<>();
  private final ProgramOrder order;
  private final ProgramWaits waits;
  private final CellKernels kernels;
  private final CellWorks works;
  private final DriverGraphs graphs;

  DriverProgram(long seed) {
    random = new SplittableRandom(seed);
    String settings = SETTINGS.get(random.nextInt(SETTINGS.size()));
    device = SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB,seed=" + seed + settings));
    driver = SanitizerDriver.throwing(device);
    canTouchManaged = device.options().concurrentManaged();
    words = WORDS[random.nextInt(WORDS.length)];
    order = new ProgramOrder(random.nextBoolean() ? StreamHandle.NULL : StreamHandle.LEGACY);
    waits = new ProgramWaits(driver, order, random);
    kernels = new CellKernels(driver);
    works = new CellWorks(driver, kernels, random, words);
    graphs = new DriverGraphs(this, driver, random);
    int count = random.nextInt(3) == 0 ? 3 : 1;
    for (int i = 0; i < count; i++) {
      threads.add(Executors.newSingleThreadExecutor());
      order.streams.add(new ProgramStream(StreamHandle.PER_THREAD, true, i));
    }
  }

  void run() throws Exception {
    try {
      inThread(
          0,
          () -> {
            for (int i = 1 + random.nextInt(5); i > 0; i--) {
              openStream();
            }
            for (int i = 0; i < MOST_BLOCKS / 2; i++) {
              allocate();
            }
          });
      for (int i = 0; i < STEPS; i++) {
        inThread(random.nextInt(threads.size()), this::step);
      }
      inThread(0, this::end);
      driver.close();
    } finally {
      threads.forEach(ExecutorService::shutdownNow);
    }
    if (!device.report().isEmpty()) {
      throw new AssertionError("left behind: " + device.report());
    }
  }

  /** What a program does. */
  private interface Step {
    void run() throws Exception;
  }

  /** The threads take turns. */
  private void inThread(int thread, Step step) throws Exception {
    waits.thread = thread;
    Callable<Boolean> call =
        () -> {
          step.run();
          return true;
        };
    try {
      boolean _ = threads.get(thread).submit(call).get(60, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause());
    }
  }

  private void end() throws Exception {
    for (CellBlock block : blocks) {
      for (Cell cell : block.cells) {
        check(cell);
      }
    }
    graphs.dropAll();
    while (!blocks.isEmpty()) {
      free(blocks.getFirst());
    }
    order.streams.forEach(this::close);
    waits.synchronizeDevice();
    waits.close();
    kernels.unload();
    driver.graphs().deviceGraphMemTrim(0);
  }

  private void step() throws Exception {
    switch (random.nextInt(20)) {
      case 0 -> {
        if (blocks.size() < MOST_BLOCKS) {
          allocate();
        }
      }
      case 1 -> {
        if (blocks.size() > 2) {
          free(anyBlock());
        }
      }
      case 2 -> check(anyBlock().cells[random.nextInt(CellBlock.CELLS)]);
      case 3 -> writeOnHost(anyBlock().cells[random.nextInt(CellBlock.CELLS)]);
      case 4, 5 -> upload(anyBlock());
      case 6 -> replaceStream();
      case 7 -> waits.keep(waits.record(waits.anyStream()));
      case 8, 9, 10, 11, 12 -> graphs.step();
      default -> {
        CellWork work = works.any(blocks);
        if (work != null) {
          perform(work);
        }
      }
    }
  }

  ProgramOrder order() {
    return order;
  }

  ProgramWaits waits() {
    return waits;
  }

  CellWorks works() {
    return works;
  }

  List<CellBlock> blocks() {
    return blocks;
  }

  CellBlock newBlock(Kind kind) {
    return new CellBlock(kind, words);
  }

  private CellBlock anyBlock() {
    return blocks.get(random.nextInt(blocks.size()));
  }

  private void openStream() {
    boolean isBlocking = random.nextBoolean();
    long handle =
        driver
            .streams()
            .streamCreateWithPriority(0, isBlocking ? 0 : 1, -Math.max(0, random.nextInt(6) - 2));
    order.streams.add(new ProgramStream(handle, isBlocking, -1));
  }

  private void close(ProgramStream stream) {
    if (!StreamHandle.isBuiltIn(stream.handle)) {
      driver.streams().streamDestroy(0, stream.handle);
    }
  }

  /** Destroys a stream, on which there may be work. */
  private void replaceStream() {
    ProgramStream old = waits.anyStream();
    if (!StreamHandle.isBuiltIn(old.handle)) {
      close(old);
      order.closed(old);
      openStream();
    }
  }

  void perform(CellWork work) throws Exception {
    ProgramStream stream = waits.anyStream();
    waits.order(work.uses, stream);
    work.queue(stream);
    int number = order.queued(stream);
    work.apply();
    work.uses.forEach((cell, use) -> cell.note(use, stream, number));
  }

  private void allocate() throws Exception {
    Kind kind = KINDS.get(random.nextInt(KINDS.size()));
    CellBlock block = newBlock(kind);
    long bytes = block.bytes();
    switch (kind) {
      case PLAIN -> block.address = driver.memory().memAlloc(0, bytes);
      case ORDERED -> {
        ProgramStream stream = waits.anyStream();
        block.address = driver.ordered().memAllocAsync(0, bytes, stream.handle);
        int number = order.queued(stream);
        block.all(Use.WRITE).forEach((cell, use) -> cell.note(use, stream, number));
      }
      default -> {
        MemorySegment memory =
            kind == Kind.PINNED
                ? driver.memory().memHostAlloc(0, bytes, random.nextInt(4))
                : driver.memory().memAllocManaged(0, bytes, 1);
        block.address = memory.address();
        block.host = kind == Kind.PINNED || canTouchManaged ? memory : null;
      }
    }
    blocks.add(block);
    perform(works.fill(block, 0, CellBlock.CELLS, 4));
  }

  private void free(CellBlock block) throws Exception {
    graphs.dropWith(block);
    Map<Cell, Use> all = block.all(Use.WRITE);
    if (block.kind == Kind.ORDERED && random.nextInt(4) > 0) {
      ProgramStream stream = waits.anyStream();
      waits.order(all, stream);
      driver.ordered().memFreeAsync(0, block.address, stream.handle);
      int _ = order.queued(stream);
    } else {
      waits.await(all);
      if (block.kind == Kind.PINNED) {
        driver.memory().memFreeHost(0, block.address);
      } else {
        driver.memory().memFree(0, block.address);
      }
    }
    blocks.remove(block);
  }

  /** Reads a cell on the host, where it is or from a copy. */
  void check(Cell cell) throws Exception {
    if (cell.block.host != null && random.nextBoolean()) {
      waits.await(Map.of(cell, Use.READ));
      compare(cell.onHost(), cell);
      return;
    }
    ProgramStream stream = waits.anyStream();
    waits.order(Map.of(cell, Use.READ), stream);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment copy = arena.allocate((long) words * Integer.BYTES, Long.BYTES);
      driver.transfers().memcpyDtoHAsync(0, copy, cell.address(), stream.handle);
      int _ = order.queued(stream);
      waits.synchronize(stream);
      compare(copy, cell);
    }
  }

  private static void compare(MemorySegment read, Cell cell) {
    int[] words = read.toArray(ValueLayout.JAVA_INT);
    int wrong = Arrays.mismatch(words, cell.words);
    if (wrong >= 0) {
      throw new AssertionError(
          "word %d of cell %d of %s: %x (expected: %x)"
              .formatted(wrong, cell.index, cell.block.kind, words[wrong], cell.words[wrong]));
    }
  }

  private void writeOnHost(Cell cell) throws Exception {
    if (cell.block.host != null) {
      waits.await(Map.of(cell, Use.WRITE));
      Arrays.fill(cell.words, random.nextInt());
      MemorySegment.copy(cell.words, 0, cell.onHost(), ValueLayout.JAVA_INT, 0, words);
      cell.forget();
    }
  }

  /** Copies pageable memory, which is used again at once where it is short. */
  private void upload(CellBlock block) throws Exception {
    int from = random.nextInt(CellBlock.CELLS);
    int count = 1 + random.nextInt(CellBlock.CELLS - from);
    int value = random.nextInt();
    MemorySegment source = Arena.ofAuto().allocate((long) count * words * Integer.BYTES, 8);
    for (int i = 0; i < count * words; i++) {
      source.setAtIndex(ValueLayout.JAVA_INT, i, value + i);
    }
    CellWork work =
        new CellWork(
            0,
            (stream, _) ->
                driver
                    .transfers()
                    .memcpyHtoDAsync(0, block.cells[from].address(), source, stream.handle),
            null,
            _ -> {
              for (int i = 0; i < count * words; i++) {
                block.cells[from + i / words].words[i % words] = value + i;
              }
            });
    for (int i = 0; i < count; i++) {
      work.using(block.cells[from + i], Use.WRITE);
    }
    perform(work);
    if (source.byteSize() <= STAGED) {
      source.fill((byte) 0x77);
    }
  }
}
