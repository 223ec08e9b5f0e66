package io.cuvette.testkit.seeds;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.testkit.seeds.CellBlock.Cell;
import io.cuvette.testkit.seeds.CellBlock.Kind;
import io.cuvette.testkit.seeds.CellBlock.Use;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/** Makes random work on cells: fills, copies, boxes, kernels and functions of the host. */
final class CellWorks {
  private final CudaDriver driver;
  private final CellKernels kernels;
  private final SplittableRandom random;
  private final int words;

  /** Of blocks whose cells have so many words. */
  CellWorks(CudaDriver driver, CellKernels kernels, SplittableRandom random, int words) {
    this.driver = driver;
    this.kernels = kernels;
    this.random = random;
    this.words = words;
  }

  /** Work with some of the blocks; null if what was drawn does not suit them. */
  @Nullable CellWork any(List<CellBlock> blocks) {
    CellBlock from = blocks.get(random.nextInt(blocks.size()));
    CellBlock to = blocks.get(random.nextInt(blocks.size()));
    int source = random.nextInt(CellBlock.CELLS);
    int target = random.nextInt(CellBlock.CELLS);
    int count = 1 + random.nextInt(CellBlock.CELLS - Math.max(source, target));
    boolean isApart = from != to || Math.abs(source - target) >= count;
    return switch (random.nextInt(9)) {
      case 0, 1 -> fill(to, target, count, 1 << random.nextInt(3));
      case 2, 3 -> isApart ? copy(from.cells[source], to.cells[target], count) : null;
      case 4 -> isApart ? box(from.cells[source], to.cells[target], count) : null;
      case 5, 6 -> isApart ? mix(from.cells[source], to.cells[target]) : null;
      case 7 -> add(to.cells[target]);
      default -> to.host == null ? null : function(to.cells[target]);
    };
  }

  private long cellBytes() {
    return (long) words * Integer.BYTES;
  }

  CellWork fill(CellBlock block, int from, int count, int width) {
    Cell first = block.cells[from];
    long elements = count * cellBytes() / width;
    int repeated = width == 1 ? 0x01010101 : width == 2 ? 0x00010001 : 1;
    int mask = width == 4 ? -1 : (1 << (8 * width)) - 1;
    CellWork work =
        new CellWork(
            random.nextInt(),
            (stream, value) -> {
              long at = first.address();
              long to = stream.handle;
              switch (width) {
                case 1 -> driver.transfers().memsetD8Async(0, at, (byte) value, elements, to);
                case 2 -> driver.transfers().memsetD16Async(0, at, (short) value, elements, to);
                default -> driver.transfers().memsetD32Async(0, at, value, elements, to);
              }
            },
            value -> new GraphNodeParams.Fill(first.address(), value, width, elements),
            value -> {
              for (int i = 0; i < count; i++) {
                Arrays.fill(block.cells[from + i].words, (value & mask) * repeated);
              }
            });
    for (int i = 0; i < count; i++) {
      work.using(block.cells[from + i], Use.WRITE);
    }
    return work;
  }

  CellWork copy(Cell from, Cell to, int count) {
    long bytes = count * cellBytes();
    boolean isSegment = from.block.kind == Kind.PINNED && random.nextBoolean();
    return copying(
        from,
        to,
        count,
        new CellWork(
            0,
            (stream, _) -> {
              MemorySegment host = from.block.host;
              if (host != null && isSegment) {
                MemorySegment source = host.asSlice(from.offset(), bytes);
                driver.transfers().memcpyHtoDAsync(0, to.address(), source, stream.handle);
              } else {
                driver
                    .transfers()
                    .memcpyAsync(0, to.address(), from.address(), bytes, stream.handle);
              }
            },
            _ -> new GraphNodeParams.Copy(to.address(), from.address(), bytes),
            _ -> {
              for (int i = 0; i < count; i++) {
                to.block.cells[to.index + i].words = from.block.cells[from.index + i].words.clone();
              }
            }));
  }

