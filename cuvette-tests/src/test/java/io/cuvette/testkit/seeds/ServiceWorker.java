package io.cuvette.testkit.seeds;

import static io.cuvette.testkit.seeds.ServiceProgram.BYTES;
import static io.cuvette.testkit.seeds.ServiceProgram.WORDS;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.driver.StreamHandle;
import io.cuvette.testkit.seeds.ServiceProgram.Item;
import io.cuvette.testkit.seeds.ServiceProgram.Proof;
import io.cuvette.testkit.seeds.ServiceProgram.Slot;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One thread of a {@link ServiceProgram}. */
final class ServiceWorker {
  private static final int MOST_ITEMS = 12;
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

  private final ServiceProgram all;
  private final Cuda cuda;
  private final CudaDevice device;
  private final ServiceKernels kernels;
  private final SplittableRandom random;

  /** A stream of its own, or one that all threads may use at once. */
  private CudaStream stream;

  /** Whether the stream was lent by the program. */
  private boolean isLent;

  ServiceWorker(ServiceProgram all, Cuda cuda, ServiceKernels kernels, SplittableRandom random) {
    this.all = all;
    this.cuda = cuda;
    this.device = cuda.device(0);
    this.kernels = kernels;
    this.random = random;
    this.stream = device.nullStream();
  }

  void work() throws Exception {
    takeStream();
    for (int left = 40 + random.nextInt(60); left > 0 && all.goesOn(); left--) {
      step();
    }
    giveBack();
  }

  private void step() throws Exception {
    if (all.items.size() > MOST_ITEMS) {
      consume();
    }
    switch (random.nextInt(17)) {
      case 16 -> look();
      case 0, 1, 2 -> produce();
      case 3, 4, 5, 6 -> transform();
      case 7 -> split();
      case 8 -> {
        if (random.nextBoolean()) {
          consumeInACallback();
        } else {
          fork();
        }
      }
      case 9 -> serve();
      case 10 -> captureAndLaunch();
      case 11, 12, 13 -> takeStream();
      case 14 -> consume();
      default -> rest();
    }
  }

  private void takeStream() {
    giveBack();
    CudaStream lent = all.streams.poll();
    isLent = lent != null;
    if (lent != null) {
      stream = lent;
    } else {
      boolean hasOwn = !Thread.currentThread().isVirtual();
      stream =
          switch (random.nextInt(hasOwn ? 3 : 2)) {
            case 0 -> device.nullStream();
            case 1 -> device.legacyStream();
            default -> device.perThreadStream();
          };
    }
  }

  /** Some streams end here, and others take their place. */
  private void giveBack() {
    if (isLent && random.nextInt(4) == 0) {
      stream.close();
      stream = ServiceProgram.stream(device, random);
    }
    if (isLent) {
      all.streams.add(stream);
    }
    isLent = false;
    stream = device.nullStream();
  }

  /** Has the host wait, in one of many ways. */
  static void await(ServiceProgram all, Proof proof, SplittableRandom random) throws Exception {
    CudaEvent event = proof.event();
    if (proof.future() != null) {
      proof.future().get(60, TimeUnit.SECONDS);
    } else if (event != null) {
      if (random.nextBoolean()) {
        event.synchronize();
      } else {
        while (!event.isDone()) {
          Thread.yield(); // another virtual thread may have to go on
        }
      }
      all.recycle(event);
    }
  }

  /** Has the stream come behind work, or the host if that is how the work tells. */
  private void follow(Proof proof) throws Exception {
    CudaEvent event = proof.event();
    if (event == null || random.nextInt(10) == 0) {
      await(all, proof, random);
      return;
    }
    CudaStream first = proof.stream();
    boolean takesTurns = first != null && isNull(first) && !stream.isNonBlocking();
    boolean isBehind = takesTurns || (isPerThread(first) && isNull(stream));
    if (!isBehind || random.nextBoolean()) {
      stream.waitFor(event);
    }
    all.recycle(event);
  }

  private boolean isNull(CudaStream other) {
    return other.equals(device.nullStream()) || other.equals(device.legacyStream());
  }

