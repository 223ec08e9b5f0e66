package io.cuvette.testkit.seeds;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.testkit.seeds.CellBlock.Use;
import io.cuvette.testkit.seeds.ShapeBlock.Cell;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Makes random work on cells: boxes, batches, rows, kernels, callbacks. Not thread-safe. */
final class ShapeWorks {
  private static final LaunchConfig CONFIG = LaunchConfig.of(1, 4);

  private final SplittableRandom random;
  private final CudaModule module;
  private final CudaKernel mix;
  private final List<CompletableFuture<Void>> callbacks = new ArrayList<>();

  /** Whether a callback can wait for copies of the device: nothing that it holds up holds those. */
  private final boolean canCopyInCallbacks;

  ShapeWorks(Cuda cuda, SplittableRandom random, boolean canCopyInCallbacks) {
    this.random = random;
    this.canCopyInCallbacks = canCopyInCallbacks;
    this.module = CudaModule.load(cuda, SimulatedKernels.ptx(List.of(CellKernels.MIX)));
    this.mix = module.kernel(CellKernels.MIX.name());
  }

  void close() {
    module.close();
  }

  /** What the host did in callbacks, and what it found. */
  List<CompletableFuture<Void>> callbacks() {
    return callbacks;
  }

  /** Work with some of the blocks; null if what was drawn does not suit them. */
  @Nullable ShapeWork any(List<ShapeBlock> blocks) {
    ShapeBlock from = blocks.get(random.nextInt(blocks.size()));
    ShapeBlock to = blocks.get(random.nextInt(blocks.size()));
    return switch (random.nextInt(11)) {
      case 0, 1 -> fill(to);
      case 2, 3 -> box(from, to);
      case 4 -> batch(blocks);
      case 5, 6 -> mix(anyCell(from), anyCell(to));
      case 7 -> rows(from, to);
      case 8, 9 -> callback(anyCell(from), anyCell(to));
      default -> prefetch(to);
    };
  }

  Cell anyCell(ShapeBlock block) {
    return block.cells[random.nextInt(ShapeBlock.ROWS)][random.nextInt(ShapeBlock.COLUMNS)];
  }

  /** Cells of a row, by values of one, two or four bytes. */
  private ShapeWork fill(ShapeBlock block) {
    int column = random.nextInt(ShapeBlock.COLUMNS);
    int columns = 1 + random.nextInt(ShapeBlock.COLUMNS - column);
    List<Cell> cells = block.box(random.nextInt(ShapeBlock.ROWS), column, 1, columns);
    Buffer part = block.buffer.slice(cells.getFirst().offset(), columns * block.cellBytes);
    int value = random.nextInt();
    int width = random.nextInt(3);
    int word =
        switch (width) {
          case 0 -> (value & 0xff) * 0x01010101;
          case 1 -> (value & 0xffff) * 0x00010001;
          default -> value;
        };
    Consumer<CudaStream> queue =
        switch (width) {
          case 0 -> stream -> part.fill((byte) value, stream);
          case 1 -> stream -> part.fillShorts((short) value, stream);
          default -> stream -> part.fillInts(value, stream);
        };
    return new ShapeWork(true, queue, () -> cells.forEach(cell -> cell.word = word))
        .using(Use.WRITE, cells)
        .on(block.device);
  }

  /** All of both. */
  ShapeWork fillAll(ShapeBlock block, int word) {
    return new ShapeWork(
            false,
            stream -> block.buffer.fillInts(word, stream),
            () -> block.all().forEach(cell -> cell.word = word))
        .using(Use.WRITE, block.all())
        .on(block.device);
  }

  private @Nullable ShapeWork box(ShapeBlock from, ShapeBlock to) {
    int rows = 1 + random.nextInt(ShapeBlock.ROWS);
    int columns = 1 + random.nextInt(ShapeBlock.COLUMNS);
    List<Cell> read = anyBox(from, rows, columns);
    List<Cell> written = anyBox(to, rows, columns);
    if (read.stream().anyMatch(written::contains)) {
      return null;
    }
    CopyBox box =
        CopyBox.of(columns * to.cellBytes, rows)
            .withSource(read.getFirst().offset(), from.pitch())
            .withTarget(written.getFirst().offset(), to.pitch());
    boolean isSegment = from.isPinned && to.device >= 0 && random.nextBoolean();
    boolean isAsync = random.nextInt(6) == 0;
    return copy(
        read,
        written,
        !isAsync,
        stream -> {
          if (isAsync) {
            callbacks.add(to.buffer.copyFromAsync(from.buffer, box, stream));
          } else if (isSegment && from.host != null) {
            to.buffer.copyFrom(from.host, box, stream);
          } else {
            to.buffer.copyFrom(from.buffer, box, stream);
          }
        });
  }

  private List<Cell> anyBox(ShapeBlock block, int rows, int columns) {
    int row = random.nextInt(ShapeBlock.ROWS - rows + 1);
    int column = random.nextInt(ShapeBlock.COLUMNS - columns + 1);
    return block.box(row, column, rows, columns);
  }

  private static ShapeWork copy(
      List<Cell> read, List<Cell> written, boolean isCaptured, Consumer<CudaStream> queue) {
    Runnable effect =
        () -> {
          for (int i = 0; i < read.size(); i++) {
            written.get(i).word = read.get(i).word;
          }
        };
    return new ShapeWork(isCaptured, queue, effect)
        .using(Use.READ, read)
        .using(Use.WRITE, written)
        .on(device(read.getFirst(), written.getFirst()));
  }

