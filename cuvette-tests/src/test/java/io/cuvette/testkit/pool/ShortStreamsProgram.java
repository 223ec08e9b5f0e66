package io.cuvette.testkit.pool;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.testkit.support.AtOnce;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that open a stream, allocate under a limit, use, and close it, again and again. The limit
 * has room for what is in use at a time and no more. Each tenth of the way what there is is looked
 * at: the driver's memory, events and streams, and the Java heap after a collection.
 */
final class ShortStreamsProgram {
  private static final int LARGEST = 64 << 10;
  private static final int MARKS = 10;
  private static final int BUFFER_CLOSED_LATE = 4;

  private final Cuda cuda;
  private final Counting driver;
  private final int threads;
  private final int streams;
  private final AtomicLong done = new AtomicLong();
  private final List<Mark> marks = new ArrayList<>();

  /** What there is when a number of streams were closed. */
  record Mark(long streams, long heapBytes, long deviceBytes, int events, int openStreams) {}

  /** Counts what a driver gave out and did not get back. */
  static final class Counting extends ForwardingDriver {
    private final AtomicInteger events = new AtomicInteger();
    private final AtomicInteger streams = new AtomicInteger();
    private final AtomicLong bytes = new AtomicLong();
    private final ConcurrentHashMap<Long, Long> sizes = new ConcurrentHashMap<>();

    Counting(CudaDriver target) {
      super(target);
    }

    private final MemoryCalls memoryCalls =
        new ForwardingMemory(delegate().memory()) {
          @Override
          public long memAlloc(int device, long size) {
            long address = super.memAlloc(device, size);
            sizes.put(address, size);
            bytes.addAndGet(size);
            return address;
          }

          @Override
          public void memFree(int device, long address) {
            Long size = sizes.remove(address);
            super.memFree(device, address);
            bytes.addAndGet(size == null ? 0 : -size);
          }
        };

    @Override
    public MemoryCalls memory() {
      return memoryCalls;
    }

    private final EventCalls eventCalls =
        new ForwardingEvents(delegate().events()) {
          @Override
          public long eventCreate(int device, int flags) {
            long event = super.eventCreate(device, flags);
            events.incrementAndGet();
            return event;
          }

          @Override
          public void eventDestroy(int device, long event) {
            super.eventDestroy(device, event);
            events.decrementAndGet();
          }
        };

    @Override
    public EventCalls events() {
      return eventCalls;
    }

    private final StreamCalls streamCalls =
        new ForwardingStreams(delegate().streams()) {
          @Override
          public long streamCreateWithPriority(int device, int flags, int priority) {
            long stream = super.streamCreateWithPriority(device, flags, priority);
            streams.incrementAndGet();
            return stream;
          }

          @Override
          public void streamDestroy(int device, long stream) {
            super.streamDestroy(device, stream);
            streams.decrementAndGet();
          }
        };

    @Override
    public StreamCalls streams() {
      return streamCalls;
    }
  }

  ShortStreamsProgram(Cuda cuda, Counting driver, int threads, int streams) {
    this.cuda = cuda;
    this.driver = driver;
    this.threads = threads;
    this.streams = streams;
  }

  /** Arguments: threads, streams of each, what devices. */
  public static void main(String[] args) throws InterruptedException {
    Counting[] driver = new Counting[1];
    CudaOptions options =
        CudaOptions.DEFAULTS.withDevice(args[2]).withDecorator(to -> driver[0] = new Counting(to));
    long start = System.nanoTime();
    try (Cuda cuda = Cuda.open(options)) {
      new ShortStreamsProgram(cuda, driver[0], Integer.parseInt(args[0]), Integer.parseInt(args[1]))
          .run();
    }
    System.out.printf("0 errors in %d s%n", (System.nanoTime() - start) / 1_000_000_000);
  }

  /**
   * Runs all; the marks.
   *
   * @throws AssertionError if an allocation failed, or something is lost
   */
  List<Mark> run() throws InterruptedException {
    long limit = (long) threads * LARGEST;
    AtOnce atOnce = new AtOnce();
    int events = driver.events.get();
    try (MemoryPool pool =
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(limit)))) {
      atOnce.run(threads, seed -> useStreams(pool, new SplittableRandom(seed)));
      atOnce.assertNoFailures();
      cuda.device(0).synchronize();
      pool.assertConsistent();
      require("bytes in use", pool.usedBytes(), 0);
      pool.freeAllBlocks();
      require("bytes held", pool.totalBytes(), 0);
      require("failed allocations", pool.stats().outOfMemories(), 0);
    }
    mark();
    require("bytes of the driver", driver.bytes.get(), 0);
    require("events", driver.events.get(), events);
    require("streams", driver.streams.get(), 0);
    return marks;
  }

  private void useStreams(MemoryPool pool, SplittableRandom random) {
    CudaDevice device = cuda.device(0);
    long every = Math.max(1, (long) threads * streams / MARKS);
    for (int i = 0; i < streams; i++) {
      Buffer late = null;
      try (CudaStream stream = device.createStream()) {
        pool.allocate(size(random), stream).close();
        Buffer buffer = pool.allocate(size(random), stream);
        buffer.fill((byte) 1, stream);
        if (random.nextInt(BUFFER_CLOSED_LATE) == 0) {
          late = buffer;
        } else {
          use(device, stream, buffer, random);
        }
      }
      if (late != null) {
        late.close();
      }
      if (done.incrementAndGet() % every == 0) {
        pool.assertConsistent();
        mark();
      }
    }
  }

  /** The stream is closed with work in it. */
  private static void use(
      CudaDevice device, CudaStream stream, Buffer buffer, SplittableRandom random) {
    try (buffer;
        CudaEvent event = device.createEvent()) {
      buffer.fill((byte) 2, stream);
      stream.record(event);
      if (random.nextBoolean()) {
        device.nullStream().waitFor(event);
      }
    }
  }

  private static int size(SplittableRandom random) {
    return 1 + random.nextInt(LARGEST);
  }

  private synchronized void mark() {
    System.gc();
    Mark mark =
        new Mark(
            done.get(),
            heapAfterCollection(),
            driver.bytes.get(),
            driver.events.get(),
            driver.streams.get());
    marks.add(mark);
    if (Boolean.getBoolean("cuvette.verbose")) {
      System.out.println(mark);
    }
  }

  /** Without what the other threads have allocated since then, and dropped. */
  private static long heapAfterCollection() {
    long bytes = 0;
    for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
      MemoryUsage after = pool.getType() == MemoryType.HEAP ? pool.getCollectionUsage() : null;
      bytes += after == null ? 0 : after.getUsed();
    }
    return bytes;
  }

  private static void require(String what, long found, long expected) {
    if (found != expected) {
      throw new AssertionError("%s: %d (expected: %d)".formatted(what, found, expected));
    }
  }
}
