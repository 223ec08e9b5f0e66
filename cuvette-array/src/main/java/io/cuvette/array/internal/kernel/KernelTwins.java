package io.cuvette.array.internal.kernel;

import static io.cuvette.sim.SimulatedParameter.POINTER;

import io.cuvette.array.BinaryOperation;
import io.cuvette.array.ElementType;
import io.cuvette.array.Reduction;
import io.cuvette.array.UnaryOperation;
import io.cuvette.array.internal.twin.Cells;
import io.cuvette.array.internal.twin.ElementTwin;
import io.cuvette.array.internal.twin.RandomTwin;
import io.cuvette.array.internal.twin.ReductionTwin;
import io.cuvette.array.internal.twin.TransposeTwin;
import io.cuvette.array.internal.twin.Twins;
import io.cuvette.sim.GridFunction;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedParameter;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;

/** Registers what the simulated device runs for each kernel. Stateless. */
public final class KernelTwins {
  private static final int LOOP_ALIGNMENT = 16;
  private static final int[] SIZES = {1, 2, 4, 8, 16};

  private KernelTwins() {}

  /** Registers all kernels for the rest of the process; once is enough. */
  public static void register() {
    Registration.ensure();
  }

  /** Runs once, when first used. */
  private static final class Registration {
    static {
      all().forEach(SimulatedKernels::register);
    }

    static void ensure() {}
  }

  /** All kernels. */
  static List<SimulatedKernel> all() {
    List<SimulatedKernel> all = new ArrayList<>();
    for (ElementType type : ElementType.values()) {
      addElements(all, type);
      for (Reduction reduction : Reduction.values()) {
        if (isFor(() -> reduction.resultType(type))) {
          all.add(reduction(KernelNames.of(reduction, type), new ReductionTwin(reduction, type)));
        }
      }
    }
    addCommon(all);
    return all;
  }

  private static void addElements(List<SimulatedKernel> all, ElementType type) {
    for (ElementType from : ElementType.values()) {
      all.add(elements(KernelNames.conversion(from, type), Twins.conversion(from, type)));
    }
    all.add(elements(KernelNames.where(type), Twins.where(type)));
    if (!type.isComplex()) {
      all.add(elements(KernelNames.clip(type), Twins.clip(type)));
    }
    for (UnaryOperation each : UnaryOperation.values()) {
      if (isFor(() -> each.computedType(type)) && each.computedType(type) == type) {
        all.add(elements(KernelNames.of(each, type), Twins.of(each, type)));
      }
    }
    for (BinaryOperation each : BinaryOperation.values()) {
      if (isFor(() -> each.computedType(type, type)) && each.computedType(type, type) == type) {
        all.add(elements(KernelNames.of(each, type), Twins.of(each, type)));
      }
    }
  }

  private static boolean isFor(Runnable check) {
    try {
      check.run();
      return true;
    } catch (IllegalArgumentException _) {
      return false;
    }
  }

  private static void addCommon(List<SimulatedKernel> all) {
    for (ElementType type : List.of(ElementType.FLOAT32, ElementType.FLOAT64)) {
      all.add(random(Distribution.UNIFORM, type));
      all.add(random(Distribution.NORMAL, type));
    }
    for (ElementType type :
        List.of(ElementType.INT8, ElementType.INT16, ElementType.INT32, ElementType.INT64)) {
      all.add(random(Distribution.INTEGERS, type));
    }
    for (int bytes : SIZES) {
      TransposeTwin twin = new TransposeTwin(bytes);
      all.add(
          kernel(
              KernelNames.transpose(bytes),
              TilesArgument.BYTES,
              Long.BYTES,
              2,
              (memories, s) -> twin.run(TilesArgument.of(s), memories.get(0), memories.get(1))));
    }
  }

  private static SimulatedKernel elements(KernelNames.Place place, ElementTwin twin) {
    return kernel(
        place,
        LoopArgument.BYTES,
        LOOP_ALIGNMENT,
        1 + LoopArgument.OPERANDS,
        (memories, s) -> twin.run(LoopArgument.of(s), memories));
  }

  private static SimulatedKernel reduction(KernelNames.Place place, ReductionTwin twin) {
    return kernel(
        place,
        ReductionArgument.BYTES,
        Long.BYTES,
        2,
        (memories, s) -> twin.run(ReductionArgument.of(s), memories.get(0), memories.get(1)));
  }

  private static SimulatedKernel random(Distribution distribution, ElementType type) {
    RandomTwin twin = new RandomTwin(distribution, type);
    return kernel(
        KernelNames.random(distribution, type),
        DrawArgument.BYTES,
        Long.BYTES,
        1,
        (memories, s) -> twin.run(DrawArgument.of(s), memories.get(0)));
  }

  /** A kernel with some addresses and a structure. */
  private static SimulatedKernel kernel(
      KernelNames.Place place,
      int bytes,
      int alignment,
      int pointers,
      BiConsumer<List<Cells>, MemorySegment> work) {
    SimulatedParameter[] parameters = new SimulatedParameter[pointers + 1];
    for (int i = 0; i < pointers; i++) {
      parameters[i] = POINTER;
    }
    parameters[pointers] = SimulatedParameter.struct(bytes, alignment);
    GridFunction function =
        thread -> {
          List<Cells> memories = new ArrayList<>();
          for (int i = 0; i < pointers; i++) {
            memories.add(new GlobalCells(thread, thread.pointer(i)));
          }
          work.accept(memories, thread.struct(pointers));
        };
    return SimulatedKernel.of(place.kernel(), function, parameters);
  }

  /** Memory of the device from an address on. */
  private record GlobalCells(KernelThread thread, long address) implements Cells {
    @Override
    public void read(long offset, MemorySegment target) {
      thread.getBytes(address + offset, target);
    }

    @Override
    public void write(long offset, MemorySegment source) {
      thread.setBytes(address + offset, source);
    }
  }
}
