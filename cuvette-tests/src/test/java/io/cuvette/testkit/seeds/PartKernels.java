package io.cuvette.testkit.seeds;

import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.POINTER;

import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;

/** Kernels that touch less than they are given. */
final class PartKernels {
  /** Copies from an offset of the first argument to the second: so many bytes. */
  static final SimulatedKernel MOVE =
      SimulatedKernel.of("moveParts", PartKernels::move, POINTER, POINTER, INT, INT);

  /** Fills from an offset of the argument: so many bytes, with a value. */
  static final SimulatedKernel SET =
      SimulatedKernel.of("setParts", PartKernels::set, POINTER, INT, INT, INT);

  private PartKernels() {}

  private static void move(KernelThread thread) {
    long from = thread.pointer(0) + thread.intValue(2);
    for (int i = thread.threadX(); i < thread.intValue(3); i += thread.blockDimX()) {
      thread.setByte(thread.pointer(1) + i, thread.getByte(from + i));
    }
  }

  private static void set(KernelThread thread) {
    long to = thread.pointer(0) + thread.intValue(1);
    for (int i = thread.threadX(); i < thread.intValue(2); i += thread.blockDimX()) {
      thread.setByte(to + i, (byte) thread.intValue(3));
    }
  }
}
