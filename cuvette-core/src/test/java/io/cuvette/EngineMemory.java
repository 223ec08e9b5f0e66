package io.cuvette;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.stream.DriverStream;

/** Gives tests of the engine what a buffer stands for. */
public final class EngineMemory {
  private EngineMemory() {}

  @SuppressWarnings("exports") // to tests, which are of the module
  public static Memory of(Buffer buffer) {
    return ((BufferBase) buffer).memory();
  }

  @SuppressWarnings("exports")
  public static DriverStream streamOf(CudaStream stream) {
    return stream.state;
  }

  /** Descriptors that are only numbers. */
  public static DescriptorCalls descriptors() {
    return new FakeDescriptors();
  }
}
