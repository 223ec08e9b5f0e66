package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingVirtual;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.NodeBlock;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.GrowableBlock;
import io.cuvette.internal.paged.Paging;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What the driver gave goes back to it if there is no Java heap for what stands for it. */
class FullHeapStepsTest {
  private final List<Long> reserved = new ArrayList<>();

  private CudaDriver counting(CudaDriver driver) {
    VirtualCalls calls =
        new ForwardingVirtual(driver.virtual()) {
          @Override
          public long memAddressReserve(long bytes, long alignment, long address) {
            long range = super.memAddressReserve(bytes, alignment, address);
            reserved.add(range);
            return range;
          }

          @Override
          public void memAddressFree(long address, long bytes) {
            super.memAddressFree(address, bytes);
            boolean _ = reserved.remove(address);
          }
        };
    return new ForwardingDriver(driver) {
      @Override
      public VirtualCalls virtual() {
        return calls;
      }
    };
  }

  @Test
  void addressesOfAGrowableBufferThatCannotBeMade_areGivenBack() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::counting))) {
      CudaDevice device = cuda.device(0);
      Paging paging = Paging.of(device.core(), List.of());
      OpenStream stream = device.nullStream().core();
      for (boolean hasBuffer : new boolean[] {false, true}) {
        Faces faces = new WithoutHeap(hasBuffer);
        GrowableBlock.Maker maker = (address, of) -> faces.make(address, 0, of);
        assertThatThrownBy(() -> GrowableBlock.make(maker, faces, paging, 1 << 20, stream))
            .isInstanceOf(OutOfMemoryError.class);
        assertThat(reserved).isEmpty();
      }
    }
  }

  /** A graph that leaves memory cannot be launched again. */
  @Test
  void memoryOfAGraphThatCannotBeMade_isFreedByTheGraph() {
    DevicesAsked asked = new DevicesAsked();
    CudaOptions two = CudaOptions.simulated().withDevice("sim:devices=2");
    try (Cuda cuda = Cuda.open(two.withDecorator(asked::over));
        CudaStream stream = cuda.device(1).createStream(StreamOptions.NON_BLOCKING)) {
      Runnable allocate =
          () ->
              assertThatThrownBy(() -> NodeBlock.allocate(new WithoutHeap(), 4096, stream.core()))
                  .isInstanceOf(OutOfMemoryError.class);
      assertThat(
              asked.during(() -> {
                try (CudaGraph graph = stream.capture(allocate::run);
                    CudaGraphExec executable = graph.instantiate()) {
                  executable.launch(stream);
                  executable.launch(stream);
                  stream.synchronize();
                }
              }))
          .containsExactly(1);
    }
  }
}
