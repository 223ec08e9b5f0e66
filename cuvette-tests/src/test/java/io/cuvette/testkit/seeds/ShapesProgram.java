package io.cuvette.testkit.seeds;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GrowableBuffer;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamHandle;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.seeds.CellBlock.Use;
import io.cuvette.testkit.seeds.ShapeBlock.Cell;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * A random program that cuts memory of every kind into rows and columns: boxes, batches, gathered
 * and scattered rows, kernels on page-locked and registered memory, graphs of these, and a host
 * that works between them: in callbacks, beside streams that use other cells of the same rows, and
 * for streams that wait at a word. What it reads is compared with a model; the sanitizer finds
 * nothing, and nothing is left behind.
 */
final class ShapesProgram {
  private static final int STEPS = 60;
  private static final int MOST_BLOCKS = 6;
  private static final int[] CELL_BYTES = {4, 16, 16, 64, 1024, 3000};
  private static final List<String> SETTINGS =
      List.of("queues=0", "queues=0,devices=2", "queues=0,devices=2,peers=none", "queues=8");

  /** A stream, and what the model knows of it. */
  private record Line(CudaStream stream, ProgramStream model) {
    int device() {
      return stream.device().id();
    }
  }

  /** A graph of such work. */
  private record Captured(CudaGraphExec exec, List<ShapeWork> works, int device) {}

  private final long seed;
  private final String settings;
  private final SplittableRandom random;
  private final long cellBytes;
  private final ProgramOrder order = new ProgramOrder(StreamHandle.NULL);
  private final Map<ProgramStream, Line> lines = new LinkedHashMap<>();
  private final List<ShapeBlock> blocks = new ArrayList<>();
  private final List<Captured> graphs = new ArrayList<>();

  ShapesProgram(long seed) {
    this.seed = seed;
    random = new SplittableRandom(seed);
    settings = SETTINGS.get(random.nextInt(SETTINGS.size()));
    cellBytes = CELL_BYTES[random.nextInt(CELL_BYTES.length)];
  }

  void run() throws Exception {
    SimulatedDriver device =
        SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB,seed=" + seed + "," + settings));
    CudaOptions options =
        CudaOptions.DEFAULTS
            .withDriver(device)
            .withMemoryLimit(MemoryLimit.none())
            .withDecorator(SanitizerDriver::throwing);
    try (Cuda cuda = Cuda.open(options)) {
      Playing playing = new Playing(cuda);
      try {
        playing.play();
      } catch (Exception | AssertionError e) {
        for (CompletableFuture<Void> callback : playing.works.callbacks()) {
          if (callback.isCompletedExceptionally()) {
            e.addSuppressed(callback.exceptionNow());
          }
        }
        throw e;
      }
    }
    if (!device.report().isEmpty()) {
      throw new AssertionError("left behind: " + device.report());
    }
  }

  /** The program itself. */
  private final class Playing {
    private final Cuda cuda;
    private final CudaDriver driver;
    private final ShapeWorks works;
    private final MemoryPool pool;
    private final ElasticMemoryPool elastic;
    private final AsyncMemoryPool ordered;
    private final PinnedMemoryResource pinned;

    /** Words that streams wait at, each once. */
    private final PinnedBuffer words;

    private int nextWord;

    Playing(Cuda cuda) {
      this.cuda = cuda;
      driver = cuda.driver();
      works = new ShapeWorks(cuda, random, settings.contains("queues=0"));
      pool = new MemoryPool(cuda);
      elastic = new ElasticMemoryPool(cuda);
      ordered = new AsyncMemoryPool(cuda);
      pinned = new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS);
      words = cuda.allocatePinned((long) STEPS * Integer.BYTES);
      words.segment().fill((byte) 0);
      add(new Line(cuda.device(0).nullStream(), order.legacy));
    }

