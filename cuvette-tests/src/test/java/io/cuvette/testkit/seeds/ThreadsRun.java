package io.cuvette.testkit.seeds;

import static io.cuvette.testkit.seeds.CellKernels.ADD;
import static io.cuvette.testkit.seeds.CellKernels.MIX;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamHandle;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.seeds.ThreadsOps.Block;
import io.cuvette.testkit.seeds.ThreadsOps.Queue;
import io.cuvette.testkit.seeds.ThreadsPlan.Wrong;
import io.cuvette.testkit.seeds.ThreadsStep.Kind;
import io.cuvette.testkit.seeds.ThreadsStep.Lane;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** One run of a {@link ThreadsPlan} under one seed of the simulated device. Thread-safe. */
final class ThreadsRun {
  /** What the sanitizer found first; the call went on. */
  static final class Found extends Exception {
    private static final long serialVersionUID = 1;
    final transient SanitizerReport report;

    Found(SanitizerReport report) {
      super(report.describe());
      this.report = report;
    }
  }

  private static final int PATIENCE_SECONDS = 60;
  private static final long LONG_PAUSE_NANOS = 5_000_000;
  private static final int SHORT_PAUSE_NANOS = 400_000;
  private static final VarHandle INT = JAVA_INT.varHandle();

  final List<CountDownLatch> latches;

  private final ThreadsPlan plan;
  private final @Nullable Wrong wrong;
  private final SplittableRandom random;
  private final SimulatedDriver device;
  private final CudaDriver driver;
  private final CellKernels kernels;
  private final Map<Lane, Long> streams = new HashMap<>();
  private final long[] events;
  private final List<CompletableFuture<Long>> addresses = new ArrayList<>();
  private final Map<Integer, MemorySegment> pinned = new HashMap<>();
  private final long scratch;

  /** Each a block of its own: a kernel that is given one may write all behind it. */
  private final List<Long> words = new ArrayList<>();

  private final List<MemorySegment> hostWords = new ArrayList<>();
  private final Map<Integer, ThreadsStep> at = new ConcurrentHashMap<>();
  private final CountDownLatch start = new CountDownLatch(1);
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  ThreadsRun(ThreadsPlan plan, @Nullable Wrong wrong, long seed) {
    this.plan = plan;
    this.wrong = wrong;
    random = new SplittableRandom(seed);
    String settings = "memory=64MiB,seed=" + seed + (plan.hasGates ? ",queues=0" : "");
    device = SimulatedDriver.open(SimulatedOptions.parse(settings));
    driver = SanitizerDriver.reporting(device, report -> fail(new Found(report)));
    kernels = new CellKernels(driver);
    latches = IntStream.range(0, plan.latches).mapToObj(_ -> new CountDownLatch(1)).toList();
    events = plan.events.stream().mapToLong(_ -> driver.events().eventCreate(0, 2)).toArray();
    plan.allLanes().forEach(lane -> streams.put(lane, handle(lane)));
    scratch = driver.memory().memAlloc(0, 64);
    for (int i = 0; i < plan.words; i++) {
      words.add(driver.memory().memAlloc(0, 4));
      driver.transfers().memsetD32Async(0, words.getLast(), 0, 1, 0);
      hostWords.add(driver.memory().memHostAlloc(0, 4, 0).fill((byte) 0));
    }
    plan.ops.blocks.forEach(this::open);
    driver.devices().ctxSynchronize(0);
  }

  private long handle(Lane lane) {
    if (lane.isLegacy()) {
      return random.nextBoolean() ? StreamHandle.NULL : StreamHandle.LEGACY;
    }
    if (lane.isBlocking() && lane.owner() >= 0) {
      return StreamHandle.PER_THREAD;
    }
    boolean isBlocking = lane.isBlocking() && (wrong == null || !lane.equals(wrong.unblocked()));
    return driver.streams().streamCreateWithPriority(0, isBlocking ? 0 : 1, -random.nextInt(3));
  }

  private void open(Block block) {
    CompletableFuture<Long> address = new CompletableFuture<>();
    addresses.add(address);
    if (block.isPinned()) {
      MemorySegment memory = driver.memory().memHostAlloc(0, blockBytes(), 0).fill((byte) 0);
      pinned.put(block.number(), memory);
      address.complete(memory.address());
    } else if (!block.isOrdered()) {
      address.complete(driver.memory().memAlloc(0, blockBytes()));
      fill(block.cell(0), ThreadsOps.CELLS, 0, 0);
    }
  }

