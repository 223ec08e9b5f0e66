package io.cuvette.testkit.pool;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.support.HeaplessDriver;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * Allocates and closes with a heap that is full but for a number of small pieces, from none to
 * some, so that OutOfMemoryError strikes everywhere; afterwards all is there. Run in a process of
 * its own, with a small heap; with an argument for a caching pool alone.
 */
final class FullHeapProgram {
  private static final int MOST_LEFT = Integer.getInteger("cuvette.pieces", 6);
  private static final int STEP = 3;

  /** Which steps are taken; all as a rule. */
  private static final Pattern ONLY = Pattern.compile(System.getProperty("cuvette.steps", ""));

  /** Rounds with a heap before, in which classes are loaded. */
  private static final int WARM = 1;

  private static final int BLOCK = 4096;
  private static final int LARGE = 8192;
  private static final int LARGE_PAGES = 5 << 20;

  private final HeaplessDriver driver =
      new HeaplessDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDriver(driver)
              .withLeakLevel(LeakLevel.valueOf(System.getProperty("cuvette.leaks", "COUNT")))
              .withLeakListener(_ -> {}));
  private final CudaDevice device = cuda.device(0);
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
  private final List<byte[]> heap = new ArrayList<>(1 << 16);
  private int failures;

  private FullHeapProgram() {
    elastic.allocate(BLOCK, stream).close(); // which reserves its addresses
    ranges = driver.liveRanges();
  }

  public static void main(String[] args) {
    FullHeapProgram program = new FullHeapProgram();
    if (args.length == 0) {
      program.runAll();
    } else {
      program.check("pool", () -> program.pool.allocate(BLOCK, program.stream));
    }
    System.out.printf("%d of the steps had no heap%n", program.failures);
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
        fill(left);
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
          return driver.liveMemory() + driver.livePieces() == 0;
        });
    until(what, () -> driver.liveEvents() == events);
    until(what, () -> driver.livePools() == pools);
    until(what, () -> driver.liveRanges() == ranges);
    pool.assertConsistent();
    elastic.assertConsistent();
    pinned.assertConsistent();
  }

  /** What was complete when the heap ended, and never came to anyone, is found by the collector. */
  private void until(String what, BooleanSupplier condition) {
    for (int i = 0; i < 20; i++) {
      if (condition.getAsBoolean()) {
        return;
      }
      if (i > 1) {
        System.gc();
      }
      cuda.leaksFound();
    }
    throw new AssertionError(
        "%s: %d pieces of memory, %d events, %d pools and %d windows are lost; %s; %s; %s"
            .formatted(
                what,
                driver.liveMemory() + driver.livePieces(),
                driver.liveEvents() - events,
                driver.livePools() - pools,
                driver.liveRanges() - ranges,
                pool.stats(),
                elastic.stats(),
                pinned.stats()));
  }

  /** Takes all heap but a number of small pieces. */
  private void fill(int left) {
    for (int size : new int[] {1 << 16, 1 << 6}) { // each end of the heap costs full collections
      try {
        while (true) {
          heap.add(new byte[size]);
        }
      } catch (OutOfMemoryError e) {
        // smaller ones
      }
    }
    for (int i = 0; i < left && !heap.isEmpty(); i++) {
      heap.removeLast();
    }
  }
}
