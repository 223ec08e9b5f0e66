package io.cuvette.testkit.seeds;

import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.EventOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.StreamOptions;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * A random program of two or three processes that work on the same memory: pools, plain memory and
 * host memory are exported, imported, dropped and imported again. Each use waits for those before
 * it, by events of either process, or because a process tells that it is done. What is read is
 * compared with a model; the sanitizers find nothing, and nothing is left behind. Confined to one
 * thread.
 */
final class SharingProgram {
  private static final int STEPS = 70;
  private static final int MOST_TILES = 6;

  /** A process. */
  private static final class Process {
    final int number;
    final SimulatedDriver driver;
    final Cuda cuda;
    final CudaDevice device;
    final List<CudaStream> streams = new ArrayList<>();
    final List<CudaEvent> events = new ArrayList<>();
    final DeviceMemoryResource pool;
    final PinnedMemoryResource pinned;
    final Map<Process, DeviceMemoryResource> pools = new HashMap<>();
    final Map<Process, PinnedMemoryResource> pinnedPools = new HashMap<>();

    Process(int number, long seed) {
      this.number = number;
      this.driver = SimulatedDriver.open(SimulatedOptions.parse("memory=256MiB,seed=" + seed));
      this.cuda =
          Cuda.open(
              CudaOptions.DEFAULTS.withDriver(driver).withDecorator(SanitizerDriver::throwing));
      this.device = cuda.device(0);
      streams.add(device.createStream());
      streams.add(device.createStream(StreamOptions.NON_BLOCKING));
      streams.add(device.nullStream());
      this.pool =
          new DeviceMemoryResource(
              device, DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
      this.pinned =
          new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
    }

    void close() {
      device.synchronize();
      events.forEach(CudaEvent::close);
      pools.values().forEach(DeviceMemoryResource::close);
      pinnedPools.values().forEach(PinnedMemoryResource::close);
      pool.close();
      pinned.close();
      streams.get(0).close();
      streams.get(1).close();
      if (!cuda.openObjects().isEmpty()) {
        throw new AssertionError("open: " + cuda.openObjects());
      }
      cuda.close();
    }
  }

  /** Work of a stream, and what was recorded behind it. */
  private record Use(Process process, CudaStream stream, CudaEvent event) {}

  /** Memory of one process and its views in others; what it has, and who used it last. */
  private static final class Tile {
    final Process owner;
    final int[] words;
    final Map<Process, Buffer> views = new HashMap<>();
    final List<Use> readers = new ArrayList<>();
    @Nullable Use writer;

    Tile(Process owner, Buffer buffer) {
      this.owner = owner;
      this.words = new int[(int) (buffer.byteSize() / Integer.BYTES)];
      views.put(owner, buffer);
    }

    Buffer in(Process process) {
      Buffer view = views.get(process);
      if (view == null) {
        throw new IllegalStateException("no view");
      }
      return view;
    }
  }

  private final SplittableRandom random;
  private final List<Process> processes = new ArrayList<>();
  private final List<Tile> tiles = new ArrayList<>();

  SharingProgram(long seed) {
    random = new SplittableRandom(seed);
    for (int i = 2 + random.nextInt(2); i > 0; i--) {
      processes.add(new Process(processes.size(), 3 * seed + i));
    }
  }

  void run() {
    try {
      for (int i = 0; i < STEPS; i++) {
        step();
      }
      while (!tiles.isEmpty()) {
        verify(tiles.getFirst(), one(tiles.getFirst()));
        retire(tiles.getFirst());
      }
      processes.forEach(each -> each.device.synchronize());
      processes.forEach(Process::close);
    } finally {
      processes.forEach(each -> each.cuda.close());
    }
    for (Process each : processes) {
      if (!each.driver.report().isEmpty()) {
        throw new AssertionError("left behind: " + each.driver.report());
      }
    }
  }

  private <T> T one(List<T> of) {
    return of.get(random.nextInt(of.size()));
  }

  /** A process that has a view. */
  private Process one(Tile tile) {
    return one(processes.stream().filter(tile.views::containsKey).toList());
  }

  private void step() {
    if (tiles.size() < 2 || (tiles.size() < MOST_TILES && random.nextInt(5) == 0)) {
      make(one(processes));
      return;
    }
    Tile tile = one(tiles);
    Process process = one(tile);
    switch (random.nextInt(12)) {
      case 0, 1, 2 -> share(tile, one(processes));
      case 3, 4 ->
          copy(
              process,
              tile,
              one(tiles.stream().filter(t -> t.views.containsKey(process)).toList()));
      case 5, 6 -> fill(process, tile);
      case 7, 8 -> verify(tile, process);
      case 9 -> write(tile, process);
      case 10 -> drop(tile, process);
      default -> retire(tile);
    }
  }

  private void make(Process process) {
    long bytes = Integer.BYTES * (random.nextInt(3) == 0 ? 20_000L : 16 + random.nextInt(400));
    CudaStream stream = one(process.streams);
    Buffer buffer =
        switch (random.nextInt(3)) {
          case 0 -> process.pool.allocate(bytes, stream);
          case 1 -> process.pinned.allocate(bytes, stream);
          default -> MemoryResource.direct().allocate(bytes, stream);
        };
    Tile tile = new Tile(process, buffer);
    tiles.add(tile);
    used(process, List.of(), tile, stream);
    fill(process, tile);
  }

