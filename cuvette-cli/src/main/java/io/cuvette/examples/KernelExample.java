package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.sim.KernelThread;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedKernels;
import io.cuvette.sim.SimulatedParameter;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;

/** A kernel from its source to its results: {@code saxpy.cu}. Stateless. */
public final class KernelExample {
  private static final int COUNT = 1000;
  private static final int THREADS = 256;
  private static final float FACTOR = 2.5f;

  /** What runs in place of the code on the simulated device. */
  private static final SimulatedKernel TWIN =
      SimulatedKernel.of(
          "saxpy",
          KernelExample::saxpy,
          SimulatedParameter.FLOAT,
          SimulatedParameter.POINTER,
          SimulatedParameter.POINTER,
          SimulatedParameter.INT);

  private KernelExample() {}

  /** What a launch of the kernel looks like. */
  @FunctionalInterface
  public interface Saxpy {
    /** Adds {@code factor} times {@code x} to {@code y}. */
    void launch(
        CudaStream stream, LaunchConfig config, float factor, Buffer x, Buffer y, int count);
  }

  /** The code, which also the simulated device can run from now on; the caller closes it. */
  static CudaModule module(Cuda cuda) {
    SimulatedKernels.register(TWIN);
    return CudaModule.load(cuda, code("saxpy.ptx"));
  }

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    out.say("The code is PTX, as nvcc makes it of saxpy.cu; one module serves all devices.");
    try (CudaModule module = module(cuda);
        Buffer x = cuda.allocate(COUNT * Float.BYTES);
        Buffer y = cuda.allocate(COUNT * Float.BYTES)) {
      CudaKernel kernel = module.kernel("saxpy");
      out.check("parameters", kernel.parameters().map(all -> all.size()).orElse(4), 4);
      out.show(
          "blocks at once on a multiprocessor",
          kernel.maxActiveBlocks(cuda.currentDevice(), THREADS, 0));
      x.copyFrom(numbers());
      y.copyFrom(numbers());
      LaunchConfig config = LaunchConfig.forElements(COUNT, THREADS);
      out.check("blocks", config.blocks().count(), 4L);
      launches(cuda.currentStream(), kernel, config, x, y);
      float[] result = new float[COUNT];
      y.copyTo(MemorySegment.ofArray(result));
      float[] expected = new float[COUNT];
      for (int i = 0; i < COUNT; i++) {
        expected[i] = i + 3 * FACTOR * i;
      }
      out.check("first wrong result", Arrays.mismatch(result, expected), -1);
    }
    cuda.currentDevice().synchronize();
    cuda.defaultMemoryPool().freeAllBlocks();
  }

  private static void launches(
      CudaStream stream, CudaKernel kernel, LaunchConfig config, Buffer x, Buffer y) {
    stream.launch(kernel, config, FACTOR, x, y, COUNT);
    KernelArguments packed = kernel.pack(FACTOR, x, y, COUNT); // checked once, launched often
    packed.launch(stream, config);
    Saxpy saxpy = kernel.bind(Saxpy.class); // or as a call of Java
    saxpy.launch(stream, config, FACTOR, x, y, COUNT);
  }

  private static MemorySegment numbers() {
    float[] numbers = new float[COUNT];
    for (int i = 0; i < COUNT; i++) {
      numbers[i] = i;
    }
    return MemorySegment.ofArray(numbers);
  }

  private static void saxpy(KernelThread thread) {
    long i = thread.globalX();
    if (i < thread.intValue(3)) {
      long y = thread.pointer(2) + i * Float.BYTES;
      float x = thread.getFloat(thread.pointer(1) + i * Float.BYTES);
      thread.setFloat(y, thread.floatValue(0) * x + thread.getFloat(y));
    }
  }

  private static byte[] code(String name) {
    try (InputStream text =
        Objects.requireNonNull(KernelExample.class.getResourceAsStream(name), name)) {
      return text.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
