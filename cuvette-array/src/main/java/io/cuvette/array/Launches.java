package io.cuvette.array;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaStream;
import io.cuvette.Dim3;
import io.cuvette.LaunchConfig;
import io.cuvette.array.internal.kernel.DrawArgument;
import io.cuvette.array.internal.kernel.KernelNames;
import io.cuvette.array.internal.kernel.KernelSet;
import io.cuvette.array.internal.kernel.LoopArgument;
import io.cuvette.array.internal.kernel.LoopPlan;
import io.cuvette.array.internal.kernel.ReductionArgument;
import io.cuvette.array.internal.kernel.ReductionPlan;
import io.cuvette.array.internal.kernel.TilesArgument;
import io.cuvette.array.internal.twin.ReductionTwin;
import io.cuvette.array.internal.twin.Twins;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Launches the kernels of the library on arrays of a device. Stateless. */
final class Launches {
  private static final int THREADS = 256;
  private static final int TILE_THREADS = 8;

  private Launches() {}

  private static CudaKernel kernel(CudaArray array, KernelNames.Place place) {
    return KernelSet.kernel(array.device().cuda(), place);
  }

  /** Computes elements, of which there are some, in the current stream. */
  static void elements(CudaArray target, Arithmetic.Step step, List<Operand> operands) {
    elements(target, step, operands, target.current());
  }

  /** Computes elements, of which there are some. */
  static void elements(
      CudaArray target, Arithmetic.Step step, List<Operand> operands, CudaStream stream) {
    LoopPlan plan = plan(target, operands);
    Object[] arguments = new Object[LoopArgument.OPERANDS + 2];
    arguments[0] = target.buffer();
    for (int k = 1; k <= LoopArgument.OPERANDS; k++) {
      boolean isArray = k <= operands.size() && operands.get(k - 1) instanceof Operand.Elements;
      arguments[k] =
          isArray ? ((CudaArray) ((Operand.Elements) operands.get(k - 1)).array()).buffer() : 0L;
    }
    arguments[LoopArgument.OPERANDS + 1] = plan.argument().structure();
    stream.launch(
        kernel(target, step.kernel()),
        LaunchConfig.forElements(plan.threads(), THREADS),
        arguments);
  }

  /** Copies and converts elements, of which there are some; shapes are equal. */
  static void copy(CudaArray target, CudaArray source, CudaStream stream) {
    TilesArgument tiles = target.type() == source.type() ? tiles(target, source) : null;
    if (tiles == null) {
      elements(
          target,
          target.type() == source.type()
              ? copy(bits(source.type()))
              : conversion(source.type(), target.type()),
          List.of(Operand.of("source", source, source.type())),
          stream);
      return;
    }
    Dim3 grid =
        new Dim3(
            Math.toIntExact((tiles.columns() - 1) / TilesArgument.TILE + 1),
            Math.toIntExact((tiles.rows() - 1) / TilesArgument.TILE + 1),
            Math.toIntExact(tiles.matrices()));
    stream.launch(
        kernel(target, KernelNames.transpose(target.type().bytes())),
        LaunchConfig.of(grid, new Dim3(TilesArgument.TILE, TILE_THREADS, 1)),
        target.buffer(),
        source.buffer(),
        tiles.structure());
  }

  private static @Nullable TilesArgument tiles(CudaArray target, CudaArray source) {
    return TilesArgument.of(
        target.layout().sizes(),
        Operand.inLoop(target.type(), target.layout(), target.memoryAddress()),
        Operand.inLoop(source.type(), source.layout(), source.memoryAddress()));
  }

  /** Gives elements, of which there are some, one value. */
  static void fill(CudaArray target, Scalar value, CudaStream stream) {
    elements(target, copy(bits(target.type())), List.of(new Operand.Value(value)), stream);
  }

  private static Arithmetic.Step copy(ElementType type) {
    return conversion(type, type);
  }

  /** A type whose copies keep each bit: those of half and bfloat16 pass through float. */
  private static ElementType bits(ElementType type) {
    return type == ElementType.FLOAT16 || type == ElementType.BFLOAT16 ? ElementType.UINT16 : type;
  }

  private static Arithmetic.Step conversion(ElementType from, ElementType to) {
    return new Arithmetic.Step(KernelNames.conversion(from, to), Twins.conversion(from, to));
  }

  private static LoopPlan plan(CudaArray target, List<Operand> operands) {
    long[] shape = target.layout().sizes();
    LoopPlan.Array[] arrays = new LoopPlan.Array[operands.size() + 1];
    arrays[0] = Operand.inLoop(target.type(), target.layout(), target.memoryAddress());
    for (int k = 0; k < operands.size(); k++) {
      arrays[k + 1] = operands.get(k).inLoop(shape);
    }
    return LoopPlan.of(shape, arrays);
  }

  /** Reduces elements to results, of which there are some. */
  static void reduce(CudaArray target, CudaArray source, ReductionTwin twin, ReductionPlan plan) {
    CudaStream stream = target.current();
    CudaKernel kernel = kernel(target, KernelNames.of(twin.reduction(), twin.type()));
    ReductionArgument second = plan.second();
    if (second == null) {
      pass(stream, kernel, plan.first(), target.buffer(), source.buffer());
      return;
    }
    Cuda cuda = target.device().cuda();
    long bytes = plan.first().results() * plan.first().splits() * twin.partialBytes();
    try (Buffer parts = cuda.allocate(bytes, stream)) {
      pass(stream, kernel, plan.first(), parts, source.buffer());
      pass(stream, kernel, second, target.buffer(), parts);
    }
  }

  private static void pass(
      CudaStream stream, CudaKernel kernel, ReductionArgument pass, Buffer out, Buffer in) {
    LaunchConfig config = LaunchConfig.of(ReductionPlan.blocks(pass), ReductionPlan.THREADS);
    if (pass.columns()) {
      Dim3 grid = config.grid();
      config = config.withGrid(new Dim3(grid.x(), Math.toIntExact(pass.splits()), 1));
    }
    stream.launch(kernel, config, out, in, pass.structure());
  }

  /** Draws random numbers, of which there are some, in the order of a stream. */
  static void draw(
      CudaArray target,
      KernelNames.Place place,
      DrawArgument draw,
      long blocks,
      CudaStream stream) {
    stream.launch(
        kernel(target, place),
        LaunchConfig.forElements(blocks, THREADS),
        target.buffer(),
        draw.structure());
  }
}
