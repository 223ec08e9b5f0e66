package io.cuvette.testkit.seeds;

import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.LONG;
import static io.cuvette.sim.SimulatedParameter.POINTER;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Kernels that use some words of the blocks that they are given, and set conditions. */
final class CellKernels {
  /** Target times three plus source plus a number: source, target, their offsets, words, number. */
  static final SimulatedKernel MIX =
      SimulatedKernel.of("mixCells", CellKernels::mix, POINTER, POINTER, INT, INT, INT, INT);

  /** Adds a number to words, atomically: target, offset, words, number. */
  static final SimulatedKernel ADD =
      SimulatedKernel.of("addCells", CellKernels::add, POINTER, INT, INT, INT);

  /** Sets a condition to a bit of a word: condition, word. */
  static final SimulatedKernel CHOOSE =
      SimulatedKernel.of("chooseCells", CellKernels::choose, LONG, POINTER);

  /** Counts a word down, and sets a condition to whether more is left: condition, word. */
  static final SimulatedKernel COUNT =
      SimulatedKernel.of("countCells", CellKernels::count, LONG, POINTER);

  private static final List<SimulatedKernel> ALL = List.of(MIX, ADD, CHOOSE, COUNT);

  static {
    ALL.forEach(SimulatedKernels::register); // for all tests of the process
  }

  private final CudaDriver driver;
  private final long library;
  private final Map<SimulatedKernel, Long> handles = new HashMap<>();

  CellKernels(CudaDriver driver) {
    this.driver = driver;
    this.library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(ALL));
    ALL.forEach(
        kernel -> handles.put(kernel, driver.kernels().libraryGetKernel(library, kernel.name())));
  }

  long handle(SimulatedKernel kernel) {
    return Objects.requireNonNull(handles.get(kernel));
  }

  void unload() {
    driver.kernels().libraryUnload(library);
  }

  static LaunchShape shape(int blocks, int threads) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, 0, false, false);
  }

  /** The number that chooses which body runs. */
  static int chosen(int word) {
    return (word >>> 3) & 1;
  }

  /** Numbers, each of the size of its parameter. */
  static LaunchParameters arguments(SimulatedKernel kernel, long... values) {
    MemorySegment all = Arena.ofAuto().allocate(8L * values.length, Long.BYTES);
    List<KernelParameter> places = new ArrayList<>();
    for (int i = 0; i < values.length; i++) {
      all.setAtIndex(ValueLayout.JAVA_LONG, i, values[i]); // of an int the low half counts
      places.add(new KernelParameter(8L * i, kernel.parameters().get(i).byteSize()));
    }
    return new LaunchParameters(all, places);
  }

  private static void mix(KernelThread thread) {
    int step = thread.blockDimX() * thread.gridDimX();
    for (long i = thread.globalX(); i < thread.intValue(4); i += step) {
      long source = thread.pointer(0) + thread.intValue(2) + i * Integer.BYTES;
      long target = thread.pointer(1) + thread.intValue(3) + i * Integer.BYTES;
      thread.setInt(target, thread.getInt(target) * 3 + thread.getInt(source) + thread.intValue(5));
    }
  }

  private static void add(KernelThread thread) {
    int step = thread.blockDimX() * thread.gridDimX();
    for (long i = thread.globalX(); i < thread.intValue(2); i += step) {
      long target = thread.pointer(0) + thread.intValue(1) + i * Integer.BYTES;
      int _ = thread.atomicAdd(target, thread.intValue(3));
    }
  }

  private static void choose(KernelThread thread) {
    thread.setConditional(thread.longValue(0), chosen(thread.getInt(thread.pointer(1))));
  }

  private static void count(KernelThread thread) {
    int left = thread.getInt(thread.pointer(1)) - 1;
    thread.setInt(thread.pointer(1), left);
    thread.setConditional(thread.longValue(0), left > 0 ? 1 : 0);
  }
}
