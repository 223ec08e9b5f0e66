package io.cuvette.testkit.seeds;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A random program that waits wherever it has to: memory of every kind, several streams that are
 * opened and closed, copies of all ways, events, callbacks, and a device that is nearly full. What
 * it reads is compared with a model; the sanitizer finds nothing, and nothing is left behind.
 * Confined to one thread.
 */
final class RightProgram {
  private static final int STEPS = 60;
  private static final int BLOCKS = 6;
  private static final int STREAMS = 4;
  private static final int[] SIZES = {1, 64, 512, 4096, 5000, 70_000, 300_000};

  /** A block, the stream that wrote it last, those that read it, and its one value. */
  private static final class Block {
    final Buffer buffer;
    final Set<CudaStream> readers = new LinkedHashSet<>();
    CudaStream last;
    byte value;

    Block(Buffer buffer, CudaStream stream, byte value) {
      this.buffer = buffer;
      this.last = stream;
      this.value = value;
    }
  }

  private final long seed;
  private final SplittableRandom random;
  private final List<CudaStream> streams = new ArrayList<>();

  /** Few of them, in some programs one: then a block is soon used again. */
  private final List<Integer> sizes;

  /** Whether nothing is waited for before the end. */
  private final boolean busy;

  private final @Nullable Block[] blocks = new @Nullable Block[BLOCKS];
  private final List<CompletableFuture<Void>> callbacks = new ArrayList<>();
  private int called;

  RightProgram(long seed) {
    this.seed = seed;
    this.random = new SplittableRandom(seed);
    this.busy = random.nextInt(3) == 0;
    this.sizes = some(Arrays.stream(SIZES).boxed().toList());
  }

  /** At least one. */
  private <T> List<T> some(List<T> all) {
    List<T> some = new ArrayList<>(all);
    for (int left = 1 + random.nextInt(all.size()); some.size() > left; ) {
      some.remove(random.nextInt(some.size()));
    }
    return some;
  }

  void run() throws Exception {
    SimulatedOptions device = SimulatedOptions.parse("memory=8MiB,seed=" + seed);
    SimulatedDriver driver = SimulatedDriver.open(device);
    CudaOptions options =
        CudaOptions.DEFAULTS
            .withDriver(driver)
            .withMemoryLimit(MemoryLimit.none())
            .withDecorator(SanitizerDriver::throwing);
    try (Cuda cuda = Cuda.open(options)) {
      play(cuda);
    }
    if (!driver.report().isEmpty()) {
      throw new AssertionError("left behind: " + driver.report());
    }
  }

  private void play(Cuda cuda) throws Exception {
    CudaDevice device = cuda.device(0);
    for (int i = 1 + random.nextInt(STREAMS); i > 0; i--) {
      streams.add(device.createStream());
    }
    try (MemoryPool cached = new MemoryPool(cuda);
        AsyncMemoryPool ordered = new AsyncMemoryPool(cuda);
        PinnedBuffer host = cuda.allocatePinned(SIZES[SIZES.length - 1])) {
      List<MemoryResource> resources =
          some(
              List.of(
                  cached,
                  ordered,
                  MemoryResource.direct(),
                  MemoryResource.async(),
                  MemoryResource.managed()));
      for (int step = 0; step < STEPS; step++) {
        step(device, resources.get(random.nextInt(resources.size())), host);
      }
      for (int i = 0; i < BLOCKS; i++) {
        check(i, host);
        close(i);
      }
      for (CompletableFuture<Void> callback : callbacks) {
        callback.get(60, TimeUnit.SECONDS);
      }
      if (called != callbacks.size()) {
        throw new AssertionError(called + " callbacks ran (expected: " + callbacks.size() + ")");
      }
      streams.forEach(CudaStream::close);
      device.synchronize();
    }
  }

  private void step(CudaDevice device, MemoryResource resource, PinnedBuffer host) {
    int slot = random.nextInt(BLOCKS);
    CudaStream stream = streams.get(random.nextInt(streams.size()));
    switch (random.nextInt(busy ? 11 : 15)) {
      case 0, 1, 2 -> allocate(slot, resource, stream);
      case 3 -> fill(slot, stream);
      case 4, 5 -> copy(slot, random.nextInt(BLOCKS), stream);
      case 6, 7 -> close(slot);
      case 8 -> callback(stream);
      case 9 -> send(device.cuda(), slot, stream);
      case 10 -> renew(device, random.nextInt(streams.size()));
      case 11 -> check(slot, host);
      case 12 -> checkNative(slot);
      case 13 -> uploadHeap(slot);
      default -> upload(slot, host, stream);
    }
  }

  private void allocate(int slot, MemoryResource resource, CudaStream stream) {
    close(slot);
    int bytes = sizes.get(random.nextInt(sizes.size()));
    Buffer buffer = orNull(() -> resource.allocate(bytes, stream));
    if (buffer != null) {
      blocks[slot] = new Block(buffer, stream, value());
      buffer.fill(blocks[slot].value, stream);
    }
  }