  /** Throws what the sanitizer finds first, or that a value is wrong. */
  void run() throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < plan.threads; i++) {
      List<ThreadsStep> steps = steps(i);
      SplittableRandom own = random.split();
      Thread.Builder builder = random.nextBoolean() ? Thread.ofVirtual() : Thread.ofPlatform();
      threads.add(builder.start(() -> run(steps, own)));
    }
    start.countDown();
    for (Thread thread : threads) {
      if (!thread.join(Duration.ofSeconds(2 * PATIENCE_SECONDS))) {
        throw new AssertionError("hangs: " + thread + List.of(thread.getStackTrace()));
      }
    }
    try {
      throwFailure();
      end();
    } finally {
      device.close();
    }
    throwFailure();
    if (!device.report().isEmpty()) {
      throw new AssertionError("left behind: " + device.report());
    }
  }

  private void throwFailure() throws Exception {
    switch (failure.get()) {
      case null -> {}
      case Error e -> throw e;
      case Exception e -> throw e;
      case Throwable e -> throw new AssertionError(e);
    }
  }

  /** The steps of a thread, without what is left out and with a record that is too early. */
  private List<ThreadsStep> steps(int thread) {
    List<ThreadsStep> steps = new ArrayList<>();
    ThreadsStep step = wrong == null ? null : wrong.step();
    for (ThreadsStep each : plan.steps) {
      if (each.thread == thread && (each != step || each.kind == Kind.RECORD)) {
        steps.add(each);
      }
    }
    int at = steps.indexOf(step);
    if (at > 0) {
      Collections.swap(steps, at - 1, at);
    }
    return steps;
  }

  private void run(List<ThreadsStep> steps, SplittableRandom own) {
    int late = own.nextInt(steps.size() + 1);
    try {
      await(start);
      for (ThreadsStep step : steps) {
        if (failure.get() != null) {
          return;
        }
        if (wrong != null && (late-- == 0 || own.nextInt(16) == 0)) { // they meet elsewhere
          LockSupport.parkNanos(late == -1 ? LONG_PAUSE_NANOS : own.nextInt(SHORT_PAUSE_NANOS));
        }
        at.put(step.thread, step);
        step.action.run(this);
      }
    } catch (Exception | AssertionError e) {
      fail(e);
    }
  }

  private void fail(Throwable e) {
    if (failure.compareAndSet(null, e)) {
      letAllGoOn();
    }
  }

  /** Nobody waits for a thread that has failed. */
  private void letAllGoOn() {
    latches.forEach(CountDownLatch::countDown);
    addresses.forEach(each -> each.completeExceptionally(new IllegalStateException("failed")));
    for (int i = 0; i < plan.words; i++) {
      open(i);
    }
  }

  private void end() {
    driver.devices().ctxSynchronize(0);
    for (Block block : plan.live) {
      for (int i = 0; i < ThreadsOps.CELLS; i++) {
        int cell = block.cell(i);
        int expected = plan.ops.value(cell);
        if (block.isPinned()) {
          check(cell, expected);
        } else {
          try (Arena arena = Arena.ofShared()) {
            MemorySegment copy = arena.allocate(bytes(), 8);
            driver.transfers().memcpyDtoHAsync(0, copy, address(cell), 0);
            driver.streams().streamSynchronize(0, 0);
            check(copy, cell, expected);
          }
        }
      }
      free(block, null);
    }
    for (long event : events) {
      driver.events().eventDestroy(0, event);
    }
    streams.values().stream()
        .filter(stream -> !StreamHandle.isBuiltIn(stream))
        .forEach(stream -> driver.streams().streamDestroy(0, stream));
    driver.memory().memFree(0, scratch);
    words.forEach(word -> driver.memory().memFree(0, word));
    hostWords.forEach(word -> driver.memory().memFreeHost(0, word.address()));
    kernels.unload();
    driver.close();
  }

  long stream(Lane lane) {
    return Objects.requireNonNull(streams.get(lane));
  }

  private long bytes() {
    return 4L * plan.cellWords;
  }

  private long blockBytes() {
    return ThreadsOps.CELLS * bytes();
  }

  private long base(int cell) {
    return addresses
        .get(cell / ThreadsOps.CELLS)
        .orTimeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
        .join();
  }

  private long offset(int cell) {
    return cell % ThreadsOps.CELLS * bytes();
  }

  private long address(int cell) {
    return base(cell) + offset(cell);
  }

  private @Nullable MemorySegment onHost(int cell) {
    MemorySegment memory = pinned.get(cell / ThreadsOps.CELLS);
    return memory == null ? null : memory.asSlice(offset(cell), bytes());
  }

  void allocate(Block block, long stream) {
    addresses.get(block.number()).complete(driver.ordered().memAllocAsync(0, blockBytes(), stream));
  }

  /** Frees a block in order of a stream, or, without one, at once. */
  void free(Block block, @Nullable Lane lane) {
    long address = base(block.cell(0));
    if (block.isPinned()) {
      driver.memory().memFreeHost(0, address);
    } else if (lane == null) {
      driver.memory().memFree(0, address);
    } else {
      driver.ordered().memFreeAsync(0, address, stream(lane));
    }
  }

  void fill(int cell, int cells, int value, long stream) {
    long count = (long) cells * plan.cellWords;
    driver.transfers().memsetD32Async(0, address(cell), value, count, stream);
  }

  void copy(int from, int to, boolean isTyped, long stream) {
    MemorySegment source = isTyped ? onHost(from) : null;
    MemorySegment target = isTyped ? onHost(to) : null;
    if (source != null && target == null) {
      driver.transfers().memcpyHtoDAsync(0, address(to), source, stream);
    } else if (target != null && source == null) {
      driver.transfers().memcpyDtoHAsync(0, target, address(from), stream);
    } else {
      driver.transfers().memcpyAsync(0, address(to), address(from), bytes(), stream);
    }
  }

  void mix(int from, int to, int value, long stream) {
    launch(MIX, stream, base(from), base(to), offset(from), offset(to), plan.cellWords, value);
  }

  void add(int cell, int value, long stream) {
    launch(ADD, stream, base(cell), offset(cell), plan.cellWords, value);
  }

  private void launch(SimulatedKernel kernel, long stream, long... arguments) {
    driver
        .kernels()
        .launchKernel(
            0,
            stream,
            kernels.handle(kernel),
            CellKernels.shape(1, 4),
            CellKernels.arguments(kernel, arguments));
  }

  void launchGraph(List<Queue> queues, long stream) {
    long captured = driver.streams().streamCreateWithPriority(0, 1, 0);
    driver.captures().streamBeginCapture(0, captured, 2);
    queues.forEach(queue -> queue.on(this, captured));
    long graph = driver.captures().streamEndCapture(0, captured);
    driver.streams().streamDestroy(0, captured);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    driver.graphs().graphDestroy(graph);
    driver.graphs().graphLaunch(0, executable, stream);
    driver.graphs().graphExecDestroy(executable);
  }

  void write(int cell, int value) {
    MemorySegment memory = Objects.requireNonNull(onHost(cell));
    for (int i = 0; i < plan.cellWords; i++) {
      memory.setAtIndex(JAVA_INT, i, value);
    }
  }

  void check(int cell, int expected) {
    check(Objects.requireNonNull(onHost(cell)), cell, expected);
  }

  private void check(MemorySegment memory, int cell, int expected) {
    for (int i = 0; i < plan.cellWords; i++) {
      int value = memory.getAtIndex(JAVA_INT, i);
      if (value != expected) {
        throw new AssertionError(
            "word %d of cell %d: %x (expected: %x)".formatted(i, cell, value, expected));
      }
    }
  }

  void await(int latch) throws InterruptedException {
    await(latches.get(latch));
  }

  private void await(CountDownLatch latch) throws InterruptedException {
    if (!latch.await(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      throw new AssertionError("nobody came; the threads are at " + at);
    }
  }

  /** A function of the host lets another thread go on. */
  void countDownOn(int latch, Lane lane) {
    driver.streams().launchHostFunc(0, stream(lane), latches.get(latch)::countDown);
  }

  /** A kernel writes a word that the host waits for. */
  void tell(int word, Lane lane) {
    launch(ADD, stream(lane), hostWords.get(word).address(), 0, 1, 1);
  }

  void awaitTold(int word) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
    while ((int) INT.getVolatile(hostWords.get(word), 0L) == 0) {
      if (System.nanoTime() > end) {
        throw new AssertionError("nobody wrote word %d; the threads are at %s".formatted(word, at));
      }
      pause();
    }
  }

  /** Virtual threads that only yield would let no kernel of the simulated device run. */
  private static void pause() {
    LockSupport.parkNanos(20_000);
  }

  /** A kernel or a fill writes a word that a stream waits for. */
  void set(int word, boolean isKernel, Lane lane) {
    long address = words.get(word);
    if (isKernel) {
      launch(ADD, stream(lane), address, 0, 1, 1);
    } else {
      driver.transfers().memsetD32Async(0, address, 1, 1, stream(lane));
    }
  }

  void followWord(int word, Lane lane) {
    driver.streams().streamWaitValue32(0, stream(lane), words.get(word), 1, 1);
  }

  void record(int event, Lane lane) {
    driver.events().eventRecord(0, events[event], stream(lane));
  }

  void followEvent(int event, Lane lane) {
    driver.streams().streamWaitEvent(0, stream(lane), events[event]);
  }

  void awaitEvent(int event, boolean queries) {
    if (!queries) {
      driver.events().eventSynchronize(0, events[event]);
    } else {
      while (!driver.events().eventQuery(0, events[event])) {
        pause();
      }
    }
  }

  /** Waits for a stream, or, without one, for the device. */
  void awaitStream(@Nullable Lane lane, boolean queries) {
    if (lane == null) {
      driver.devices().ctxSynchronize(0);
    } else if (!queries) {
      driver.streams().streamSynchronize(0, stream(lane));
    } else {
      while (!driver.streams().streamQuery(0, stream(lane))) {
        pause();
      }
    }
  }

  /** Queues work that the default stream does, and blocking streams behind it wait for. */
  void turn(Lane legacy) {
    driver.transfers().memsetD8Async(0, scratch, (byte) 0, 64, stream(legacy));
  }

  void holdByFunction(int latch, Lane lane) {
    CountDownLatch gate = latches.get(latch);
    driver
        .streams()
        .launchHostFunc(
            0,
            stream(lane),
            () -> {
              try {
                await(gate);
              } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
              }
            });
  }

  void holdByWord(int word, Lane lane) {
    long address = hostWords.get(word).address();
    driver.streams().streamWaitValue32(0, stream(lane), address, 1, 1);
  }

  void open(int word) {
    INT.setVolatile(hostWords.get(word), 0L, 1);
  }
}
