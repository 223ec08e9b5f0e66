package io.cuvette.testkit.seeds;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.EventOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A random right program of several threads that work as a server of models does: rings of
 * page-locked slots, results on their way from stream to stream and thread to thread, events that
 * are pooled and recorded anew, streams that threads lend each other, callbacks and futures that
 * give slots back, graphs that threads launch in turn. What comes out is compared with what went
 * in; the sanitizer finds nothing, and at the end all is back.
 */
final class ServiceProgram {
  static final int WORDS = 24;
  static final long BYTES = (long) WORDS * Integer.BYTES;

  /**
   * What comes before later use: the work of a stream up to an event, or what completes a future.
   */
  record Proof(
      @Nullable CudaStream stream,
      @Nullable CudaEvent event,
      @Nullable CompletableFuture<Void> future) {
    /** The host knows that all is done. */
    static final Proof DONE = new Proof(null, null, null);
  }

  /** A buffer whose words are a number and those that follow it. */
  record Item(Buffer buffer, int first, Proof proof) {}

  /** Page-locked memory that is used again and again. */
  record Slot(PinnedBuffer in, PinnedBuffer out, Proof proof) {
    Slot behind(Proof next) {
      return new Slot(in, out, next);
    }
  }

  private final long seed;
  private final SplittableRandom random;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  final Queue<Item> items = new ConcurrentLinkedQueue<>();
  final BlockingQueue<Slot> slots = new LinkedBlockingQueue<>();

  /** Streams that nobody uses at the moment. */
  final Queue<CudaStream> streams = new ConcurrentLinkedQueue<>();

  /** Words from 0 on, which nobody changes. */
  private @Nullable Buffer base;

  private final Queue<CudaEvent> events = new ConcurrentLinkedQueue<>();

  final List<MemoryResource> resources = new ArrayList<>();
  final List<ServiceGraph> graphs = new ArrayList<>();
  private final Queue<CompletableFuture<Void>> pending = new ConcurrentLinkedQueue<>();

  ServiceProgram(long seed) {
    this.seed = seed;
    this.random = new SplittableRandom(seed * 131 + 5);
  }

  void run() throws Exception {
    SimulatedDriver driver =
        SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB,seed=" + seed));
    CudaOptions options =
        CudaOptions.DEFAULTS.withDriver(driver).withDecorator(SanitizerDriver::throwing);
    try (Cuda cuda = Cuda.open(options)) {
      try (CudaModule module = ServiceKernels.load(cuda)) {
        play(cuda, ServiceKernels.of(module));
      }
      cuda.device(0).synchronize();
      if (!cuda.openObjects().isEmpty()) {
        throw new AssertionError("open: " + cuda.openObjects());
      }
    }
    if (!driver.report().isEmpty()) {
      throw new AssertionError("left behind: " + driver.report());
    }
  }

  private void play(Cuda cuda, ServiceKernels kernels) throws Exception {
    CudaDevice device = cuda.device(0);
    try (AsyncMemoryPool ordered = new AsyncMemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        Buffer words = cuda.allocate(BYTES)) {
      words.copyFrom(words(0));
      base = words;
      resources.add(cuda.defaultMemoryPool());
      resources.add(cuda.defaultMemoryPool());
      resources.add(ordered);
      resources.add(elastic);
      resources.add(MemoryResource.async());
      resources.add(MemoryResource.managed());
      resources.add((bytes, _) -> cuda.allocatePinned(bytes));
      for (int i = 3 + random.nextInt(6); i > 0; i--) {
        slots.add(new Slot(cuda.allocatePinned(BYTES), cuda.allocatePinned(BYTES), Proof.DONE));
      }
      for (int i = 2 + random.nextInt(5); i > 0; i--) {
        streams.add(stream(device, random));
      }
      for (int i = random.nextInt(3); i > 0; i--) {
        graphs.add(new ServiceGraph(this, cuda, kernels, random.split()));
      }
      work(cuda, kernels);
      for (ServiceGraph graph : graphs) {
        graph.close();
      }
      close(device);
    }
  }

  private void close(CudaDevice device) throws Exception {
    for (CompletableFuture<Void> each : pending) {
      each.get(60, TimeUnit.SECONDS);
    }
    device.synchronize();
    check();
    items.forEach(item -> {
      recycle(item.proof().event());
      item.buffer().close();
    });
    slots.forEach(slot -> {
      recycle(slot.proof().event());
      slot.in().close();
      slot.out().close();
    });
    events.forEach(CudaEvent::close);
    streams.forEach(CudaStream::close);
    device.synchronize();
  }

  static CudaStream stream(CudaDevice device, SplittableRandom random) {
    StreamOptions options = StreamOptions.DEFAULTS.withNonBlocking(random.nextInt(3) > 0);
    return device.createStream(options.withPriority(-random.nextInt(2)));
  }

  private void work(Cuda cuda, ServiceKernels kernels) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int i = 2 + random.nextInt(4); i > 0; i--) {
      ServiceWorker worker = new ServiceWorker(this, cuda, kernels, random.split());
      Thread.Builder builder = random.nextBoolean() ? Thread.ofVirtual() : Thread.ofPlatform();
      threads.add(builder.unstarted(() -> noting(worker::work).run()));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      if (!thread.join(Duration.ofSeconds(100))) {
        throw new AssertionError("hangs: " + thread + List.of(thread.getStackTrace()));
      }
    }
    check();
  }

  private void check() {
    Throwable thrown = failure.get();
    if (thrown != null) {
      throw new AssertionError("a thread failed", thrown);
    }
  }

  boolean goesOn() {
    return failure.get() == null;
  }

  /** Code that throws. */
  interface Code {
    void run() throws Exception;
  }

  /** Code of which the program learns if it failed. */
  Runnable noting(Code code) {
    return () -> {
      try {
        code.run();
      } catch (Exception | AssertionError e) {
        failure.compareAndSet(null, e);
      }
    };
  }

  /** Has the end of the program wait for something. */
  void awaitAtTheEnd(CompletableFuture<Void> future) {
    pending.add(future);
  }

  Buffer base() {
    return Objects.requireNonNull(base, "base");
  }

  CudaEvent event(CudaDevice device) {
    CudaEvent event = events.poll();
    return event == null ? device.createEvent(EventOptions.ORDER_ONLY) : event;
  }

  /** Lets an event be recorded anew, although something may be behind it. */
  void recycle(@Nullable CudaEvent event) {
    if (event != null) {
      events.add(event);
    }
  }

  static void check(MemorySegment words, int first) {
    for (int i = 0; i < WORDS; i++) {
      int found = words.getAtIndex(ValueLayout.JAVA_INT, i);
      if (found != first + i) {
        throw new AssertionError("word %d: %d (expected: %d)".formatted(i, found, first + i));
      }
    }
  }

  /** Words in the heap. */
  static MemorySegment words(int first) {
    int[] words = new int[WORDS];
    for (int i = 0; i < WORDS; i++) {
      words[i] = first + i;
    }
    return MemorySegment.ofArray(words);
  }
}