    void play() throws Exception {
      for (int i = 2 + random.nextInt(3) * cuda.deviceCount(); i >= 0; i--) {
        openStream(i % cuda.deviceCount());
      }
      for (int i = 0; i < MOST_BLOCKS / 2; i++) {
        allocate();
      }
      for (int i = 0; i < STEPS; i++) {
        step();
      }
      for (ShapeBlock block : blocks) {
        for (Cell cell : block.all()) {
          check(cell);
        }
      }
      for (CompletableFuture<Void> callback : works.callbacks()) {
        var _ = callback.get(60, TimeUnit.SECONDS);
      }
      graphs.forEach(graph -> graph.exec.close());
      while (!blocks.isEmpty()) {
        blocks.removeLast().close();
      }
      words.close();
      pool.close();
      elastic.close();
      ordered.close();
      pinned.close();
      works.close();
      lines.values().forEach(line -> line.stream.close());
      cuda.devices().forEach(CudaDevice::synchronize);
    }

    private void step() throws Exception {
      switch (random.nextInt(20)) {
        case 0 -> {
          if (blocks.size() < MOST_BLOCKS) {
            allocate();
          }
        }
        case 1 -> {
          if (blocks.size() > 2) {
            blocks.remove(random.nextInt(blocks.size())).close();
          }
        }
        case 2, 3 -> check(works.anyCell(anyBlock()));
        case 4, 5 -> write(works.anyCell(anyBlock()));
        case 6 -> trim();
        case 7 -> capture();
        case 8, 9 -> launch();
        case 10 -> behindWord();
        case 11 -> replaceStream();
        default -> {
          ShapeWork work = works.any(blocks);
          if (work != null) {
            perform(work);
          }
        }
      }
    }

    private void add(Line line) {
      lines.put(line.model, line);
    }

    private void openStream(int device) {
      boolean isBlocking = device == 0 && random.nextBoolean();
      CudaStream stream =
          cuda.device(device).createStream(StreamOptions.DEFAULTS.withNonBlocking(!isBlocking));
      ProgramStream model = new ProgramStream(stream.handle(), isBlocking, -1);
      order.streams.add(model);
      add(new Line(stream, model));
    }

    private void replaceStream() {
      Line old = anyLine(-1);
      if (!old.model.isLegacy()) {
        openStream(old.device());
        lines.remove(old.model);
        blocks.forEach(block -> block.all().forEach(cell -> handOver(cell, old)));
        for (Captured graph : graphs) {
          graph.works.forEach(work -> work.uses.keySet().forEach(cell -> handOver(cell, old)));
        }
        order.closed(old.model);
        old.stream.close();
      }
    }

    /** What was used in a stream that is closed can be waited for by another one alone. */
    private void handOver(Cell cell, Line old) {
      for (Use use : new Use[] {Use.READ, Use.WRITE}) {
        Integer number = cell.before(use).get(old.model);
        if (number != null && !order.isDone(old.model, number)) {
          old.stream.synchronize();
          order.done(order.awaited(old.model));
          return;
        }
      }
    }

    private ShapeBlock anyBlock() {
      return blocks.get(random.nextInt(blocks.size()));
    }

    private Line anyLine(int device) {
      List<Line> all =
          lines.values().stream().filter(line -> device < 0 || line.device() == device).toList();
      return all.get(random.nextInt(all.size()));
    }

    private void allocate() throws Exception {
      Line line = anyLine(-1);
      int device = line.device();
      long bytes = ShapeBlock.bytes(cellBytes);
      ShapeBlock block =
          switch (random.nextInt(9)) {
            case 0 -> onDevice(pool.allocate(bytes, line.stream), device);
            case 1 -> onDevice(elastic.allocate(bytes, line.stream), device);
            case 2 -> onDevice(ordered.allocate(bytes, line.stream), device);
            case 3, 4 -> onHost(cuda.allocatePinned(bytes));
            case 5 -> onHost(cuda.registerHost(Arena.ofAuto().allocate(bytes, 64)));
            case 6 -> {
              ManagedBuffer managed = cuda.allocateManaged(bytes);
              yield new ShapeBlock(managed, -1, managed.segment(), false, cellBytes);
            }
            case 7 -> onHost(pinned.allocate(bytes, line.stream));
            default -> {
              GrowableBuffer growable = line.stream.device().growable(8L << 20);
              growable.grow(bytes);
              yield onDevice(growable, device);
            }
          };
      int number = ++line.model.queued; // it need not take turns
      block.all().forEach(cell -> cell.note(Use.WRITE, line.model, number));
      blocks.add(block);
      perform(works.fillAll(block, random.nextInt()));
    }

