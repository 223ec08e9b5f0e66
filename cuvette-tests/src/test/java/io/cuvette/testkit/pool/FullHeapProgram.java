package io.cuvette.testkit.pool;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GraphDefinition;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.support.HeaplessDriver;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * Allocates and closes with a heap that is full but for a number of small pieces, from none to
 * some, so that OutOfMemoryError strikes everywhere; afterwards all is there. On the second device,
 * to which all goes back. Run in a process of its own, with a small heap; with an argument for a
 * caching pool alone, for what grows as memory comes back, or for each allocation of few steps.
 */
final class FullHeapProgram {
  private static final int MOST_LEFT = Integer.getInteger("cuvette.pieces", 6);
  private static final int FULL_RUN = 100;
  private static final int STEP = 3;

  /** Which steps are taken; all as a rule. */
  private static final Pattern ONLY = Pattern.compile(System.getProperty("cuvette.steps", ""));

  /** Rounds with a heap before, in which classes are loaded. */
  private static final int WARM = 1;

  /** What an array of a piece takes, with its header. */
  private static final int PIECE_BYTES = 80;

  private static final int LARGE_BYTES = 1 << 16;
  private static final int HEADER_BYTES = 16;

  /** No object is smaller by much: so each allocation of a step is one that fails. */
  private static final int GRAIN_BYTES = 32;

  private static final int BLOCK = 4096;
  private static final int LARGE = 8192;
  private static final int LARGE_PAGES = 5 << 20;
  private static final int SIZES = 6;
  private static final long SIZE = 512 << 10;
  private static final int SLABS = 3;
  private static final long SLAB = 8 << 20;
  private static final int SIZE_STEP = 64 << 10;
  private static final int THREADS = 3;
  private static final int ROUNDS = 2_000;
  private static final long PATIENCE_NANOS = 30_000_000_000L;

