package io.cuvette.testkit.shortage;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
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
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Runs a {@link BrimProgram} on one device, step by step. Confined to one thread. */
final class BrimSide implements AutoCloseable {
  private static final long GIB = 1L << 30;
  private static final long GRAIN = 2L << 20;

  /** What an H200 lets nobody have at the end is 3.1 MiB at one time and 7.1 at another. */
  private static final long LEAST_MARGIN = 3 * GRAIN;

  private static final int HEAD = 1 << 16;

  /** Where a block comes from. */
  enum Source {
    PLAIN,
    POOL,
    ASYNC
  }

  /** A block, the stream of its last use, and what its first bytes are. */
  private static final class Block {
    final Buffer buffer;
    CudaStream last;
    int head;
    byte value;

    Block(Buffer buffer, CudaStream stream) {
      this.buffer = buffer;
      this.last = stream;
    }
  }

  final String device;
  private final Cuda cuda;
  private final CudaDevice gpu;
  private final BrimProgram program;
  private final MemoryPool cached;
  private final AsyncMemoryPool ordered;
  private final MemoryResource[] resources;
  private final List<Buffer> ballast = new ArrayList<>();
  private final @Nullable Block[] blocks;
  private final List<CudaStream> streams = new ArrayList<>();
  private final PinnedBuffer host;
  private final long freeAtFirst;
  private @Nullable Buffer margin;

  /** The last block that was allocated, and where; for {@link #undo}. */
  private int lastSlot;