    private ShapeBlock onDevice(Buffer buffer, int device) {
      return new ShapeBlock(buffer, device, null, false, cellBytes);
    }

    private ShapeBlock onHost(PinnedBuffer buffer) {
      return new ShapeBlock(buffer, -1, buffer.segment(), true, cellBytes);
    }

    /** Pools give back what they can, and buffers grow, whatever is in flight. */
    private void trim() {
      long _ =
          switch (random.nextInt(5)) {
            case 0 -> pool.freeAllBlocks();
            case 1 -> elastic.trim(0);
            case 2 -> ordered.freeAllBlocks();
            case 3 -> cuda.defaultPinnedMemoryPool().freeAllBlocks();
            default -> grow(anyBlock());
          };
    }

    /** By more than there is in its pieces; the bytes before stay. */
    private long grow(ShapeBlock block) {
      if (block.buffer instanceof GrowableBuffer growable && growable.byteSize() < 3 << 20) {
        growable.grow(growable.byteSize() + (3 << 20));
      }
      return block.buffer.byteSize();
    }

    private void perform(ShapeWork work) throws Exception {
      Line line = anyLine(work.device);
      order(work.uses, line);
      work.queue(line.stream);
      note(work.uses, line);
      work.apply();
    }

    private void note(Map<Cell, Use> uses, Line line) {
      int number = order.queued(line.model);
      uses.forEach((cell, use) -> cell.note(use, line.model, number));
    }

    /** Has a stream come behind all that is in the way of its use of cells. */
    private void order(Map<Cell, Use> uses, Line line) throws Exception {
      for (Map.Entry<Cell, Use> use : uses.entrySet()) {
        for (Map.Entry<ProgramStream, Integer> before :
            use.getKey().before(use.getValue()).entrySet()) {
          if (!order.isBefore(before.getKey(), before.getValue(), line.model)) {
            follow(line, line(before.getKey()));
          }
        }
      }
    }

    private Line line(ProgramStream model) {
      Line line = lines.get(model);
      if (line == null) {
        throw new IllegalStateException("closed: " + model);
      }
      return line;
    }

    private void follow(Line second, Line first) throws Exception {
      switch (random.nextInt(5)) {
        case 0 -> second.stream.waitFor(first.stream);
        case 1 -> {
          try (CudaEvent event = first.stream.record()) {
            second.stream.waitFor(event);
          }
        }
        case 2 -> { // what is behind comes after what the callback has waited for
          int _ = order.queued(second.model);
          CudaEvent event = first.stream.record();
          works
              .callbacks()
              .add(
                  second.stream.addCallback(() -> {
                    event.synchronize();
                    event.close();
                  }));
        }
        case 3 -> {
          Line third = anyLine(-1);
          third.stream.waitFor(first.stream);
          int _ = order.queued(first.model);
          third.model.follow(first.model.reached());
          second.stream.waitFor(third.stream);
        }
        default -> {
          await(first);
          return;
        }
      }
      int _ = order.queued(first.model);
      second.model.follow(first.model.reached());
    }

    /** Has the host wait for what is in the way of its own use of a cell. */
    private void await(Cell cell, Use use) throws Exception {
      for (Map.Entry<ProgramStream, Integer> before : cell.before(use).entrySet()) {
        if (!order.isDone(before.getKey(), before.getValue())) {
          await(line(before.getKey()));
        }
      }
    }

