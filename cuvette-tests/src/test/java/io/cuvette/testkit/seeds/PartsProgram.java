package io.cuvette.testkit.seeds;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GrowableBuffer;
import io.cuvette.LaunchConfig;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.StreamOptions;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.seeds.PartedBlock.Part;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * A random program whose streams and host work on parts of the same blocks, and wait only for those
 * that used the same part: memory of every kind, fills, copies of ranges, rows and batches, kernels
 * that are given a whole block and touch a part, graphs, one or two devices. What it reads is
 * compared with a model; the sanitizer finds nothing, and nothing is left behind. It can forget one
 * wait: then it is wrong, unless something else happens to wait for the same. Confined to one
 * thread.
 */
final class PartsProgram {
  private static final int STEPS = 70;
  private static final int BLOCKS = 5;
  private static final int MOST_STREAMS = 5;
  private static final int[] PART_BYTES = {16, 256, 4096, 20_000};
  private static final LaunchConfig CONFIG = LaunchConfig.of(1, 4);

  /** A graph of such work. */
  private record Captured(CudaGraphExec exec, List<PartWork> work, CudaDevice device) {}

  private final long seed;
  private final int forgotten;
  private final SplittableRandom random;
  private final int partBytes;
  private final int devices;
  private final boolean peers;
  private final List<CudaStream> streams = new ArrayList<>();
  private final @Nullable PartedBlock[] blocks = new @Nullable PartedBlock[BLOCKS];
  private final List<Captured> graphs = new ArrayList<>();
  private int waits;

  /** A right program. */
  PartsProgram(long seed) {
    this(seed, -1);
  }

  /** One that leaves out the wait with this number, if it has as many. */
  PartsProgram(long seed, int forgotten) {
    this.seed = seed;
    this.forgotten = forgotten;
    this.random = new SplittableRandom(seed);
    this.partBytes = PART_BYTES[random.nextInt(PART_BYTES.length)];
    this.devices = random.nextInt(3) == 0 ? 2 : 1;
    this.peers = devices == 2 && random.nextBoolean();
  }

