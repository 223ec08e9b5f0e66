package io.cuvette.instrument.internal.sanitizer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PotentialBlockSize;
import io.cuvette.instrument.internal.memory.Work;
import io.cuvette.instrument.internal.order.Access.Range;
import io.cuvette.instrument.internal.report.CallTrace;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The part of the sanitizer that watches libraries of kernels. Thread-safe. */
public final class SanitizerKernels implements KernelCalls {
  private final KernelCalls calls;
  private final boolean tells;
  private final SanitizerCore core;

  public SanitizerKernels(CudaDriver driver, SanitizerCore core) {
    this.calls = driver.kernels();
    this.tells = driver.isSimulated();
    this.core = core;
  }

  @Override
  public long libraryLoadData(byte[] image) {
    CallTrace site = CallTrace.of("libraryLoadData", "bytes", image.length);
    long library = calls.libraryLoadData(image);
    core.check(_ -> core.kernels.libraries.add(library, new HashSet<>(), site));
    return library;
  }

  /** The kernels go first: the driver may give their handles to others at once. */
  @Override
  public void libraryUnload(long library) {
    CallTrace site = CallTrace.of("libraryUnload", "library", library);
    Set<Long> ended = core.locked(findings -> core.kernels.end(library, site, findings));
    try {
      core.destroy(core.kernels.libraries, library, site, () -> calls.libraryUnload(library));
    } catch (RuntimeException e) {
      core.check(_ -> core.kernels.restore(ended));
      throw e;
    }
  }

  @Override
  public long libraryGetKernel(long library, String name) {
    CallTrace site = library("libraryGetKernel", library);
    long kernel = calls.libraryGetKernel(library, name);
    core.check(findings -> core.kernels.found(library, kernel, site, findings));
    return kernel;
  }

  @Override
  public int libraryGetKernelCount(long library) {
    CallTrace _ = library("libraryGetKernelCount", library);
    return calls.libraryGetKernelCount(library);
  }

  @Override
  public long[] libraryEnumerateKernels(long library, int count) {
    CallTrace site = library("libraryEnumerateKernels", library);
    long[] kernels = calls.libraryEnumerateKernels(library, count);
    core.check(findings -> {
      for (long kernel : kernels) {
        if (kernel != 0) {
          core.kernels.found(library, kernel, site, findings);
        }
      }
    });
    return kernels;
  }

  @Override
  public String kernelGetName(long kernel) {
    kernel("kernelGetName", kernel);
    return calls.kernelGetName(kernel);
  }

  @Override
  public KernelParameter kernelGetParamInfo(long kernel, int index) {
    kernel("kernelGetParamInfo", kernel);
    return calls.kernelGetParamInfo(kernel, index);
  }

  @Override
  public void launchKernel(
      int device, long stream, long kernel, LaunchShape shape, LaunchParameters parameters) {
    kernel("launchKernel", kernel);
    CallTrace site = CallTrace.often("launchKernel", "kernel", kernel, "stream", stream);
    Work work = new Work(site, device, stream);
    core.check(_ -> arguments(core, parameters).forEach(work::uses));
    LaunchParameters told =
        tells ? parameters.watchedBy(core.memory.launches.watcher()) : parameters;
    work.watchedBy(told.watcher());
    core.queue(work, () -> calls.launchKernel(device, stream, kernel, shape, told));
  }

  @Override
  public int kernelGetAttribute(int attribute, long kernel, int device) {
    kernel("kernelGetAttribute", kernel);
    return calls.kernelGetAttribute(attribute, kernel, device);
  }

  @Override
  public void kernelSetAttribute(int attribute, int value, long kernel, int device) {
    kernel("kernelSetAttribute", kernel);
    calls.kernelSetAttribute(attribute, value, kernel, device);
  }

  @Override
  public int occupancyMaxActiveBlocksPerMultiprocessor(
      int device, long kernel, int blockThreads, long dynamicSharedBytes) {
    kernel("occupancyMaxActiveBlocksPerMultiprocessor", kernel);
    return calls.occupancyMaxActiveBlocksPerMultiprocessor(
        device, kernel, blockThreads, dynamicSharedBytes);
  }

  @Override
  public PotentialBlockSize occupancyMaxPotentialBlockSize(
      int device, long kernel, long dynamicSharedBytes, int blockLimit) {
    kernel("occupancyMaxPotentialBlockSize", kernel);
    return calls.occupancyMaxPotentialBlockSize(device, kernel, dynamicSharedBytes, blockLimit);
  }

  @Override
  public long occupancyAvailableDynamicSMemPerBlock(
      int device, long kernel, int blocks, int blockThreads) {
    kernel("occupancyAvailableDynamicSMemPerBlock", kernel);
    return calls.occupancyAvailableDynamicSMemPerBlock(device, kernel, blocks, blockThreads);
  }

  @Override
  public int occupancyMaxActiveClusters(int device, long kernel, LaunchShape shape) {
    kernel("occupancyMaxActiveClusters", kernel);
    return calls.occupancyMaxActiveClusters(device, kernel, shape);
  }

  @Override
  public int occupancyMaxPotentialClusterSize(int device, long kernel, LaunchShape shape) {
    kernel("occupancyMaxPotentialClusterSize", kernel);
    return calls.occupancyMaxPotentialClusterSize(device, kernel, shape);
  }

  /**
   * What a kernel may use, for callers that hold the lock: each word of the arguments may be an
   * address, also inside a structure.
   */
  static List<Range> arguments(SanitizerCore core, LaunchParameters parameters) {
    List<Range> ranges = new ArrayList<>();
    for (KernelParameter place : parameters.places()) {
      for (long at = 0; at + Long.BYTES <= place.size(); at += Long.BYTES) {
        long word = parameters.values().get(ValueLayout.JAVA_LONG_UNALIGNED, place.offset() + at);
        Range used = core.memory.argument(word);
        if (used != null) {
          ranges.add(used);
        }
      }
    }
    return ranges;
  }

  private CallTrace library(String method, long library) {
    CallTrace site = CallTrace.passing(method, "library", library);
    core.check(findings -> core.kernels.libraries.use(library, site, findings));
    return site;
  }

  private void kernel(String method, long kernel) {
    CallTrace site = CallTrace.passing(method, "kernel", kernel);
    core.check(findings -> core.kernels.kernels.use(kernel, site, findings));
  }
}