  /** What there is memory for; null if there is none. */
  private static @Nullable Buffer orNull(Supplier<Buffer> allocation) {
    try {
      return allocation.get();
    } catch (CudaException e) {
      if (e.status() == CudaStatus.OUT_OF_MEMORY) {
        return null;
      }
      throw e;
    }
  }

  private byte value() {
    return (byte) random.nextInt();
  }

  /** Orders a stream that writes a block behind all that used it. */
  private void use(Block block, CudaStream stream) {
    follow(stream, block.last);
    block.readers.forEach(reader -> follow(stream, reader));
    block.readers.clear();
    block.last = stream;
  }

  /** Several streams may read at once. */
  private void read(Block block, CudaStream stream) {
    follow(stream, block.last);
    block.readers.add(stream);
  }

  /** Orders a stream behind another, by one of two ways. */
  private void follow(CudaStream stream, CudaStream other) {
    if (other != stream && random.nextBoolean()) {
      stream.waitFor(other);
    } else if (other != stream) {
      try (CudaEvent event = other.record()) {
        stream.waitFor(event);
      }
    }
  }

  private void fill(int slot, CudaStream stream) {
    Block block = blocks[slot];
    if (block != null) {
      use(block, stream);
      block.value = value();
      block.buffer.fill(block.value, stream);
    }
  }

  private void copy(int slot, int other, CudaStream stream) {
    Block to = blocks[slot];
    Block from = blocks[other];
    if (to == null || from == null || to == from) {
      return;
    }
    use(to, stream);
    read(from, stream);
    long bytes = Math.min(to.buffer.byteSize(), from.buffer.byteSize());
    to.buffer.fill(from.value, stream);
    to.buffer.slice(0, bytes).copyFrom(from.buffer.slice(0, bytes), stream);
    to.value = from.value;
  }

  /** Reads a block through page-locked memory. */
  private void check(int slot, PinnedBuffer host) {
    Block block = blocks[slot];
    if (block != null) {
      PinnedBuffer part = host.slice(0, block.buffer.byteSize());
      block.buffer.copyTo(part, block.last);
      block.last.synchronize();
      check(part.segment(), block);
    }
  }

  /** Reads a block into memory of an arena. */
  private void checkNative(int slot) {
    Block block = blocks[slot];
    if (block != null) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment target = arena.allocate(block.buffer.byteSize());
        block.buffer.copyTo(target, block.last);
        block.last.synchronize();
        check(target, block);
      }
    }
  }

  private void check(MemorySegment read, Block block) {
    for (byte got : read.toArray(ValueLayout.JAVA_BYTE)) {
      if (got != block.value) {
        throw new AssertionError("read %d (expected: %d)".formatted(got, block.value));
      }
    }
  }

  /** Writes a block from page-locked memory, which stays as it is until the copy is done. */
  private void upload(int slot, PinnedBuffer host, CudaStream stream) {
    Block block = blocks[slot];
    if (block != null) {
      use(block, stream);
      block.value = value();
      MemorySegment part = host.slice(0, block.buffer.byteSize()).segment();
      part.fill(block.value);
      block.buffer.copyFrom(part, stream);
      stream.synchronize();
    }
  }

  /** Writes a block from page-locked memory that nobody waits for: it is used again after that. */
  private void send(Cuda cuda, int slot, CudaStream stream) {
    Block block = blocks[slot];
    if (block != null) {
      use(block, stream);
      block.value = value();
      try (PinnedBuffer sent = cuda.allocatePinned(block.buffer.byteSize())) {
        sent.segment().fill(block.value);
        block.buffer.copyFrom(sent, stream);
      }
    }
  }

  /** Writes a block from the heap. */
  private void uploadHeap(int slot) {
    Block block = blocks[slot];
    if (block != null) {
      use(block, block.last);
      block.last.synchronize();
      block.value = value();
      byte[] bytes = new byte[(int) block.buffer.byteSize()];
      MemorySegment.ofArray(bytes).fill(block.value);
      block.buffer.copyFrom(MemorySegment.ofArray(bytes));
    }
  }

  /** Closes a stream, on which there may be work, and makes a new one. */
  private void renew(CudaDevice device, int number) {
    CudaStream old = streams.get(number);
    CudaStream next = device.createStream();
    next.waitFor(old);
    for (Block block : blocks) {
      if (block != null && block.last == old) {
        block.last = next;
      }
      if (block != null && block.readers.remove(old)) {
        block.readers.add(next);
      }
    }
    streams.set(number, next);
    old.close();
  }

  private void callback(CudaStream stream) {
    callbacks.add(
        stream.addCallback(() -> {
          synchronized (callbacks) {
            called++;
          }
        }));
  }

  private void close(int slot) {
    Block block = blocks[slot];
    blocks[slot] = null;
    if (block != null) {
      block.buffer.close();
    }
  }
}
