package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.StreamOptions;
import io.cuvette.cli.MeasuredPool;
import io.cuvette.cli.OpenPool;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.LongSupplier;

/**
 * How full a device can be kept: blocks are freed at random and others allocated in their place, up
 * to a level that rises slowly to all memory that was free. The first allocation that fails ends
 * it. A level is what is live with the block that is asked for, so that a pool which wastes nothing
 * fails at 100 %. For one thread.
 */
final class FragmentationSuite {
  /** A level below which no pool of use fails. */
  private static final double FIRST_LEVEL = 0.4;

  /** The level rises by at most so much while as much is allocated as there is memory. */
  private static final double RISE = 0.02;

  /** And so many allocations at least take it from the first to the last. */
  private static final int ALLOCATIONS = 40_000;

  private static final int QUICK = 20;
  private static final String TARGET = ">= 95";

  private final CudaDevice device;
  private final long seed;
  private final boolean quick;

  private FragmentationSuite(CudaDevice device, long seed, boolean quick) {
    this.device = device;
    this.seed = seed;
    this.quick = quick;
  }

  /**
   * What a mix came to.
   *
   * @param memoryBytes what was free before
   * @param usableBytes what was live with the block that failed; all if none did
   * @param failedBytes the size of that block; 0 if none did
   * @param allocations how many were served
   */
  record Filled(long memoryBytes, long usableBytes, long failedBytes, long allocations) {
    double share() {
      return (double) usableBytes / memoryBytes;
    }
  }

  static void run(Cuda cuda, Figures figures, List<MeasuredPool> kinds, long seed) {
    var suite = new FragmentationSuite(cuda.currentDevice(), seed, figures.best().isQuick());
    for (MeasuredPool kind : kinds) {
      for (Mix mix : Mix.values()) {
        Filled filled;
        try (OpenPool pool = kind.open(cuda)) {
          filled = suite.fill(mix, pool.resource());
        }
        String target = kind == MeasuredPool.ELASTIC ? TARGET : "";
        figures.filled("fragmentation-" + mix.text(), kind, seed, filled, target);
      }
    }
  }

  private Filled fill(Mix mix, MemoryResource pool) {
    device.synchronize();
    long memory = device.memoryInfo().freeBytes();
    SplittableRandom random = new SplittableRandom(seed);
    LongSupplier sizes = mix.sizes(mix.mostBytes(memory), random);
    try (CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
        LiveBlocks live = new LiveBlocks(random)) {
      double level = FIRST_LEVEL;
      long allocations = 0;
      for (; level < 1; allocations++) {
        long bytes = sizes.getAsLong();
        live.freeUntil((long) (level * memory) - bytes);
        try {
          live.add(pool.allocate(bytes, stream), bytes);
        } catch (OutOfDeviceMemoryException _) {
          return new Filled(memory, live.bytes() + bytes, bytes, allocations);
        }
        level += rise((double) bytes / memory);
      }
      return new Filled(memory, memory, 0, allocations);
    }
  }

  /** How much the level rises for a block that has such a part of the memory. */
  private double rise(double part) {
    double rise = Math.min(RISE * part, (1 - FIRST_LEVEL) / ALLOCATIONS);
    return quick ? rise * QUICK : rise;
  }

  /** Blocks in use. Closing frees them. Not thread-safe. */
  private static final class LiveBlocks implements AutoCloseable {
    private final List<Buffer> blocks = new ArrayList<>();
    private final SplittableRandom random;
    private long bytes;

    LiveBlocks(SplittableRandom random) {
      this.random = random;
    }

    long bytes() {
      return bytes;
    }

    void add(Buffer block, long size) {
      blocks.add(block);
      bytes += size;
    }

    /** Frees blocks at random until no more than some bytes are in use. */
    void freeUntil(long most) {
      while (bytes > Math.max(0, most)) {
        int index = random.nextInt(blocks.size());
        Buffer block = blocks.set(index, blocks.getLast());
        blocks.removeLast();
        bytes -= block.byteSize();
        block.close();
      }
    }

    @Override
    public void close() {
      freeUntil(0);
    }
  }
}