  BrimSide(String device, BrimProgram program, UnaryOperator<CudaOptions> options) {
    this.device = device;
    this.program = program;
    cuda =
        Cuda.open(
            options.apply(
                CudaOptions.DEFAULTS.withDevice(device).withMemoryLimit(MemoryLimit.none())));
    gpu = cuda.device(0);
    freeAtFirst = free();
    blocks = new @Nullable Block[program.slots()];
    cached = new MemoryPool(cuda);
    ordered = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0));
    resources = new MemoryResource[] {MemoryResource.direct(), cached, ordered};
    host = cuda.allocatePinned(HEAD);
    for (int i = 0; i < 4; i++) {
      streams.add(gpu.createStream());
    }
    warmUp();
    takeBallast();
  }

  /** What a driver takes at its first work of each kind. */
  private void warmUp() {
    try (Buffer buffer = resources[0].allocate(GRAIN, streams.getFirst())) {
      buffer.fill((byte) 0);
      buffer.slice(0, HEAD).copyTo(host);
      buffer.slice(0, HEAD).copyFrom(buffer.slice(HEAD, HEAD));
    }
    gpu.synchronize();
  }

  private void takeBallast() {
    long marginBytes = marginBytes();
    margin = plain(marginBytes);
    for (long left = left(); left > 0; left = left()) {
      ballast.add(plain(left > 2 * GIB ? GIB : Math.max(GRAIN, left / 2 / GRAIN * GRAIN)));
    }
  }

  private Buffer plain(long bytes) {
    return resources[0].allocate(bytes, streams.getFirst());
  }

  private long left() {
    return (free() - program.restBytes()) / GRAIN * GRAIN;
  }

  long marginBytes() {
    return Math.max(LEAST_MARGIN, (program.restBytes() / 100 + GRAIN - 1) / GRAIN * GRAIN);
  }

  /** What the driver says is free. */
  long free() {
    return gpu.memoryInfo().freeBytes();
  }

  /** What was free in a new context. */
  long freeAtFirst() {
    return freeAtFirst;
  }

  long total() {
    return gpu.memoryInfo().totalBytes();
  }

  /** Does a step, and says what came of it. */
  String run(BrimStep step) {
    return switch (step.action()) {
      case ALLOCATE -> allocate(step);
      case FREE -> free(step.slot());
      case FILL -> fill(step);
      case COPY -> copy(step);
      case READ -> read(step.slot());
      case STREAM -> renew(step.slot());
      case EVENT -> order(step);
      case SYNCHRONIZE -> {
        gpu.synchronize();
        yield "done";
      }
    };
  }

  Source source(BrimStep step) {
    int[] used =
        IntStream.range(0, resources.length).filter(i -> (program.kinds() & 1 << i) != 0).toArray();
    return Source.values()[used[step.other() % used.length]];
  }

  private String allocate(BrimStep step) {
    free(step.slot());
    CudaStream stream = stream(step.slot());
    lastSlot = step.slot();
    if (program.kinds() > 1) {
      // What a pool has depends on what is done at this moment, which is not the same twice.
      gpu.synchronize();
    }
    try {
      Buffer buffer = resources[source(step).ordinal()].allocate(step.bytes(), stream);
      blocks[step.slot()] = new Block(buffer, stream);
      return "allocated";
    } catch (CudaException e) {
      if (e.status() == CudaStatus.OUT_OF_MEMORY) {
        return "out of memory";
      }
      throw e;
    }
  }

  /** Takes the last allocation back. */
  void undo() {
    free(lastSlot);
  }

  /** Whether an allocation works with 1 % of the memory more; it is not kept. */
  boolean isNearly(BrimStep step) {
    Buffer taken = margin;
    if (taken != null) {
      taken.close();
    }
    boolean nearly = allocate(step).equals("allocated");
    undo();
    trim();
    margin = takeMargin();
    return nearly;
  }

  /** Gives back what the pools keep. */
  void trim() {
    gpu.synchronize();
    cached.freeAllBlocks();
    ordered.freeAllBlocks();
  }

  /** The margin, or as much of it as there still is. */
  private @Nullable Buffer takeMargin() {
    for (long bytes = marginBytes(); bytes >= GRAIN; bytes -= GRAIN) {
      try {
        return plain(bytes);
      } catch (CudaException e) {
        if (e.status() != CudaStatus.OUT_OF_MEMORY) {
          throw e;
        }
      }
    }
    return null;
  }

  private String free(int slot) {
    Block block = blocks[slot];
    blocks[slot] = null;
    if (block == null) {
      return "empty";
    }
    block.buffer.close();
    return "freed";
  }

  private CudaStream stream(int number) {
    return streams.get(number % streams.size());
  }

  private static void use(Block block, CudaStream stream) {
    if (block.last != stream) {
      stream.waitFor(block.last);
      block.last = stream;
    }
  }

  private String fill(BrimStep step) {
    Block block = blocks[step.slot()];
    if (block == null) {
      return "empty";
    }
    CudaStream stream = stream(step.other());
    use(block, stream);
    block.value = (byte) step.bytes();
    block.head = (int) Math.min(HEAD, block.buffer.byteSize());
    block.buffer.fill(block.value, stream);
    return "filled";
  }

  private String copy(BrimStep step) {
    Block to = blocks[step.slot()];
    Block from = blocks[step.other()];
    if (to == null || from == null || to == from || from.head == 0) {
      return "empty";
    }
    CudaStream stream = stream(step.slot() + step.other());
    use(to, stream);
    use(from, stream);
    int bytes = (int) Math.min(from.head, to.buffer.byteSize());
    to.buffer.slice(0, bytes).copyFrom(from.buffer.slice(0, bytes), stream);
    to.head = bytes;
    to.value = from.value;
    return "copied";
  }

  private String read(int slot) {
    Block block = blocks[slot];
    if (block == null || block.head == 0) {
      return "empty";
    }
    block.buffer.slice(0, block.head).copyTo(host.slice(0, block.head), block.last);
    block.last.synchronize();
    byte[] read = host.segment().asSlice(0, block.head).toArray(ValueLayout.JAVA_BYTE);
    byte[] expected = new byte[block.head];
    Arrays.fill(expected, block.value);
    int wrong = Arrays.mismatch(read, expected);
    return wrong < 0
        ? "read " + block.value
        : "read %d at %d (expected: %d)".formatted(read[wrong], wrong, block.value);
  }

  /** Closes a stream, on which there may be work, and makes a new one. */
  private String renew(int number) {
    int index = number % streams.size();
    CudaStream old = streams.get(index);
    CudaStream next;
    try {
      next = gpu.createStream();
    } catch (CudaException e) {
      if (e.status() == CudaStatus.OUT_OF_MEMORY) {
        return "no room for a stream";
      }
      throw e;
    }
    next.waitFor(old);
    for (Block block : blocks) {
      if (block != null && block.last == old) {
        block.last = next;
      }
    }
    streams.set(index, next);
    old.close();
    return "closed";
  }

  private String order(BrimStep step) {
    try (CudaEvent event = stream(step.slot()).record()) {
      stream(step.other()).waitFor(event);
      return event.isRecorded() ? "recorded" : "lost";
    }
  }

  @Override
  public void close() {
    cuda.close();
  }
}