  /** How many waits there are. */
  int run() throws Exception {
    SimulatedDriver driver =
        SimulatedDriver.open(
            SimulatedOptions.parse("memory=64MiB,devices=%d,seed=%d".formatted(devices, seed)));
    CudaOptions options =
        CudaOptions.DEFAULTS
            .withDriver(driver)
            .withMemoryLimit(MemoryLimit.none())
            .withDecorator(SanitizerDriver::throwing);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(PartKernels.MOVE);
        SimulatedKernels.Registered _ = SimulatedKernels.register(PartKernels.SET);
        Arena arena = Arena.ofShared();
        Cuda cuda = Cuda.open(options)) {
      play(cuda, arena);
    }
    if (!driver.report().isEmpty()) {
      throw new AssertionError("left behind: " + driver.report());
    }
    return waits;
  }

  private void play(Cuda cuda, Arena arena) {
    for (int i = 0; i < Math.max(devices, 1 + random.nextInt(MOST_STREAMS)); i++) {
      CudaDevice device = cuda.device(i < devices ? i : random.nextInt(devices));
      StreamOptions options = StreamOptions.DEFAULTS.withNonBlocking(random.nextBoolean());
      streams.add(device.createStream(options));
    }
    if (peers) {
      cuda.device(0).enablePeerAccess(cuda.device(1));
      cuda.device(1).enablePeerAccess(cuda.device(0));
    }
    byte[] code = SimulatedKernels.ptx(List.of(PartKernels.MOVE, PartKernels.SET));
    try (MemoryPool cached = new MemoryPool(cuda);
        AsyncMemoryPool ordered = new AsyncMemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        CudaModule module = CudaModule.load(cuda, code)) {
      List<MemoryResource> resources =
          List.of(
              cached,
              ordered,
              elastic,
              MemoryResource.direct(),
              MemoryResource.async(),
              MemoryResource.managed());
      for (int i = 0; i < STEPS; i++) {
        step(cuda, arena, resources, module.kernel("setParts"), module.kernel("moveParts"));
      }
      end(cuda);
    }
  }

  private void end(Cuda cuda) {
    for (PartedBlock block : open()) {
      check(cuda, block);
    }
    graphs.forEach(graph -> graph.exec().close());
    for (int i = 0; i < BLOCKS; i++) {
      close(i);
    }
    streams.forEach(CudaStream::close);
    for (int i = 0; i < devices; i++) {
      cuda.device(i).synchronize();
    }
  }

  private List<PartedBlock> open() {
    return Arrays.stream(blocks).filter(block -> block != null).toList();
  }

  private void step(
      Cuda cuda, Arena arena, List<MemoryResource> resources, CudaKernel set, CudaKernel move) {
    int slot = random.nextInt(BLOCKS);
    int kind = random.nextInt(20);
    PartedBlock block = blocks[slot];
    if (block == null) {
      if (kind < 6) {
        allocate(cuda, slot, resources);
      }
      return;
    }
    switch (kind) {
      case 0 -> close(slot);
      case 1 -> check(cuda, block);
      case 2 -> touch(block);
      case 3 -> upload(arena, block);
      case 4 -> renew();
      case 5, 6 -> capture(set, move);
      case 7 -> launchAgain();
      default -> {
        PartWork work = work(block, set, move);
        if (work != null) {
          CudaStream stream = stream(block.device());
          order(work, stream);
          work.queue().accept(stream);
          work.effect().run();
        }
      }
    }
  }

  private CudaStream stream(CudaDevice device) {
    List<CudaStream> fitting =
        streams.stream().filter(each -> each.device().equals(device)).toList();
    return fitting.get(random.nextInt(fitting.size()));
  }

  private byte value() {
    return (byte) random.nextInt();
  }

  private void allocate(Cuda cuda, int slot, List<MemoryResource> resources) {
    CudaDevice device = cuda.device(random.nextInt(devices));
    long bytes = (long) PartedBlock.PARTS * partBytes;
    int kind = random.nextInt(resources.size() + 2);
    Buffer buffer;
    if (kind == resources.size()) {
      GrowableBuffer growable = device.growable(16 << 20);
      growable.grow(bytes);
      buffer = growable;
    } else if (kind > resources.size()) {
      buffer = cuda.allocatePinned(bytes);
    } else {
      buffer = resources.get(kind).allocate(bytes, stream(device));
    }
    CudaStream stream = stream(buffer.device());
    if (kind < resources.size()) {
      wait(stream, buffer.stream()); // its memory is there from then on
    }
    byte value = value();
    buffer.fill(value, stream);
    blocks[slot] = new PartedBlock(buffer, partBytes, stream, value);
  }

  private void close(int slot) {
    PartedBlock block = blocks[slot];
    blocks[slot] = null;
    if (block != null) {
      block.buffer.close();
    }
  }

  /** PartWork on a part of a block, which may need another block; null if that does not suit. */
  private @Nullable PartWork work(PartedBlock to, CudaKernel set, CudaKernel move) {
    int at = random.nextInt(PartedBlock.PARTS);
    int count = 1 + random.nextInt(PartedBlock.PARTS - at);
    byte value = value();
    List<Part> written = to.parts(at, count);
    Runnable change = () -> written.forEach(part -> part.value = value);
    boolean whole = random.nextBoolean();
    int offset = whole ? at * partBytes : 0;
    int bytes = count * partBytes;
    int kind = random.nextInt(10);
    return switch (kind) {
      case 0, 1 ->
          new PartWork(
              Set.of(to),
              List.of(),
              written,
              stream -> to.slice(at, count).fill(value, stream),
              change);
      case 2 ->
          new PartWork(
              Set.of(to),
              List.of(),
              written,
              stream ->
                  stream.launch(
                      set,
                      CONFIG,
                      whole ? to.buffer : to.slice(at, count),
                      offset,
                      bytes,
                      (int) value),
              change);
      default -> copy(to, at, count, kind, move);
    };
  }

  private @Nullable PartWork copy(PartedBlock to, int at, int count, int kind, CudaKernel move) {
    PartedBlock from = blocks[random.nextInt(BLOCKS)];
    int first = random.nextInt(PartedBlock.PARTS - count + 1);
    if (from == null || (from == to && first < at + count && at < first + count)) {
      return null;
    }
    List<Part> read = from.parts(first, count);
    List<Part> written = to.parts(at, count);
    int bytes = count * partBytes;
    boolean near = from.device().equals(to.device());
    return switch (kind) {
      case 3, 4 ->
          PartWork.copying(
              from,
              read,
              to,
              written,
              stream -> to.slice(at, count).copyFrom(from.slice(first, count), stream));
      case 5, 6 ->
          !near && !(peers && from.isOfHost())
              ? null
              : PartWork.copying(
                  from,
                  read,
                  to,
                  written,
                  stream ->
                      stream.launch(
                          move,
                          CONFIG,
                          from.buffer,
                          to.slice(at, count),
                          first * partBytes,
                          bytes));
      case 7, 8 -> rows(to, from);
      default -> from == to ? null : batch(to, from);
    };
  }

  private @Nullable PartWork rows(PartedBlock to, PartedBlock from) {
    int rows = 1 + random.nextInt(PartedBlock.PARTS / 2);
    int first = random.nextInt(2);
    int at = random.nextInt(2);
    CopyBox box =
        CopyBox.of(partBytes, rows)
            .withSource((long) first * partBytes, 2L * partBytes)
            .withTarget((long) at * partBytes, 2L * partBytes);
    return from == to && first == at
        ? null
        : PartWork.copying(
            from,
            from.rows(first, rows),
            to,
            to.rows(at, rows),
            stream -> to.buffer.copyFrom(from.buffer, box, stream));
  }

  private PartWork batch(PartedBlock to, PartedBlock from) {
    int low = 1 + random.nextInt(PartedBlock.PARTS / 2);
    int high = 1 + random.nextInt(PartedBlock.PARTS / 2);
    int half = PartedBlock.PARTS / 2;
    List<Part> read = new ArrayList<>(from.parts(0, low));
    List<Part> written = new ArrayList<>(to.parts(half, low));
    read.addAll(from.parts(half, high));
    written.addAll(to.parts(0, high));
    return PartWork.copying(
        from,
        read,
        to,
        written,
        stream ->
            CopyBatch.of(
                    List.of(to.slice(half, low), to.slice(0, high)),
                    List.of(from.slice(0, low), from.slice(half, high)))
                .copy(stream));
  }

  /** Lets a stream wait for those that used the same parts. */
  private void order(PartWork work, CudaStream stream) {
    Set<CudaStream> before = new LinkedHashSet<>();
    for (Part part : work.writes()) {
      before.add(part.writer);
      before.addAll(part.readers);
    }
    work.reads().forEach(part -> before.add(part.writer));
    before.forEach(each -> wait(stream, each));
    work.reads().forEach(part -> part.readers.add(stream));
    for (Part part : work.writes()) {
      part.writer = stream;
      part.readers.clear();
    }
  }

  /** Lets a stream wait for another, by one of two ways. */
  private void wait(CudaStream stream, CudaStream other) {
    if (other.equals(stream) || waits++ == forgotten) {
      return;
    }
    if (random.nextBoolean()) {
      stream.waitFor(other);
    } else {
      try (CudaEvent event = other.record()) {
        stream.waitFor(event);
      }
    }
  }

  private void capture(CudaKernel set, CudaKernel move) {
    CudaDevice device = streams.getFirst().device();
    List<PartWork> all = new ArrayList<>();
    for (PartedBlock block : open()) {
      PartWork work = work(block, set, move);
      if (work != null && work.blocks().stream().allMatch(one -> one.device().equals(device))) {
        all.add(work);
      }
    }
    if (!all.isEmpty()) {
      CudaStream stream = stream(device);
      try (CudaGraph graph =
          stream.capture(() -> all.forEach(work -> work.queue().accept(stream)))) {
        graphs.add(new Captured(graph.instantiate(), all, device));
      }
      launch(graphs.getLast());
    }
  }

  private void launchAgain() {
    Collection<PartedBlock> open = open();
    List<Captured> whole =
        graphs.stream()
            .filter(
                graph -> graph.work().stream().allMatch(work -> open.containsAll(work.blocks())))
            .toList();
    if (!whole.isEmpty()) {
      launch(whole.get(random.nextInt(whole.size())));
    }
  }

  private void launch(Captured graph) {
    CudaStream stream = stream(graph.device());
    graph.work().forEach(work -> order(work, stream));
    graph.exec().launch(stream);
    graph.work().forEach(work -> work.effect().run());
  }

  /** Reads a part through page-locked memory. */
  private void check(Cuda cuda, PartedBlock block) {
    int at = random.nextInt(PartedBlock.PARTS);
    int count = 1 + random.nextInt(PartedBlock.PARTS - at);
    CudaStream stream = stream(block.device());
    order(new PartWork(Set.of(), block.parts(at, count), List.of(), _ -> {}, () -> {}), stream);
    try (PinnedBuffer read = cuda.allocatePinned((long) count * partBytes)) {
      block.slice(at, count).copyTo(read, stream);
      stream.synchronize();
      check(read.segment(), block.parts(at, count));
    }
  }

  private void check(MemorySegment read, List<Part> parts) {
    byte[] bytes = read.toArray(ValueLayout.JAVA_BYTE);
    for (int i = 0; i < bytes.length; i++) {
      byte expected = parts.get(i / partBytes).value;
      if (bytes[i] != expected) {
        throw new AssertionError("read %d (expected: %d)".formatted(bytes[i], expected));
      }
    }
  }

  /** The host reads or writes a part of memory that it sees, while others work on other parts. */
  private void touch(PartedBlock block) {
    if (!block.isOfHost()) {
      return;
    }
    int at = random.nextInt(PartedBlock.PARTS);
    int count = 1 + random.nextInt(PartedBlock.PARTS - at);
    boolean writes = random.nextBoolean();
    for (Part part : block.parts(at, count)) {
      part.writer.synchronize();
      if (writes) {
        part.readers.forEach(CudaStream::synchronize);
      }
    }
    MemorySegment segment =
        switch (block.slice(at, count)) {
          case PinnedBuffer pinned -> pinned.segment();
          case ManagedBuffer managed -> managed.segment();
          case Buffer other -> throw new AssertionError(other);
        };
    if (writes) {
      byte value = value();
      segment.fill(value);
      block.parts(at, count).forEach(part -> part.value = value);
    } else {
      check(segment, block.parts(at, count));
    }
  }

  /** Writes a part from pageable memory, which stays. */
  private void upload(Arena arena, PartedBlock block) {
    int at = random.nextInt(PartedBlock.PARTS);
    int count = 1 + random.nextInt(PartedBlock.PARTS - at);
    byte value = value();
    CudaStream stream = stream(block.device());
    order(new PartWork(Set.of(), List.of(), block.parts(at, count), _ -> {}, () -> {}), stream);
    MemorySegment bytes = arena.allocate((long) count * partBytes).fill(value);
    block.slice(at, count).copyFrom(bytes, stream);
    block.parts(at, count).forEach(part -> part.value = value);
  }

  /** Closes a stream, on which there may be work, and makes a new one. */
  private void renew() {
    int number = random.nextInt(streams.size());
    CudaStream old = streams.get(number);
    CudaStream next = old.device().createStream();
    next.waitFor(old);
    for (PartedBlock block : open()) {
      for (Part part : block.parts()) {
        part.writer = part.writer.equals(old) ? next : part.writer;
        if (part.readers.remove(old)) {
          part.readers.add(next);
        }
      }
    }
    streams.set(number, next);
    old.close();
  }
}