  private void share(Tile tile, Process to) {
    if (tile.views.containsKey(to)) {
      return;
    }
    Process from = tile.owner;
    Buffer ours = tile.in(from);
    quiet(tile, false); // the allocation is done
    BufferDescriptor descriptor = BufferDescriptor.fromBytes(ours.descriptor().toBytes());
    CudaStream home = one(to.streams);
    Buffer theirs;
    if (ours instanceof PinnedBuffer) {
      theirs =
          to.pinnedPools
              .computeIfAbsent(
                  from,
                  _ ->
                      PinnedMemoryResource.fromAllocationHandle(
                          to.cuda, from.pinned.allocationHandle()))
              .importBuffer(descriptor, home);
    } else if (descriptor.kind() == BufferDescriptor.Kind.PLAIN) {
      theirs = to.device.importBuffer(descriptor, home);
    } else {
      theirs =
          to.pools
              .computeIfAbsent(
                  from,
                  _ ->
                      DeviceMemoryResource.fromAllocationHandle(
                          to.device, from.pool.allocationHandle()))
              .importBuffer(descriptor, home);
    }
    tile.views.put(to, theirs);
  }

  private void follow(Process process, CudaStream stream, @Nullable Use use) {
    if (use == null || use.stream == stream) {
      return;
    }
    if (use.process == process) {
      stream.waitFor(use.event);
    } else if (random.nextInt(5) == 0) {
      use.stream.synchronize(); // and the process tells so
    } else {
      CudaEvent event = process.device.importEvent(use.event.descriptor());
      process.events.add(event);
      if (random.nextInt(4) == 0) {
        event.synchronize();
      } else {
        stream.waitFor(event);
      }
    }
  }

  private CudaStream begin(Process process, List<Tile> read, Tile written) {
    CudaStream stream = one(process.streams);
    read.forEach(tile -> follow(process, stream, tile.writer));
    follow(process, stream, written.writer);
    written.readers.forEach(use -> follow(process, stream, use));
    return stream;
  }

  private static void used(Process process, List<Tile> read, Tile written, CudaStream stream) {
    CudaEvent event = process.device.createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
    process.events.add(event);
    event.record(stream);
    Use use = new Use(process, stream, event);
    read.forEach(tile -> tile.readers.add(use));
    written.writer = use;
    written.readers.clear();
  }

  /** Waits for the host: in the process of each use, which tells the others. */
  private static void quiet(Tile tile, boolean forWrite) {
    if (tile.writer != null) {
      tile.writer.stream.synchronize();
    }
    if (forWrite) {
      tile.readers.forEach(use -> use.stream.synchronize());
    }
  }

  private void copy(Process process, Tile to, Tile from) {
    int count = 1 + random.nextInt(Math.min(to.words.length, from.words.length));
    int at = random.nextInt(to.words.length - count + 1);
    int first = random.nextInt(from.words.length - count + 1);
    if (to == from) {
      return;
    }
    CudaStream stream = begin(process, List.of(from), to);
    to.in(process)
        .slice(4L * at, 4L * count)
        .copyFrom(from.in(process).slice(4L * first, 4L * count), stream);
    System.arraycopy(from.words, first, to.words, at, count);
    used(process, List.of(from), to, stream);
  }

  private void fill(Process process, Tile tile) {
    int value = random.nextInt();
    CudaStream stream = begin(process, List.of(), tile);
    tile.in(process).fillInts(value, stream);
    Arrays.fill(tile.words, value);
    used(process, List.of(), tile, stream);
  }

  private static void verify(Tile tile, Process process) {
    quiet(tile, false);
    int[] got = new int[tile.words.length];
    tile.in(process).copyTo(MemorySegment.ofArray(got));
    int wrong = Arrays.mismatch(got, tile.words);
    if (wrong >= 0) {
      throw new AssertionError(
          "process %d of %d: word %d is %d (expected: %d)"
              .formatted(process.number, tile.owner.number, wrong, got[wrong], tile.words[wrong]));
    }
  }

  private void write(Tile tile, Process process) {
    quiet(tile, true);
    Arrays.setAll(tile.words, _ -> random.nextInt());
    if (tile.in(process) instanceof PinnedBuffer host && random.nextBoolean()) {
      MemorySegment.copy(tile.words, 0, host.segment(), ValueLayout.JAVA_INT, 0, tile.words.length);
    } else {
      tile.in(process).copyFrom(MemorySegment.ofArray(tile.words));
    }
  }

  /** An importer closes its view, behind its work. */
  private static void drop(Tile tile, Process process) {
    if (process != tile.owner) {
      tile.in(process).close();
      tile.views.remove(process);
    }
  }

  /** The importers end first. */
  private void retire(Tile tile) {
    for (Process each : processes) {
      if (tile.views.containsKey(each)) {
        drop(tile, each);
      }
    }
    processes.stream()
        .filter(each -> each != tile.owner)
        .forEach(each -> each.device.synchronize());
    quiet(tile, true);
    tile.in(tile.owner).close();
    tiles.remove(tile);
  }
}
