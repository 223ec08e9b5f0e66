package io.cuvette.internal.async;

import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.OrderedMemory;
import java.util.function.LongUnaryOperator;

/**
 * A request for memory of the driver in order of a stream, which others may begin to capture at any
 * moment: the memory is never a node of their graph. For the one thread that makes it.
 */
final class OrderedRequest {
  /** A capture that was invalidated is none that memory could be for, and goes on all the same. */
  private static final int MOST_LOOKS = 100;

  private final OpenStream stream;
  private final LongUnaryOperator allocation;
  private long address;

  /**
   * A request.
   *
   * @param stream held by the caller
   * @param allocation allocates in order of a stream of the driver, and gives the address
   */
  OrderedRequest(OpenStream stream, LongUnaryOperator allocation) {
    this.stream = stream;
    this.allocation = allocation;
  }

  /**
   * Makes a buffer.
   *
   * @throws io.cuvette.driver.CudaException if the driver refuses
   */
  Face make(OrderedMemory memory, Faces faces, long bytes, long blockBytes) {
    Capture capture = null;
    int looks = 0;
    while (capture == null && !stream.state.ask(this::allocate)) {
      capture = stream.allocatesFor();
      if (capture != null) {
        address = OutsideCapture.allocate(stream.on(), allocation);
      } else if (++looks == MOST_LOOKS) {
        boolean _ = allocate(); // the driver says what is wrong
        break;
      }
    }
    return memory.own(faces, address, bytes, blockBytes, stream, capture);
  }

  private boolean allocate() {
    address = allocation.applyAsLong(stream.state.handle);
    return true;
  }
}
