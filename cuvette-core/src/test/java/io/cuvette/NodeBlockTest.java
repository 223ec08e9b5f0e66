package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.NodeBlock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that a graph allocates and that nobody has, for want of Java heap. */
class NodeBlockTest {
  private static final int BYTES = 1 << 16;

  private static void refused(boolean hasBuffer, CudaStream stream) {
    assertThatThrownBy(() -> NodeBlock.allocate(new WithoutHeap(hasBuffer), BYTES, stream.core()))
        .isInstanceOf(OutOfMemoryError.class);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void memoryWithoutHeapForItsBuffer_isFreedByItsGraph(boolean hasBuffer) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      CudaDevice device = cuda.device(0);
      CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
      GraphMemoryResource resource = new GraphMemoryResource(device);
      try (CudaGraph graph = stream.capture(() -> refused(hasBuffer, stream));
          CudaGraphExec executable = graph.instantiate()) {
        for (int i = 0; i < 2; i++) { // memory that is left would keep the second from running
          executable.launch(stream);
          stream.synchronize();
          assertThat(resource.usedMemCurrent()).isZero();
        }
        assertThat(resource.usedMemHigh()).isGreaterThanOrEqualTo(BYTES);
      }
    }
  }

  @Test
  void memoryOfAGraph_isForItsOwnDeviceAlone() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDevice("sim:devices=2"))) {
      CudaDevice device = cuda.device(0);
      CudaDevice other = cuda.device(1);
      CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
      GraphMemoryResource resource = new GraphMemoryResource(device);
      try (CudaGraph graph =
          stream.capture(() -> {
            try (Buffer buffer = resource.allocate(BYTES, stream)) {
              Block block = ((BufferBase) buffer).block();
              assertThat(block.deniesAccess(device.core())).isFalse();
              assertThat(block.deniesAccess(other.core())).isTrue();
            }
          })) {
        assertThat(graph.isClosed()).isFalse();
      }
    }
  }
}