    private void await(Line line) throws Exception {
      Map<ProgramStream, Integer> clock = order.awaited(line.model);
      switch (random.nextInt(5)) {
        case 0 -> line.stream.synchronize();
        case 1 -> {
          while (!line.stream.isDone()) {
            Thread.onSpinWait();
          }
        }
        case 2 -> {
          try (CudaEvent event = line.stream.record()) {
            event.synchronize();
          }
        }
        case 3 -> {
          var _ = line.stream.addCallback(() -> {}).get(60, TimeUnit.SECONDS);
        }
        default -> {
          var _ = line.stream.onComplete().get(60, TimeUnit.SECONDS);
        }
      }
      order.done(clock);
    }

    private void check(Cell cell) throws Exception {
      await(cell, Use.READ);
      ShapeBlock.check(ShapeWorks.read(cell, random.nextBoolean()), cell.word, "on the host");
    }

    private void write(Cell cell) throws Exception {
      await(cell, Use.WRITE);
      cell.word = random.nextInt();
      ShapeWorks.write(cell, cell.word, random.nextBoolean());
      cell.forget();
    }

    /** The host fills memory for a copy that is queued already, but held up at a word. */
    private void behindWord() throws Exception {
      List<ShapeBlock> seen = blocks.stream().filter(block -> block.host != null).toList();
      if (seen.isEmpty()) {
        return;
      }
      Cell from = works.anyCell(seen.get(random.nextInt(seen.size())));
      Cell to = works.anyCell(anyBlock());
      Line line = anyLine(to.block.device);
      if (from == to || line.model.isLegacy()) {
        return;
      }
      await(from, Use.WRITE);
      from.forget();
      order(Map.of(to, Use.WRITE), line);
      int word = nextWord++;
      driver
          .streams()
          .streamWaitValue32(
              line.device(),
              line.stream.handle(),
              words.devicePointer() + (long) word * Integer.BYTES,
              1,
              1);
      to.part().copyFrom(from.part(), line.stream);
      from.word = random.nextInt();
      boolean isAlone = !line.model.isBlocking && settings.contains("queues=0");
      ShapeWorks.write(from, from.word, !isAlone || random.nextBoolean());
      to.word = from.word;
      ValueLayout.JAVA_INT.varHandle().setRelease(words.segment(), (long) word * Integer.BYTES, 1);
      note(Map.of(from, Use.READ, to, Use.WRITE), line);
    }

    private void capture() {
      Line line = anyLine(random.nextInt(cuda.deviceCount()));
      Line fork = anyLine(line.device());
      List<ShapeWork> captured = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        ShapeWork work = works.any(blocks);
        if (work != null
            && work.isCaptured
            && work.blocks().stream()
                .allMatch(block -> block.device < 0 || block.device == line.device())) {
          captured.add(work);
        }
      }
      if (captured.isEmpty() || line.model.isLegacy() || fork.model.isLegacy()) {
        return;
      }
      CudaGraph graph =
          line.stream.capture(() -> {
            fork.stream.waitFor(line.stream);
            List<ShapeWork> beside = new ArrayList<>();
            for (ShapeWork work : captured) {
              boolean isFree = beside.stream().noneMatch(work::conflicts);
              CudaStream stream = line.stream;
              if (fork != line && isFree && random.nextBoolean()) {
                stream = fork.stream;
              } else if (fork != line && !isFree) {
                line.stream.waitFor(fork.stream);
                fork.stream.waitFor(line.stream);
                beside.clear();
              }
              work.queue(stream);
              beside.add(work);
            }
            line.stream.waitFor(fork.stream);
          });
      graphs.add(new Captured(graph.instantiate(), captured, line.device()));
      graph.close();
    }

    private void launch() throws Exception {
      if (graphs.isEmpty()) {
        return;
      }
      Captured graph = graphs.get(random.nextInt(graphs.size()));
      Line line = anyLine(graph.device);
      Map<Cell, Use> uses = new LinkedHashMap<>();
      graph.works.forEach(work -> work.uses.forEach((cell, use) -> uses.merge(cell, use, Use::of)));
      order(uses, line);
      graph.exec.launch(line.stream);
      note(uses, line);
      graph.works.forEach(ShapeWork::apply);
      if (random.nextInt(4) == 0) {
        graph.exec.close();
        graphs.remove(graph);
      }
    }
  }
}