  private boolean isPerThread(@Nullable CudaStream other) {
    return other != null && other.handle() == StreamHandle.PER_THREAD;
  }

  /** What is behind all that the stream has now. */
  private Proof proof() {
    return switch (random.nextInt(16)) {
      case 0 -> {
        stream.synchronize();
        yield Proof.DONE;
      }
      case 1 -> {
        while (!stream.isDone()) {
          Thread.yield();
        }
        yield Proof.DONE;
      }
      case 2 -> new Proof(null, null, stream.onComplete());
      case 3 -> {
        CompletableFuture<Void> done = new CompletableFuture<>();
        CompletableFuture<Void> _ = stream.addCallback(() -> done.complete(null));
        yield new Proof(null, null, done);
      }
      default -> new Proof(stream, stream.record(all.event(device)), null);
    };
  }

  private Slot slot() throws Exception {
    Slot slot = all.slots.poll(60, TimeUnit.SECONDS);
    if (slot == null) {
      throw new AssertionError("no slot came back");
    }
    return slot;
  }

  private Buffer allocate() {
    return all.resources.get(random.nextInt(all.resources.size())).allocate(BYTES, stream);
  }

  private void produce() throws Exception {
    int first = random.nextInt(10_000);
    if (random.nextInt(6) == 0) {
      Buffer buffer = allocate();
      try (Scope _ = stream.use()) {
        buffer.copyFrom(ServiceProgram.words(first));
      }
      all.items.add(new Item(buffer, first, Proof.DONE));
      return;
    }
    if (random.nextBoolean()) { // from what all read
      Buffer buffer = allocate();
      kernels.add(stream, all.base(), buffer, first);
      all.items.add(new Item(buffer, first, proof()));
      return;
    }
    Slot slot = slot();
    await(all, slot.proof(), random);
    if (random.nextBoolean()) {
      slot.in().copyFrom(ServiceProgram.words(first));
    } else {
      slot.in().segment().copyFrom(ServiceProgram.words(first));
    }
    Buffer buffer = allocate();
    if (random.nextInt(4) == 0) {
      kernels.add(stream, slot.in(), buffer, 0);
    } else {
      buffer.copyFrom(slot.in(), stream);
    }
    giveBack(slot);
    all.items.add(new Item(buffer, first, proof()));
  }

  /** A kernel behind a copy writes a word, at which this thread looks. */
  private void look() throws Exception {
    if (Thread.currentThread().isVirtual()) {
      return; // threads of simulated kernels are virtual, and need one that does not spin
    }
    int first = random.nextInt(10_000);
    Slot slot = slot();
    await(all, slot.proof(), random);
    slot.in().copyFrom(ServiceProgram.words(first));
    Buffer buffer = allocate();
    buffer.copyFrom(slot.in(), stream);
    try (PinnedBuffer word = cuda.allocatePinned(Integer.BYTES)) {
      word.segment().set(ValueLayout.JAVA_INT, 0, 0);
      kernels.add(stream, all.base(), word, 1);
      while ((int) WORD.getVolatile(word.segment(), 0L) != 1) {
        Thread.yield();
      }
    }
    all.slots.add(slot.behind(Proof.DONE));
    all.items.add(new Item(buffer, first, proof()));
  }

  /** Behind what the stream has now. */
  private void giveBack(Slot slot) {
    if (random.nextInt(3) == 0) {
      CompletableFuture<Void> added =
          stream.addCallback(() -> all.slots.add(slot.behind(Proof.DONE)));
      all.awaitAtTheEnd(added);
    } else {
      all.slots.add(slot.behind(proof()));
    }
  }

  private @Nullable Item item() throws Exception {
    Item item = all.items.poll();
    if (item != null) {
      follow(item.proof());
    }
    return item;
  }

  private void transform() throws Exception {
    Item item = item();
    if (item == null) {
      return;
    }
    int number = random.nextInt(100);
    Buffer buffer = item.buffer();
    switch (random.nextInt(3)) {
      case 0 -> kernels.add(stream, buffer, buffer, number);
      case 1 -> {
        Buffer next = allocate();
        kernels.add(stream, buffer, next, number);
        buffer.close(); // its memory is used again behind this, wherever it came from
        buffer = next;
      }
      default -> {
        try (Buffer step = allocate()) {
          step.copyFrom(buffer, stream);
          kernels.add(stream, step, buffer, number);
        }
      }
    }
    all.items.add(new Item(buffer, item.first() + number, proof()));
  }

