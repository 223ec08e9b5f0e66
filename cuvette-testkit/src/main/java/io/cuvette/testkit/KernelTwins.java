package io.cuvette.testkit;

import static io.cuvette.sim.SimulatedParameter.DOUBLE;
import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.LONG;
import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedParameter;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;

/**
 * The kernels of {@code kernels.cu}, {@code clusters.cu} and {@code graphs.cu}: their PTX, and the
 * Java functions that do the same on the simulated device. Stateless.
 */
final class KernelTwins {
  private static final List<SimulatedKernel> ALL =
      List.of(
          SimulatedKernel.of("add", KernelTwins::add, POINTER, POINTER, POINTER, INT),
          SimulatedKernel.of("nothing", _ -> {}),
          SimulatedKernel.of(
              "mixed",
              KernelTwins::mixed,
              new SimulatedParameter("char", 1, 1),
              new SimulatedParameter("short", 2, 2),
              DOUBLE,
              SimulatedParameter.struct(16, 8),
              POINTER),
          SimulatedKernel.of("sums", KernelTwins::sums, POINTER, POINTER, INT)
              .withSharedBytes(256 * Integer.BYTES),
          SimulatedKernel.of("reverse", KernelTwins::reverse, POINTER),
          SimulatedKernel.of("histogram", KernelTwins::histogram, POINTER, INT, POINTER),
          SimulatedKernel.of("meet", KernelTwins::meet, POINTER, POINTER),
          SimulatedKernel.of("neighbours", KernelTwins::neighbours, POINTER)
              .withSharedBytes(Integer.BYTES),
          SimulatedKernel.of("affine", KernelTwins::affine, POINTER, INT, INT, INT),
          SimulatedKernel.of("countDown", KernelTwins::countDown, LONG, POINTER),
          SimulatedKernel.of("choose", KernelTwins::choose, LONG, POINTER));

  private KernelTwins() {}

  /** Makes the functions known to simulated devices, for as long as the process lives. */
  static void register() {
    ALL.forEach(SimulatedKernels::register);
  }

  /** The code of a file, such as {@code kernels.ptx}. */
  static byte[] code(String file) {
    try (InputStream text = Objects.requireNonNull(KernelTwins.class.getResourceAsStream(file))) {
      return text.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void add(KernelThread t) {
    long i = t.globalX();
    if (i < t.intValue(3)) {
      t.setFloat(
          t.pointer(2) + 4 * i,
          t.getFloat(t.pointer(0) + 4 * i) + t.getFloat(t.pointer(1) + 4 * i));
    }
  }

  private static void mixed(KernelThread t) {
    MemorySegment pair = t.struct(3);
    double floating = t.doubleValue(2) + pair.get(JAVA_FLOAT, 0) + pair.get(JAVA_DOUBLE, 8);
    t.setLong(
        t.pointer(4),
        t.struct(0).get(JAVA_BYTE, 0) + t.struct(1).get(JAVA_SHORT, 0) + (long) floating);
  }

  private static void sums(KernelThread t) {
    MemorySegment part = t.shared();
    long i = t.globalX();
    part.setAtIndex(JAVA_INT, t.rank(), i < t.intValue(2) ? t.getInt(t.pointer(0) + 4 * i) : 0);
    for (int half = t.blockDimX() / 2; half > 0; half /= 2) {
      t.syncThreads();
      if (t.rank() < half) {
        int other = part.getAtIndex(JAVA_INT, t.rank() + half);
        part.setAtIndex(JAVA_INT, t.rank(), part.getAtIndex(JAVA_INT, t.rank()) + other);
      }
    }
    if (t.rank() == 0) {
      t.setInt(t.pointer(1) + 4L * t.blockX(), part.getAtIndex(JAVA_INT, 0));
    }
  }

  private static void reverse(KernelThread t) {
    long address = t.pointer(0) + 4 * t.globalX();
    t.shared().setAtIndex(JAVA_INT, t.rank(), t.getInt(address));
    t.syncThreads();
    t.setInt(address, t.shared().getAtIndex(JAVA_INT, t.blockDimX() - 1 - t.rank()));
  }

  private static void histogram(KernelThread t) {
    for (long i = t.globalX(); i < t.intValue(1); i += (long) t.gridDimX() * t.blockDimX()) {
      int _ = t.atomicAdd(t.pointer(2) + 4L * Byte.toUnsignedInt(t.getByte(t.pointer(0) + i)), 1);
    }
  }

  private static void meet(KernelThread t) {
    int _ = t.atomicAdd(t.pointer(0), 1);
    t.syncGrid();
    t.setInt(t.pointer(1) + 4 * t.globalX(), t.getInt(t.pointer(0)));
  }

  private static void neighbours(KernelThread t) {
    t.shared().set(JAVA_INT, 0, t.blockX());
    t.syncCluster();
    int next = (t.clusterRank() + 1) % t.clusterSize();
    t.setInt(t.pointer(0) + 4L * t.blockX(), t.shared(next).get(JAVA_INT, 0));
    t.syncCluster();
  }

  private static void affine(KernelThread t) {
    long i = t.globalX();
    if (i < t.intValue(3)) {
      long address = t.pointer(0) + 4 * i;
      t.setInt(address, t.getInt(address) * t.intValue(1) + t.intValue(2));
    }
  }

  private static void countDown(KernelThread t) {
    int left = t.getInt(t.pointer(1)) - 1;
    t.setInt(t.pointer(1), left);
    t.setConditional(t.longValue(0), left > 0 ? 1 : 0);
  }

  private static void choose(KernelThread t) {
    t.setConditional(t.longValue(0), t.getInt(t.pointer(1)));
  }
}