  private final HeaplessDriver driver =
      new HeaplessDriver(SimulatedDriver.open(SimulatedOptions.parse("devices=2")));
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDriver(driver)
              .withLeakLevel(LeakLevel.valueOf(System.getProperty("cuvette.leaks", "COUNT")))
              .withLeakListener(_ -> {}));
  private final CudaDevice device = cuda.device(1);
  private final CudaStream stream = device.createStream();
  private final CudaStream other = device.createStream();
  private final MemoryPool pool = new MemoryPool(cuda);
  private final ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
  private final PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
  private final DeviceMemoryResource resource =
      new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
  private final AsyncMemoryPool async = new AsyncMemoryPool(cuda);
  private final int ranges;
  private final int events = driver.liveEvents();
  private final int pools = driver.livePools();
  private int graphs;
  private final List<Buffer> some = new ArrayList<>(SIZES);
  private final List<Buffer> kept = new ArrayList<>(SIZES);
  private final List<byte[]> heap = new ArrayList<>(1 << 16);

  /** How many large arrays leave room for few small ones. */
  private int mostLarge = Integer.MAX_VALUE;

  private int failures;

  private FullHeapProgram() {
    cuda.setCurrentDevice(device);
    elastic.allocate(BLOCK, stream).close(); // which reserves its addresses
    ranges = driver.liveRanges();
  }

  public static void main(String[] args) {
    FullHeapProgram program = new FullHeapProgram();
    switch (args.length == 0 ? "all" : args[0]) {
      case "all" -> program.runAll();
      case "each" -> program.failEach();
      case "growing" -> program.runGrowing();
      default -> program.check("pool", () -> program.pool.allocate(BLOCK, program.stream));
    }
    program.close();
    System.out.printf("%d of the steps had no heap%n", program.failures);
  }

  private void close() {
    cuda.close();
    int left = driver.liveEvents() + driver.livePools() + driver.liveRanges() + driver.liveMemory();
    if (left + driver.livePieces() + driver.liveGraphs() + driver.liveLibraries() != 0) {
      throw new AssertionError("something is left behind the Cuda");
    }
  }

  private void runAll() {
    Map<String, Supplier<Buffer>> ways = new LinkedHashMap<>();
    ways.put("pool", () -> pool.allocate(BLOCK, stream));
    ways.put("elastic", () -> elastic.allocate(BLOCK, stream));
    ways.put("elastic, large", () -> elastic.allocate(LARGE_PAGES, stream));
    ways.put("pinned", () -> pinned.allocate(BLOCK));
    ways.put("resource", () -> resource.allocate(BLOCK, stream));
    ways.put("async pool", () -> async.allocate(BLOCK, stream));
    ways.put("direct", () -> MemoryResource.direct().allocate(LARGE, stream));
    ways.put("managed", () -> MemoryResource.managed().allocate(LARGE, stream));
    ways.put("async", () -> MemoryResource.async().allocate(LARGE, stream));
    ways.put("direct pinned", () -> cuda.directPinned().allocate(LARGE));
    for (var way : ways.entrySet()) {
      check(way.getKey(), way.getValue());
    }
    checkStep(
        "event",
        () -> {},
        () -> {
          CudaEvent event = device.createEvent();
          event.close();
        });
    checkStep(
        "pool of the driver",
        () -> {},
        () -> new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS).close());
    checkStep(
        "async pool of its own",
        () -> {},
        () -> {
          AsyncMemoryPool own = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
          closeAfter(own::close, () -> own.allocate(BLOCK, stream).close());
        });
    checkStep(
        "pool",
        () -> {},
        () -> {
          MemoryPool own = new MemoryPool(cuda);
          closeAfter(own::close, () -> own.allocate(BLOCK, stream).close());
        });
  }

  private void runGrowing() {
    checkGrowing("blocks of many sizes", this::takeManySizes, () -> {});
    checkGrowing("blocks that another thread closes", this::takeSlabs, this::closeElsewhere);
  }

  /** In a pool of its own each time: what it lists free blocks in has to grow for them. */
  private void checkGrowing(String name, Consumer<MemoryPool> take, Runnable before) {
    MemoryPool[] own = new MemoryPool[1];
    checkStep(
        name,
        () -> {
          own[0] = new MemoryPool(cuda);
          take.accept(own[0]);
          before.run();
        },
        () -> {
          closeSome();
          own[0].allocate(SLAB / 2, stream).close(); // which looks for what was closed
        },
        () -> {
          closeSome();
          until(name, () -> own[0].isClosed() || own[0].usedBytes() == 0);
          own[0].close();
        });
  }

  private void takeManySizes(MemoryPool from) {
    for (int i = 1; i <= SIZES; i++) {
      some.add(from.allocate(i * SIZE, stream));
    }
  }

  /** From slabs of this thread, each of which has two blocks and a rest of another size. */
  private void takeSlabs(MemoryPool from) {
    from.allocate(SLABS * SLAB, stream).close();
    meet(from);
    for (int i = 1; i <= SLABS; i++) {
      kept.add(from.allocate(SLAB / 2 - i * SIZE_STEP, stream));
      some.add(from.allocate(SLAB / 2, stream));
    }
  }

  /** So that threads have slabs of their own from now on. */
  private void meet(MemoryPool in) {
    onThreads(
        THREADS,
        () -> {
          for (int i = 0; i < ROUNDS; i++) {
            in.allocate(BLOCK, stream).close();
          }
        });
  }

  private void closeElsewhere() {
    onThreads(
        1,
        () -> {
          while (!some.isEmpty()) {
            some.removeLast().close();
          }
        });
    some.addAll(kept);
    kept.clear();
  }

  private static void onThreads(int count, Runnable body) {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      threads.add(Thread.ofPlatform().start(body));
    }
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        Thread.onSpinWait();
      }
    }
  }

  private void closeSome() {
    while (!some.isEmpty()) {
      some.removeLast().close();
    }
  }

  private void failEach() {
    List<Buffer> out = new ArrayList<>(64);
    Runnable close = () -> out.removeLast().close();
    pool.setLimit(MemoryLimit.ofBytes(8 * BLOCK)); // which is soon used up by what stays reserved
    pinned.setLimit(MemoryLimit.ofBytes(8 * BLOCK));
    failEach("pool", () -> out.add(pool.allocate(BLOCK, stream)), close);
    failEach("pinned", () -> out.add(pinned.allocate(BLOCK)), close);
    failEach("event", () -> device.createEvent().close(), () -> {});
    failEach("graph", () -> new GraphDefinition(device).close(), () -> {});
    CudaGraph graph = new GraphDefinition(device).graph();
    graphs = driver.liveGraphs();
    failEach("executable graph", () -> graph.instantiate().close(), () -> {});
    graph.close();
    graphs = 0;
    byte[] code = ".version 8.0\n.target sm_75\n".getBytes(StandardCharsets.US_ASCII);
    failEach("module", () -> CudaModule.load(cuda, code).close(), () -> {});
    if (MOST_LEFT >= FULL_RUN) {
      byte[] unknown = {'?'};
      failEach("module that may be none", () -> CudaModule.load(cuda, unknown).close(), () -> {});
      failEach(
          "pool of the driver",
          () -> new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS).close(),
          () -> {});
    }
  }

  /** With a little more heap each time, until there is enough. */
  private void failEach(String name, Runnable step, Runnable undo) {
    step.run();
    undo.run();
    check(name);
    int left = 0;
    for (boolean failed = true; failed; left += GRAIN_BYTES) {
      fill(left);
      try {
        step.run();
        failed = false;
      } catch (OutOfMemoryError e) {
        failures++;
      }
      heap.clear();
      if (!failed) {
        undo.run();
      }
      check("%s with %d bytes left".formatted(name, left));
    }
  }

  /** Not by a statement: that would add an error without heap to itself. */
  private static void closeAfter(Runnable close, Runnable use) {
    try {
      use.run();
    } finally {
      close.run();
    }
  }

  private void check(String name, Supplier<Buffer> way) {
    List<Buffer> out = new ArrayList<>(64);
    Runnable allocate = () -> out.add(way.get());
    Runnable closeAll =
        () -> {
          while (!out.isEmpty()) {
            out.removeLast().close();
          }
        };
    checkStep(name + ": first", () -> {}, allocate, closeAll);
    checkStep(name + ": again", () -> way.get().close(), allocate, closeAll);
    checkStep(name + ": close", allocate, closeAll);
    checkStep(
        name + ": close many",
        () -> {
          for (int i = 0; i < 20; i++) {
            allocate.run();
          }
        },
        closeAll);
    checkStep(
        name + ": close after a use",
        () -> {
          allocate.run();
          out.getLast().recordUse(other);
          driver.setBusy(true);
        },
        closeAll);
    checkStep(
        name + ": forgotten",
        () -> way.get(),
        () -> {
          System.gc();
          cuda.leaksFound();
        });
  }

  private void checkStep(String name, Runnable prepare, Runnable... steps) {
    if (!ONLY.matcher(name).find()) {
      return;
    }
    for (int left = -WARM * STEP; left <= MOST_LEFT; left += STEP) {
      prepare.run();
      boolean failed = false;
      if (left >= 0) {
        fill(left * PIECE_BYTES);
      }
      for (Runnable step : steps) {
        try {
          step.run();
        } catch (OutOfMemoryError e) {
          failed = true;
        }
        heap.clear(); // only the first step has none
      }
      failures += failed ? 1 : 0;
      steps[steps.length - 1].run();
      driver.setBusy(false);
      check("%s with %d pieces left%s".formatted(name, left, failed ? " (failed)" : ""));
    }
  }

  private void check(String what) {
    device.synchronize();
    pool.assertConsistent();
    elastic.assertConsistent();
    pinned.assertConsistent();
    until(what, () -> pool.usedBytes() + elastic.usedBytes() + pinned.usedBytes() == 0);
    until(
        what,
        () -> {
          pool.freeAllBlocks();
          elastic.freeAllBlocks();
          pinned.freeAllBlocks();
          resource.attributes().usedMemCurrent();
          async.freeAllBlocks();
          long held = pool.totalBytes() + elastic.totalBytes() + pinned.totalBytes();
          return driver.liveMemory() + driver.livePieces() == 0 && held == 0;
        });
    until(what, () -> driver.liveEvents() == events);
    until(what, () -> driver.livePools() == pools);
    until(what, () -> driver.liveRanges() == ranges);
    until(what, () -> driver.liveGraphs() == graphs);
    until(what, () -> driver.liveLibraries() == 0);
    pool.assertConsistent();
    elastic.assertConsistent();
    pinned.assertConsistent();
  }

  /** What was complete when the heap ended, and never came to anyone, is found by the collector. */
  private void until(String what, BooleanSupplier condition) {
    long end = System.nanoTime() + PATIENCE_NANOS;
    for (int i = 0; i < 3 || System.nanoTime() - end < 0; i++) {
      if (condition.getAsBoolean()) {
        return;
      }
      if (i > 1) {
        System.gc();
        LockSupport.parkNanos(i * 1_000_000L); // a thread of the JVM hands on what it found
      }
      cuda.leaksFound();
    }
    throw new AssertionError(
        "%s: %d pieces of memory, %d events, %d pools, %d windows, %d graphs and %d libraries are lost; %s; %s; %s"
            .formatted(
                what,
                driver.liveMemory() + driver.livePieces(),
                driver.liveEvents() - events,
                driver.livePools() - pools,
                driver.liveRanges() - ranges,
                driver.liveGraphs() - graphs,
                driver.liveLibraries(),
                pool.stats(),
                elastic.stats(),
                pinned.stats()));
  }

  /** Takes all heap but so many bytes. */
  private void fill(int left) {
    addUntilFull(LARGE_BYTES, mostLarge);
    mostLarge = Math.min(mostLarge, heap.size() - 1); // to reach the end costs full collections
    addUntilFull(PIECE_BYTES, Integer.MAX_VALUE);
    int free = 0;
    while (free < left && !heap.isEmpty()) {
      heap.removeLast();
      free += PIECE_BYTES;
    }
    if (free - left >= HEADER_BYTES) {
      addUntilFull(free - left, heap.size() + 1); // a thread of the library may have had it
    }
  }

  private void addUntilFull(int bytes, int most) {
    try {
      while (heap.size() < most) {
        heap.add(new byte[bytes - HEADER_BYTES]);
      }
    } catch (OutOfMemoryError e) {
      // as it is to be
    }
  }
}