  /** A part of each of some cells. */
  private CellWork box(Cell from, Cell to, int rows) {
    int offset = random.nextInt(words);
    int width = 1 + random.nextInt(words - offset);
    long skipped = (long) offset * Integer.BYTES;
    return copying(
        from,
        to,
        rows,
        new CellWork(
            0,
            (stream, _) ->
                driver
                    .transfers()
                    .memcpy3DAsync(
                        0,
                        new BoxCopy(
                            new BoxCopy.Side(to.address() + skipped, cellBytes(), rows),
                            new BoxCopy.Side(from.address() + skipped, cellBytes(), rows),
                            (long) width * Integer.BYTES,
                            rows,
                            1),
                        stream.handle),
            null,
            _ -> {
              for (int i = 0; i < rows; i++) {
                int[] read = from.block.cells[from.index + i].words;
                System.arraycopy(read, offset, to.block.cells[to.index + i].words, offset, width);
              }
            }));
  }

  private static CellWork copying(Cell from, Cell to, int count, CellWork work) {
    for (int i = 0; i < count; i++) {
      work.using(from.block.cells[from.index + i], Use.READ);
      work.using(to.block.cells[to.index + i], Use.WRITE);
    }
    return work;
  }

  /** A kernel that changes one cell by another; it may be given the blocks, and where in them. */
  CellWork mix(Cell from, Cell to) {
    boolean isWhole = random.nextBoolean();
    return kernel(
            CellKernels.MIX,
            CellKernels.shape(1 + random.nextInt(2), 1 + random.nextInt(4)),
            number ->
                isWhole
                    ? CellKernels.arguments(
                        CellKernels.MIX,
                        from.block.address,
                        to.block.address,
                        from.offset(),
                        to.offset(),
                        words,
                        number)
                    : CellKernels.arguments(
                        CellKernels.MIX, from.address(), to.address(), 0, 0, words, number),
            number -> {
              for (int i = 0; i < words; i++) {
                to.words[i] = to.words[i] * 3 + from.words[i] + number;
              }
            })
        .using(from, Use.READ)
        .using(to, Use.WRITE);
  }

  private CellWork add(Cell to) {
    return kernel(
            CellKernels.ADD,
            CellKernels.shape(1 + random.nextInt(2), 1 + random.nextInt(4)),
            number ->
                CellKernels.arguments(
                    CellKernels.ADD, to.block.address, to.offset(), words, number),
            number -> {
              for (int i = 0; i < words; i++) {
                to.words[i] += number;
              }
            })
        .using(to, Use.ADD);
  }

  CellWork kernel(
      SimulatedKernel kernel,
      LaunchShape shape,
      IntFunction<LaunchParameters> arguments,
      IntConsumer effect) {
    long handle = kernels.handle(kernel);
    return new CellWork(
        random.nextInt(1000),
        (stream, number) ->
            driver.kernels().launchKernel(0, stream.handle, handle, shape, arguments.apply(number)),
        number -> new GraphNodeParams.Kernel(handle, shape, arguments.apply(number)),
        effect);
  }

  private CellWork function(Cell to) {
    MemorySegment memory = to.onHost();
    IntFunction<Runnable> function =
        number ->
            () -> {
              for (int i = 0; i < words; i++) {
                int word = memory.getAtIndex(ValueLayout.JAVA_INT, i);
                memory.setAtIndex(ValueLayout.JAVA_INT, i, word * 5 + number);
              }
            };
    return new CellWork(
            random.nextInt(1000),
            (stream, number) ->
                driver.streams().launchHostFunc(0, stream.handle, function.apply(number)),
            number -> new GraphNodeParams.Host(function.apply(number)),
            number -> {
              for (int i = 0; i < words; i++) {
                to.words[i] = to.words[i] * 5 + number;
              }
            })
        .using(to, Use.WRITE);
  }
}
