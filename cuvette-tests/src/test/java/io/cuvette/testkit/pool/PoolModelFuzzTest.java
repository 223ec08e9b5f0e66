package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.PoolStats;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;

/**
 * Random programs over several streams against a plain model: no two live blocks overlap, used and
 * free make up what is held, and each buffer keeps the bytes that were written into it.
 */
class PoolModelFuzzTest {
  private static final int STEPS = 400;
  private static final int STREAMS = 4;
  private static final long LIMIT = 96L << 10;

  private final TreeMap<Long, Buffer> live = new TreeMap<>();
  private final List<Marked> buffers = new ArrayList<>();
  private final List<CudaStream> streams = new ArrayList<>();
  private long used;

  /** A buffer and the byte it is filled with, on the stream that wrote it last. */
  private record Marked(Buffer buffer, byte mark, CudaStream writer) {}

  @CudaTest(seeds = 60)
  void randomPrograms_agreeWithTheModel(Subject subject) {
    // Nothing is forgotten here: no collection is needed before memory is said to be out.
    Cuda cuda = subject.open(options -> options.withLeakLevel(LeakLevel.OFF));
    SplittableRandom random = subject.random();
    PoolOptions options = PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(LIMIT));
    try (MemoryPool pool =
        new MemoryPool(
            cuda,
            options
                .withCrossStreamBytes(random.nextInt(8) * 1024L)
                .withTargetRatio(random.nextBoolean() ? 1 + random.nextDouble() : 1e300)
                .withReleaseThresholdBytes(
                    random.nextBoolean() ? random.nextLong(LIMIT) : LIMIT))) {
      for (int i = 0; i < STREAMS; i++) {
        streams.add(cuda.device(0).createStream(StreamOptions.NON_BLOCKING));
      }
      for (int step = 0; step < STEPS; step++) {
        step(cuda, pool, random, step);
        check(pool, step);
      }
      while (!buffers.isEmpty()) {
        close(buffers.removeLast());
      }
      streams.forEach(CudaStream::close);
      cuda.device(0).synchronize();
      assertThat(pool.usedBytes()).isZero();
      assertThat(pool.freeAllBlocks()).isLessThanOrEqualTo(LIMIT);
      assertThat(pool.totalBytes()).isZero();
    }
  }

  private void step(Cuda cuda, MemoryPool pool, SplittableRandom random, int step) {
    switch (random.nextInt(20)) {
      case 0 -> pool.trim(Duration.ofNanos(random.nextLong(100_000)));
      case 1 -> pool.freeAllBlocks(stream(random));
      case 2 -> replaceStream(cuda, random);
      case 3 -> stream(random).synchronize();
      case 4, 5, 6, 7, 8, 9 -> closeOne(random);
      case 10, 11 -> readOne(random);
      default -> allocate(pool, random, (byte) step);
    }
  }

  private CudaStream stream(SplittableRandom random) {
    return streams.get(random.nextInt(streams.size()));
  }

  /** The buffers of the closed stream live on. */
  private void replaceStream(Cuda cuda, SplittableRandom random) {
    int index = random.nextInt(STREAMS);
    CudaStream old = streams.get(index);
    old.synchronize();
    buffers.replaceAll(marked ->
        marked.writer.equals(old)
            ? new Marked(marked.buffer, marked.mark, streams.get((index + 1) % STREAMS))
            : marked);
    old.close();
    streams.set(index, cuda.device(0).createStream(StreamOptions.NON_BLOCKING));
  }

  private void allocate(MemoryPool pool, SplittableRandom random, byte mark) {
    CudaStream stream = stream(random);
    long bytes = 1 + random.nextLong(1L << (1 + random.nextInt(15)));
    try {
      Buffer buffer = pool.allocate(bytes, stream);
      assertThat(buffer.byteSize()).isEqualTo(bytes);
      assertThat(buffer.blockBytes()).isEqualTo((bytes + 511) / 512 * 512);
      add(buffer);
      buffer.fill(mark, stream);
      buffers.add(new Marked(buffer, mark, stream));
    } catch (OutOfDeviceMemoryException e) {
      long rounded = (bytes + 511) / 512 * 512;
      assertThat(e.details().usedBytes()).isEqualTo(used);
      assertThat(e.details().largestFreeBytes()).as("%s", e).isLessThan(rounded);
      assertThat(e.details().heldBytes() + rounded).as("%s", e).isGreaterThan(LIMIT);
    }
  }

  private void add(Buffer buffer) {
    var below = live.floorEntry(buffer.address());
    var above = live.ceilingEntry(buffer.address());
    if (below != null) {
      assertThat(below.getKey() + below.getValue().blockBytes())
          .as("end of the block below")
          .isLessThanOrEqualTo(buffer.address());
    }
    if (above != null) {
      assertThat(buffer.address() + buffer.blockBytes())
          .as("end of the block")
          .isLessThanOrEqualTo(above.getKey());
    }
    live.put(buffer.address(), buffer);
    used += buffer.blockBytes();
  }

  private void closeOne(SplittableRandom random) {
    if (!buffers.isEmpty()) {
      close(buffers.remove(random.nextInt(buffers.size())));
    }
  }

  private void close(Marked marked) {
    assertThat(live.remove(marked.buffer.address())).isSameAs(marked.buffer);
    used -= marked.buffer.blockBytes();
    marked.buffer.close();
  }

  /** Reads on another stream, ordered after the writer, and closes the buffer half of the time. */
  private void readOne(SplittableRandom random) {
    if (buffers.isEmpty()) {
      return;
    }
    Marked marked = buffers.get(random.nextInt(buffers.size()));
    CudaStream reader = stream(random);
    reader.waitFor(marked.writer);
    Cuda cuda = marked.buffer.device().cuda();
    try (var result = cuda.allocatePinned(marked.buffer.byteSize())) {
      result.copyFrom(marked.buffer, reader);
      if (random.nextBoolean()) {
        buffers.remove(marked);
        close(marked);
      }
      reader.synchronize();
      byte[] content = new byte[(int) result.byteSize()];
      result.segment().asByteBuffer().get(content);
      assertThat(content).containsOnly(marked.mark);
    }
  }

  private void check(MemoryPool pool, int step) {
    pool.assertConsistent();
    PoolStats stats = pool.stats();
    assertThat(stats.usedBytes()).as("used in step %d", step).isEqualTo(used);
    assertThat(stats.usedBytes() + stats.freeBytes()).isEqualTo(stats.heldBytes());
    assertThat(stats.heldBytes()).isLessThanOrEqualTo(LIMIT);
    assertThat(stats.peakHeldBytes()).isBetween(stats.heldBytes(), LIMIT);
    assertThat(stats.usedBlocks()).isEqualTo(live.size());
    assertThat(stats.releasableBytes()).isLessThanOrEqualTo(stats.freeBytes());
    assertThat(stats.largestFreeBytes()).isLessThanOrEqualTo(stats.freeBytes());
  }
}