  /** The device whose streams can copy. */
  private static int device(Cell from, Cell to) {
    return to.block.device >= 0 ? to.block.device : from.block.device;
  }

  private @Nullable ShapeWork batch(List<ShapeBlock> blocks) {
    List<Cell> read = new ArrayList<>();
    List<Cell> written = new ArrayList<>();
    for (int i = 1 + random.nextInt(5); i > 0; i--) {
      Cell from = anyCell(blocks.get(random.nextInt(blocks.size())));
      Cell to = anyCell(blocks.get(random.nextInt(blocks.size())));
      boolean isApart = from != to && !read.contains(to) && !written.contains(from);
      boolean isElsewhere =
          !read.isEmpty() && device(from, to) != device(read.getFirst(), written.getFirst());
      if (isApart && !isElsewhere && !written.contains(to)) {
        read.add(from);
        written.add(to);
      }
    }
    if (read.isEmpty()) {
      return null;
    }
    CopyBatch batch =
        CopyBatch.of(
            written.stream().map(Cell::part).toList(), read.stream().map(Cell::part).toList());
    return copy(read, written, true, batch::copy);
  }

  /** One cell by another one: a kernel that is given the blocks, or the cells. */
  private @Nullable ShapeWork mix(Cell from, Cell to) {
    if (from == to
        || from.block.device >= 0 && to.block.device >= 0 && from.block.device != to.block.device) {
      return null;
    }
    int number = random.nextInt(1000);
    int words = (int) (to.block.cellBytes / Integer.BYTES);
    boolean isWhole = random.nextBoolean();
    Buffer source = isWhole ? from.block.buffer : from.part();
    Buffer target = isWhole ? to.block.buffer : to.part();
    int at = isWhole ? (int) from.offset() : 0;
    int there = isWhole ? (int) to.offset() : 0;
    return new ShapeWork(
            true,
            stream -> stream.launch(mix, CONFIG, source, target, at, there, words, number),
            () -> to.word = to.word * 3 + from.word + number)
        .using(Use.READ, List.of(from))
        .using(Use.WRITE, List.of(to))
        .on(from.block.device)
        .on(to.block.device);
  }

  /** Rows of page-locked memory that lie apart, gathered into one row or scattered from it. */
  private @Nullable ShapeWork rows(ShapeBlock apart, ShapeBlock packed) {
    if (!apart.isPinned || apart == packed || apart.host == null) {
      return null;
    }
    List<Cell> cells = new ArrayList<>();
    List<MemorySegment> segments = new ArrayList<>();
    for (int i = 1 + random.nextInt(ShapeBlock.ROWS); i > 0; i--) {
      Cell cell = apart.cells[i - 1][random.nextInt(ShapeBlock.COLUMNS)];
      cells.add(cell);
      segments.add(cell.onHost());
    }
    List<Cell> row = packed.box(random.nextInt(ShapeBlock.ROWS), 0, 1, cells.size());
    Buffer part = packed.buffer.slice(row.getFirst().offset(), cells.size() * packed.cellBytes);
    return random.nextBoolean()
        ? copy(cells, row, true, stream -> part.gatherFrom(segments, stream))
        : copy(row, cells, true, stream -> part.scatterTo(segments, stream));
  }

  /** The host, in a callback, looks at one cell and changes another one. */
  private @Nullable ShapeWork callback(Cell from, Cell to) {
    if (from == to || (!canCopyInCallbacks && (from.block.host == null || to.block.host == null))) {
      return null;
    }
    int number = random.nextInt();
    boolean isReading = !canCopyInCallbacks || random.nextBoolean();
    boolean isWriting = !canCopyInCallbacks || random.nextBoolean();
    return new ShapeWork(
            false,
            stream -> {
              int word = from.word;
              CompletableFuture<Void> callback =
                  stream.addCallback(() -> {
                    ShapeBlock.check(read(from, isReading), word, "in a callback");
                    write(to, number, isWriting);
                  });
              callbacks.add(callback);
              from.block.usedBy(callback);
              to.block.usedBy(callback);
            },
            () -> to.word = number)
        .using(Use.READ, List.of(from))
        .using(Use.WRITE, List.of(to));
  }

  /** What the host finds in a cell that nothing changes now. */
  static MemorySegment read(Cell cell, boolean inPlace) {
    if (inPlace && cell.block.host != null) {
      return cell.onHost();
    }
    MemorySegment copy = MemorySegment.ofArray(new byte[(int) cell.block.cellBytes]);
    cell.part().copyTo(copy);
    return copy;
  }

  /** By the host, in a cell that nothing uses now. */
  static void write(Cell cell, int word, boolean inPlace) {
    if (inPlace && cell.block.host != null) {
      ShapeBlock.write(cell.onHost(), word);
    } else {
      MemorySegment copy = MemorySegment.ofArray(new byte[(int) cell.block.cellBytes]);
      ShapeBlock.write(copy, word);
      cell.part().copyFrom(copy);
    }
  }

  private static @Nullable ShapeWork prefetch(ShapeBlock block) {
    if (!(block.buffer instanceof ManagedBuffer managed)) {
      return null;
    }
    return new ShapeWork(
        false,
        stream -> managed.prefetch(MemoryLocation.device(stream.device()), stream),
        () -> {});
  }
}
