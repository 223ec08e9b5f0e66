package io.cuvette.testkit.guide;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.Scope;
import java.lang.foreign.MemorySegment;

class FirstProgram {
  public static void main(String[] arguments) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) { // Cuda.open(): this machine's GPUs
      try (CudaStream stream = cuda.currentDevice().createStream();
          Scope _ = stream.use();
          Buffer buffer = cuda.allocate(4000)) { // from the caching pool, in order of the stream
        buffer.fillInts(7, stream); // queued, does not wait
        int[] back = new int[1000];
        buffer.copyTo(MemorySegment.ofArray(back)); // waits
        System.out.println(back[999] + " from " + cuda.currentDevice().name());
      }
      System.out.println(cuda.defaultMemoryPool().stats());
    }
  }
}
