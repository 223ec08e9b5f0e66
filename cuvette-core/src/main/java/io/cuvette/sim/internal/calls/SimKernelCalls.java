package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PotentialBlockSize;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.Ptx;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.SimMachine;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The calls about libraries of kernels, which are read but not run. Thread-safe. */
public final class SimKernelCalls implements KernelCalls {
  /** The handles of the kernels by name. */
  public final HandleTable<Map<String, Long>> libraries =
      new HandleTable<>(HandleKind.LIBRARY, false);

  private final HandleTable<Kernel> kernels = new HandleTable<>(HandleKind.KERNEL, false);
  private final SimMachine machine;

  private record Kernel(String name, List<KernelParameter> parameters) {}

  public SimKernelCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public long libraryLoadData(byte[] image) {
    return machine.callLong(
        () -> {
          Map<String, Long> found = new LinkedHashMap<>();
          Ptx.kernels(image)
              .forEach((name, sizes) -> found.put(name, kernels.add(new Kernel(name, sizes))));
          return libraries.add(found);
        },
        () -> "cuLibraryLoadData(bytes=%d)".formatted(image.length));
  }

  @Override
  public void libraryUnload(long library) {
    machine.run(
        () -> libraries.remove(library).values().forEach(kernels::remove),
        () -> call("cuLibraryUnload", "library", library));
  }

  @Override
  public long libraryGetKernel(long library, String name) {
    return machine.callLong(
        () -> {
          Map<String, Long> found = libraries.get(library);
          Long kernel = found.get(name);
          if (kernel == null) {
            throw new SimRefusal(
                CudaStatus.NOT_FOUND,
                "name: %s (expected: one of the kernels %s)".formatted(name, found.keySet()));
          }
          return kernel;
        },
        () -> "cuLibraryGetKernel(library=0x%x, name=%s)".formatted(library, name));
  }

  @Override
  public int libraryGetKernelCount(long library) {
    return machine.call(
        () -> libraries.get(library).size(),
        () -> call("cuLibraryGetKernelCount", "library", library));
  }

  @Override
  public long[] libraryEnumerateKernels(long library, int count) {
    return machine.call(
        () -> {
          if (count < 1) {
            throw SimRefusal.invalidValue("count: %d (expected: >= 1)".formatted(count));
          }
          long[] result = new long[count];
          int next = 0;
          for (long kernel : libraries.get(library).values()) {
            if (next < count) {
              result[next++] = kernel;
            }
          }
          return result;
        },
        () -> "cuLibraryEnumerateKernels(library=0x%x, count=%d)".formatted(library, count));
  }

  @Override
  public String kernelGetName(long kernel) {
    return machine.call(
        () -> kernels.get(kernel).name(), () -> call("cuKernelGetName", "kernel", kernel));
  }

  @Override
  public KernelParameter kernelGetParamInfo(long kernel, int index) {
    return machine.call(
        () -> {
          List<KernelParameter> parameters = kernels.get(kernel).parameters();
          if (index < 0 || index >= parameters.size()) {
            throw SimRefusal.invalidValue(
                "index: %d (expected: >= 0 and below %d, the number of parameters)"
                    .formatted(index, parameters.size()));
          }
          return parameters.get(index);
        },
        () -> "cuKernelGetParamInfo(kernel=0x%x, index=%d)".formatted(kernel, index));
  }

  /** Not yet. */
  @Override
  public void launchKernel(
      int device, long stream, long kernel, LaunchShape shape, LaunchParameters parameters) {
    refuse("cuLaunchKernelEx");
  }

  @Override
  public int kernelGetAttribute(int attribute, long kernel, int device) {
    return refuse("cuKernelGetAttribute");
  }

  @Override
  public void kernelSetAttribute(int attribute, int value, long kernel, int device) {
    refuse("cuKernelSetAttribute");
  }

  @Override
  public int occupancyMaxActiveBlocksPerMultiprocessor(
      int device, long kernel, int blockThreads, long dynamicSharedBytes) {
    return refuse("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  }

  @Override
  public PotentialBlockSize occupancyMaxPotentialBlockSize(
      int device, long kernel, long dynamicSharedBytes, int blockLimit) {
    return new PotentialBlockSize(0, refuse("cuOccupancyMaxPotentialBlockSize"));
  }

  @Override
  public long occupancyAvailableDynamicSMemPerBlock(
      int device, long kernel, int blocks, int blockThreads) {
    return refuse("cuOccupancyAvailableDynamicSMemPerBlock");
  }

  @Override
  public int occupancyMaxActiveClusters(int device, long kernel, LaunchShape shape) {
    return refuse("cuOccupancyMaxActiveClusters");
  }

  @Override
  public int occupancyMaxPotentialClusterSize(int device, long kernel, LaunchShape shape) {
    return refuse("cuOccupancyMaxPotentialClusterSize");
  }

  private int refuse(String function) {
    return machine.call(
        () -> {
          throw new SimRefusal(
              CudaStatus.NOT_SUPPORTED, "the simulated device does not launch kernels yet");
        },
        () -> function + "()");
  }

  private static String call(String name, String parameter, long handle) {
    return "%s(%s=0x%x)".formatted(name, parameter, handle);
  }
}
