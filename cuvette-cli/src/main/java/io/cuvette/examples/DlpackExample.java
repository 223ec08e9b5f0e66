package io.cuvette.examples;

import static io.cuvette.array.ElementType.FLOAT32;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.array.CudaArray;
import io.cuvette.array.CudaArrays;
import io.cuvette.array.Dlpack;
import io.cuvette.array.DlpackOptions;
import io.cuvette.array.DlpackTensor;
import io.cuvette.array.HostArray;
import io.cuvette.array.NdArray;
import java.util.Arrays;

/**
 * Arrays that go to another library by DLPack and come from it. Both ends are here; one of them may
 * be PyTorch, CuPy, NumPy or TVM in this process. Stateless.
 */
public final class DlpackExample {
  private DlpackExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    device(cuda, out);
    host(cuda, out);
    cuda.defaultMemoryPool().freeAllBlocks(); // waits for what was given back
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
    out.check(
        "deleted: usedBytes()",
        cuda.defaultMemoryPool().stats(cuda.currentDevice()).usedBytes(),
        0L);
  }

  private static void device(Cuda cuda, Output out) {
    out.say("A view of an array on the device, for the stream that the consumer works on:");
    try (CudaStream consumer = cuda.currentDevice().createStream()) {
      DlpackTensor tensor;
      long address;
      try (CudaArray numbers = CudaArrays.of(cuda).arange(FLOAT32, 12)) {
        CudaArray table = numbers.reshape(3, 4).transpose();
        address = table.address();
        tensor = // the consumer's stream waits
            Dlpack.export(
                table, DlpackOptions.DEFAULTS.withStream(Dlpack.streamArgument(consumer)));
      } // closed here: the consumer has the memory still
      out.check("name of its capsule", tensor.capsuleName(), "dltensor_versioned");
      try (CudaArray taken = (CudaArray) Dlpack.take(cuda, tensor)) {
        out.check("the same address", taken.address() == address, true);
        out.check("shape", Arrays.toString(taken.shape()), "[4, 3]");
        out.check("element [1, 2]", taken.toArray(float[][].class)[1][2], 9f);
      }
    }
  }

  private static void host(Cuda cuda, Output out) {
    out.say("Page-locked memory, for a library that knows memory of the host alone:");
    try (HostArray numbers = HostArray.zerosPinned(cuda, FLOAT32, 8)) {
      DlpackTensor tensor =
          Dlpack.export(numbers, DlpackOptions.DEFAULTS.withPlainHost(true).withVersioned(false));
      try (NdArray taken = Dlpack.take(cuda, tensor)) {
        taken.fill(2.5);
      }
      out.check("written by who took it", numbers.getDouble(7), 2.5);
    }
  }
}
