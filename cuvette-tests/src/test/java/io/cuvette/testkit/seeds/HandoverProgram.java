package io.cuvette.testkit.seeds;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.DriverPoolResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PoolOptions;
import io.cuvette.Registration;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A random right program of several threads, platform and virtual ones, that hand buffers to each
 * other with events: memory from every resource and pools on top of others, streams of all kinds
 * that come and go, limits that change, listeners that give memory, pools that are trimmed and a
 * device that is full at times. A buffer is one thread's at a time. What is read is compared with
 * what was written; the sanitizer finds nothing, and at the end all memory is back.
 */
final class HandoverProgram {

  /** A buffer on its way, with its one value, behind an event. */
  record Parcel(Buffer buffer, byte value, CudaEvent event) {}

  private final long seed;
  private final SplittableRandom random;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  final List<Queue<Parcel>> inboxes = new ArrayList<>();
  final List<MemoryResource> resources = new ArrayList<>();
  final List<MemoryPool> pools = new ArrayList<>();
  final List<AsyncMemoryPool> ordered = new ArrayList<>();
  final List<DriverPoolResource> ofDriver = new ArrayList<>();

  /** What listeners may close where memory is short. */
  final Queue<Buffer> spare = new ConcurrentLinkedQueue<>();

  volatile boolean forgot;

  HandoverProgram(long seed) {
    this.seed = seed;
    this.random = new SplittableRandom(seed * 77 + 1);
  }

  void run() throws Exception {
    String memory = random.nextBoolean() ? "12MiB" : "64MiB";
    SimulatedDriver driver =
        SimulatedDriver.open(SimulatedOptions.parse("memory=%s,seed=%d".formatted(memory, seed)));
    CudaOptions options =
        CudaOptions.DEFAULTS
            .withDriver(driver)
            .withMemoryLimit(
                random.nextBoolean() ? MemoryLimit.none() : MemoryLimit.ofFraction(0.5))
            .withLeakListener(_ -> {})
            .withDecorator(SanitizerDriver::throwing);
    try (Cuda cuda = Cuda.open(options)) {
      MemoryInfo before = cuda.device(0).memoryInfo();
      play(cuda);
      checkEnd(cuda, before);
    }
    if (!driver.report().isEmpty()) {
      throw new AssertionError("left behind: " + driver.report());
    }
  }

  private void play(Cuda cuda) throws InterruptedException {
    try (ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        PinnedMemoryPool pinned = new PinnedMemoryPool(cuda)) {
      open(cuda, elastic, pinned);
      List<Registration> listeners =
          pools.stream()
              .filter(_ -> random.nextBoolean())
              .map(pool -> pool.addPressureListener((_, _) -> giveSpare()))
              .toList();
      work(cuda, elastic, pinned);
      inboxes.forEach(inbox ->
          inbox.forEach(parcel -> {
            parcel.event().close();
            parcel.buffer().close();
          }));
      spare.forEach(Buffer::close);
      listeners.forEach(Registration::close);
      cuda.device(0).synchronize();
      pools.forEach(MemoryPool::assertConsistent);
      elastic.assertConsistent();
      pinned.assertConsistent();
      pools.reversed().forEach(MemoryPool::close); // those on top first
      ordered.forEach(AsyncMemoryPool::close);
      ofDriver.forEach(DriverPoolResource::close);
    }
  }

  private long giveSpare() {
    Buffer buffer = spare.poll();
    if (buffer == null) {
      return 0;
    }
    long bytes = buffer.blockBytes();
    buffer.close();
    return bytes;
  }

  private void open(Cuda cuda, ElasticMemoryPool elastic, PinnedMemoryPool pinned) {
    CudaDevice device = cuda.device(0);
    ordered.add(new AsyncMemoryPool(cuda));
    ordered.add(new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)));
    ofDriver.add(new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS));
    ofDriver.add(new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS));
    ofDriver.add(new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS));
    PoolOptions options = PoolOptions.DEFAULTS;
    MemoryPool plain = new MemoryPool(cuda);
    pools.add(plain);
    pools.add(new MemoryPool(cuda, options.withUpstream(MemoryResource.managed())));
    pools.add(new MemoryPool(cuda, options.withUpstream(plain)));
    pools.add(new MemoryPool(cuda, options.withUpstream(ordered.getFirst()).withTargetRatio(1.2)));
    pools.add(new MemoryPool(cuda, options.withUpstream(elastic).withCrossStreamBytes(0)));
    resources.addAll(pools);
    resources.addAll(ordered);
    resources.addAll(ofDriver);
    resources.addAll(
        List.of(
            elastic,
            (bytes, _) -> pinned.allocate(bytes),
            (bytes, _) -> cuda.allocatePinned(bytes),
            MemoryResource.direct(),
            MemoryResource.async(),
            MemoryResource.managed()));
    int kept = random.nextInt(3) == 0 ? resources.size() : 1 + random.nextInt(3);
    while (resources.size() > kept) {
      resources.remove(random.nextInt(resources.size()));
    }
  }

  private void work(Cuda cuda, ElasticMemoryPool elastic, PinnedMemoryPool pinned)
      throws InterruptedException {
    int count = 2 + random.nextInt(4);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      inboxes.add(new ConcurrentLinkedQueue<>());
    }
    for (int i = 0; i < count; i++) {
      HandoverWorker worker = new HandoverWorker(this, cuda, elastic, pinned, i, random.split());
      Thread.Builder builder = random.nextBoolean() ? Thread.ofVirtual() : Thread.ofPlatform();
      threads.add(builder.unstarted(() -> run(worker)));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      if (!thread.join(Duration.ofSeconds(100))) {
        throw new AssertionError("hangs: " + thread + List.of(thread.getStackTrace()));
      }
    }
    Throwable thrown = failure.get();
    if (thrown != null) {
      throw new AssertionError("a thread failed", thrown);
    }
  }

  private void run(HandoverWorker worker) {
    try {
      worker.work(() -> failure.get() == null);
    } catch (Exception | AssertionError e) {
      failure.compareAndSet(null, e);
    }
  }

  /** What was forgotten comes back when the collector finds it. */
  private void checkEnd(Cuda cuda, MemoryInfo before) {
    CudaDevice device = cuda.device(0);
    device.nullStream().synchronize();
    try (DeviceMemoryResource current = new DeviceMemoryResource(device)) {
      current.trimTo(0); // what was freed last
    }
    if (!forgot && !cuda.openObjects().isEmpty()) {
      throw new AssertionError("open: " + cuda.openObjects());
    }
    long end = System.nanoTime() + Duration.ofMinutes(1).toNanos();
    while (!forgot && device.memoryInfo().freeBytes() != before.freeBytes()) {
      if (System.nanoTime() > end) {
        throw new AssertionError(device.memoryInfo() + " (before: " + before + ")");
      }
      // A thread of the library may just have freed what a callback held; pools give back at waits.
      device.nullStream().synchronize();
      Thread.yield();
    }
  }
}
