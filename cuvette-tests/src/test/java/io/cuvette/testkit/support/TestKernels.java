package io.cuvette.testkit.support;

import io.cuvette.Cuda;
import io.cuvette.CudaModule;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedParameter;
import io.cuvette.testkit.DriverKernelContract;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The kernels of {@code launches.cu} and {@code clusters.cu}, and what they do on the simulated
 * device.
 */
public final class TestKernels {
  private static final int BINS = 256;

  private static final Map<String, byte[]> CODE = new ConcurrentHashMap<>();

  private static final List<SimulatedKernel> TWINS =
      List.of(
          SimulatedKernel.of(
              "addVectors",
              TestKernels::add,
              SimulatedParameter.POINTER,
              SimulatedParameter.POINTER,
              SimulatedParameter.POINTER,
              SimulatedParameter.INT),
          SimulatedKernel.of("doNothing", _ -> {}),
          SimulatedKernel.of(
              "addValues",
              TestKernels::mixed,
              SimulatedParameter.struct(1, 1),
              SimulatedParameter.struct(2, 2),
              SimulatedParameter.DOUBLE,
              SimulatedParameter.struct(16, 8),
              SimulatedParameter.POINTER),
          SimulatedKernel.of(
              "scale",
              TestKernels::scale,
              SimulatedParameter.POINTER,
              SimulatedParameter.FLOAT,
              SimulatedParameter.INT),
          SimulatedKernel.of(
              "sumBlocks",
              TestKernels::sumBlocks,
              SimulatedParameter.POINTER,
              SimulatedParameter.POINTER,
              SimulatedParameter.INT),
          SimulatedKernel.of(
                  "countBytes",
                  TestKernels::histogram,
                  SimulatedParameter.POINTER,
                  SimulatedParameter.POINTER,
                  SimulatedParameter.INT)
              .withSharedBytes(BINS * Integer.BYTES),
          SimulatedKernel.of(
              "sumAll",
              TestKernels::sumAll,
              SimulatedParameter.POINTER,
              SimulatedParameter.POINTER,
              SimulatedParameter.POINTER,
              SimulatedParameter.INT),
          SimulatedKernel.of("sumClusters", TestKernels::sumClusters, SimulatedParameter.POINTER)
              .withSharedBytes(Integer.BYTES));

  static {
    TWINS.forEach(SimulatedKernels::register); // for all tests of the process
  }

  private TestKernels() {}

  /** The kernels of {@code launches.cu}. */
  public static CudaModule launches(Cuda cuda) {
    return CudaModule.load(cuda, code("launches.ptx"));
  }

  /** The kernel sumClusters, for devices of architecture 9.0 and newer. */
  public static CudaModule clusters(Cuda cuda) {
    return CudaModule.load(cuda, code("clusters.ptx"));
  }

  /** The kernels of {@code graphs.cu}. */
  public static CudaModule graphs(Cuda cuda) {
    Object _ = new DriverKernelContract() {}; // registers what they do on the simulated device
    return CudaModule.load(cuda, code("graphs.ptx"));
  }

  /** The text of a library, read once: the matrix of races loads some thousands. */
  public static byte[] code(String name) {
    return CODE.computeIfAbsent(name, TestKernels::read).clone();
  }

  private static byte[] read(String name) {
    try (InputStream text =
        Objects.requireNonNull(DriverKernelContract.class.getResourceAsStream(name))) {
      return text.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void add(KernelThread at) {
    long i = at.globalX() * Float.BYTES;
    if (at.globalX() < at.intValue(3)) {
      at.setFloat(
          at.pointer(2) + i, at.getFloat(at.pointer(0) + i) + at.getFloat(at.pointer(1) + i));
    }
  }

  private static void mixed(KernelThread at) {
    MemorySegment pair = at.struct(3);
    double sum =
        at.doubleValue(2)
            + pair.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0)
            + pair.get(ValueLayout.JAVA_DOUBLE_UNALIGNED, Long.BYTES);
    at.setLong(
        at.pointer(4),
        at.struct(0).get(ValueLayout.JAVA_BYTE, 0)
            + at.struct(1).get(ValueLayout.JAVA_SHORT_UNALIGNED, 0)
            + (long) sum);
  }

  private static void scale(KernelThread at) {
    long place = at.pointer(0) + at.globalX() * Float.BYTES;
    if (at.globalX() < at.intValue(2)) {
      at.setFloat(place, at.getFloat(place) * at.floatValue(1));
    }
  }

  private static void sumBlocks(KernelThread at) {
    MemorySegment part = at.shared();
    int own = at.threadX();
    boolean inside = at.globalX() < at.intValue(2);
    set(part, own, inside ? at.getInt(at.pointer(0) + at.globalX() * Integer.BYTES) : 0);
    at.syncThreads();
    for (int half = at.blockDimX() / 2; half > 0; half /= 2) {
      if (own < half) {
        set(part, own, get(part, own) + get(part, own + half));
      }
      at.syncThreads();
    }
    if (own == 0) {
      at.setInt(at.pointer(1) + (long) at.blockX() * Integer.BYTES, get(part, 0));
    }
  }

  private static void histogram(KernelThread at) {
    MemorySegment own = at.shared();
    for (int bin = at.threadX(); bin < BINS; bin += at.blockDimX()) {
      set(own, bin, 0);
    }
    at.syncThreads();
    long all = (long) at.gridDimX() * at.blockDimX();
    for (long i = at.globalX(); i < at.intValue(2); i += all) {
      int bin = Byte.toUnsignedInt(at.getByte(at.pointer(0) + i));
      set(own, bin, get(own, bin) + 1);
    }
    at.syncThreads();
    for (int bin = at.threadX(); bin < BINS; bin += at.blockDimX()) {
      int _ = at.atomicAdd(at.pointer(1) + (long) bin * Integer.BYTES, get(own, bin));
    }
  }

  private static void sumAll(KernelThread at) {
    long part = at.pointer(1) + (long) at.blockX() * Integer.BYTES;
    if (at.threadX() == 0) {
      at.setInt(part, 0);
    }
    at.syncThreads();
    long all = (long) at.gridDimX() * at.blockDimX();
    for (long i = at.globalX(); i < at.intValue(3); i += all) {
      int _ = at.atomicAdd(part, at.getInt(at.pointer(0) + i * Integer.BYTES));
    }
    at.syncGrid();
    if (at.globalX() == 0) {
      int sum = 0;
      for (int block = 0; block < at.gridDimX(); block++) {
        sum += at.getInt(at.pointer(1) + (long) block * Integer.BYTES);
      }
      at.setInt(at.pointer(2), sum);
    }
  }

  private static void sumClusters(KernelThread at) {
    if (at.threadX() == 0) {
      set(at.shared(), 0, at.blockX() + 1);
    }
    at.syncCluster();
    if (at.threadX() == 0 && at.clusterRank() == 0) {
      int sum = 0;
      for (int block = 0; block < at.clusterSize(); block++) {
        sum += get(at.shared(block), 0);
      }
      at.setInt(at.pointer(0) + (long) (at.blockX() / at.clusterSize()) * Integer.BYTES, sum);
    }
    at.syncCluster();
  }

  private static int get(MemorySegment shared, int index) {
    return shared.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, index);
  }

  private static void set(MemorySegment shared, int index, int value) {
    shared.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, index, value);
  }
}