  private void split() throws Exception {
    Item item = item();
    if (item != null) {
      Buffer second = allocate();
      second.copyFrom(item.buffer(), stream);
      all.items.add(new Item(item.buffer(), item.first(), proof()));
      all.items.add(new Item(second, item.first(), proof()));
    }
  }

  private void consume() throws Exception {
    Item item = item();
    if (item == null) {
      return;
    }
    Buffer buffer = item.buffer();
    if (random.nextInt(3) == 0) {
      MemorySegment words = MemorySegment.ofArray(new int[WORDS]);
      try (Scope _ = stream.use()) {
        buffer.copyTo(words);
      }
      buffer.close();
      ServiceProgram.check(words, item.first());
      return;
    }
    Slot slot = slot();
    await(all, slot.proof(), random);
    buffer.copyTo(slot.out(), stream);
    buffer.close();
    await(all, proof(), random);
    ServiceProgram.check(slot.out().segment(), item.first());
    all.slots.add(slot.behind(Proof.DONE));
  }

  private void consumeInACallback() throws Exception {
    Item item = item();
    if (item == null) {
      return;
    }
    Slot slot = slot();
    await(all, slot.proof(), random);
    item.buffer().copyTo(slot.out(), stream);
    Runnable code =
        all.noting(() -> {
          ServiceProgram.check(slot.out().segment(), item.first());
          item.buffer().close();
          all.slots.add(slot.behind(Proof.DONE));
        });
    all.awaitAtTheEnd(
        switch (random.nextInt(3)) {
          case 0 -> stream.addCallback(code);
          case 1 -> stream.onComplete().thenRun(code);
          default -> stream.onComplete().thenRunAsync(code);
        });
  }

  /** Tasks of their own, of which the first to fail is thrown. */
  private void fork() throws Exception {
    try (ExecutorService tasks = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> all = new ArrayList<>();
      for (int i = 1 + random.nextInt(3); i > 0; i--) {
        ServiceWorker task = new ServiceWorker(this.all, cuda, kernels, random.split());
        task.stream = isPerThread(stream) ? device.nullStream() : stream; // of all at once
        all.add(
            tasks.submit(() -> {
              task.produce();
              task.transform();
              return null;
            }));
      }
      for (Future<?> each : all) {
        Object _ = each.get(60, TimeUnit.SECONDS);
      }
    }
  }

  private void serve() throws Exception {
    if (!all.graphs.isEmpty()) {
      ServiceGraph graph = all.graphs.get(random.nextInt(all.graphs.size()));
      graph.serve(cuda, stream, random.nextInt(10_000));
    }
  }

  /** A graph that lives as long as its launch. */
  private void captureAndLaunch() throws Exception {
    if (!stream.isNonBlocking()) {
      return; // the null stream is others' as well
    }
    Item item = item();
    if (item == null) {
      return;
    }
    Buffer buffer = item.buffer();
    CudaGraph graph =
        stream.capture(() -> {
          kernels.add(stream, buffer, buffer, 1);
          try (Buffer step = cuda.allocate(BYTES, stream)) {
            kernels.add(stream, buffer, step, 2);
            buffer.copyFrom(step, stream);
          }
        });
    try (CudaGraphExec executable = graph.instantiate()) {
      graph.close();
      executable.launch(stream);
    }
    all.items.add(new Item(buffer, item.first() + 3, proof()));
  }

  private void rest() {
    switch (random.nextInt(4)) {
      case 0 -> device.synchronize();
      case 1 -> {
        long _ = cuda.defaultMemoryPool().freeAllBlocks();
      }
      case 2 -> {
        long _ = cuda.defaultPinnedMemoryPool().freeAllBlocks();
      }
      default -> {
        CompletableFuture<Void> callback = stream.addCallback(() -> {});
        all.awaitAtTheEnd(callback);
      }
    }
  }
}
