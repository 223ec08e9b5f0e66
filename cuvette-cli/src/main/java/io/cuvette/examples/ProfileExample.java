package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.LibraryHandle;
import io.cuvette.Nvtx;
import io.cuvette.NvtxCategory;
import io.cuvette.NvtxDomain;
import io.cuvette.NvtxEvent;
import io.cuvette.NvtxRange;
import io.cuvette.Registration;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathLibrary;

/** What profilers are shown: marks, ranges, names, and when to collect. Stateless. */
public final class ProfileExample {
  private static final int BYTES = 1 << 20;
  private static final int FLOATS = 256;
  private static final int STEPS = 3;

  private ProfileExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    CudaDevice device = cuda.currentDevice();
    out.say("Nsight shows these ranges: nsys profile, or ncu --nvtx, before the command.");
    out.show("a tool listens", Nvtx.isListening());
    Nvtx.name(device, "first device");
    try (CudaStream stream = device.createStream();
        Registration _ = device.profiler().profile()) {
      Nvtx.name(stream, "work of the example");
      steps(cuda, stream, out);
      library(cuda, stream, out);
      stream.synchronize();
    }
    Nvtx.mark("done", 0);
    device.synchronize();
    cuda.defaultMemoryPool().freeAllBlocks();
    out.check("held", cuda.defaultMemoryPool().totalBytes(), 0L);
  }

  private static void steps(Cuda cuda, CudaStream stream, Output out) {
    out.say("Ranges of a thread are nested; a payload is a number that the tool shows.");
    NvtxDomain domain = Nvtx.domain("example");
    NvtxCategory fills = domain.category(1, "fills");
    NvtxEvent step = NvtxEvent.of(domain.register("step")).category(fills).color(3);
    int around = domain.rangePush("all steps");
    try (CudaModule module = KernelExample.module(cuda);
        Buffer buffer = cuda.allocate(BYTES, stream)) {
      CudaKernel kernel = module.kernel("saxpy");
      for (int i = 0; i < STEPS; i++) {
        int depth = domain.rangePush(step.payload(i));
        try {
          buffer.fill((byte) i, stream);
          stream.launch(kernel, LaunchConfig.of(1, FLOATS), 0f, buffer, buffer, FLOATS);
        } finally {
          domain.rangePop();
        }
        out.check("ranges around step " + i, depth, around + 1);
      }
    } finally {
      domain.rangePop();
    }
  }

  private static void library(Cuda cuda, CudaStream stream, Output out) {
    out.say("A handle of cuBLAS works in memory of the pool, on the stream it is lent for.");
    try (NvtxRange _ = Nvtx.rangeStart("cuBLAS");
        LibraryHandle handle = stream.device().useLibrary(MathLibrary.CUBLAS, stream, BYTES)) {
      out.show("version", cuda.driver().math().mathLibraryVersion(handle.library()));
      out.check("workspace", handle.workspaceBytes(), (long) BYTES);
      out.check("in use", cuda.defaultMemoryPool().usedBytes(), (long) BYTES);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.FILE_NOT_FOUND) {
        throw e;
      }
      out.show("cuBLAS", "missing; install " + MathLibrary.CUBLAS.file().install());
    }
  }
}
