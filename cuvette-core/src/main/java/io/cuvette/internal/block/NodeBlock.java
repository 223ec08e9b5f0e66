package io.cuvette.internal.block;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.order.StreamOrder;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;

/**
 * Memory that each launch of a captured graph allocates. Closed in the capture, it is freed by the
 * graph; closed later, what the last launch left is freed in order of the stream.
 */
public final class NodeBlock extends Block {
  private final Session session;
  private final Device device;
  private final DriverStream stream;
  private final Capture capture;
  private final long address;
  private final long bytes;
  private final Once given = new Once();
  private final Runnable end = this::endByOwner;

  private NodeBlock(Face buffer, OpenStream stream, Capture capture, long address, long bytes) {
    super(buffer, null, null, stream.state); // whose bytes are there depends on launches
    this.session = stream.on().session();
    this.device = stream.on();
    this.stream = stream.state;
    this.capture = capture;
    this.address = address;
    this.bytes = bytes;
  }

  /**
   * Adds an allocation to what a stream captures (cuMemAllocAsync).
   *
   * @throws IllegalStateException if it is not capturing
   */
  public static Face allocate(Faces faces, long bytes, OpenStream stream) {
    DirectMemory.check(bytes, stream);
    CudaDriver driver = stream.hold();
    try {
      Capture capture = stream.allocatesFor();
      if (capture == null) {
        throw new IllegalStateException(
            "allocate: %s is not capturing a graph (expected: one that is, or another resource)"
                .formatted(stream));
      }
      if (bytes == 0) {
        return DirectMemory.empty(faces, stream);
      }
      int id = stream.on().id();
      long address = driver.ordered().memAllocAsync(id, bytes, stream.state.handle);
      return own(faces, address, bytes, stream, capture);
    } finally {
      stream.unhold();
    }
  }

  private static Face own(
      Faces faces, long address, long bytes, OpenStream stream, Capture capture) {
    try {
      Face buffer = faces.make(address, bytes, stream);
      NodeBlock block = new NodeBlock(buffer, stream, capture, address, bytes);
      faces.own(buffer, block);
      block.session.children().add(block.end);
      block.opened();
      return buffer;
    } catch (OutOfMemoryError e) {
      CudaDriver driver = stream.state.session.driver();
      driver.ordered().memFreeAsync(stream.on().id(), address, stream.state.handle);
      throw e;
    }
  }

  @Override
  public long blockBytes() {
    return bytes;
  }

  @Override
  public boolean deniesAccess(Device other) {
    return other != device;
  }

  @Override
  public int depth() {
    return BlockReports.FOREIGN;
  }

  @Override
  public String describe() {
    return "buffer of %d bytes at 0x%x, of a graph".formatted(bytes, address);
  }

  @Override
  public void giveBack() {
    session.gate().run(() -> give(this::free));
  }

  @Override
  public void failed() {
    session.leaks().failed(this);
  }

  private void endByOwner() {
    abandon();
    give(this::freePlainly);
  }

  private void give(Runnable free) {
    free.run();
    session.children().remove(end);
  }

  private void free() {
    if (!stream.ending().tryHoldAgain()) {
      freePlainly();
      return;
    }
    try {
      Capture now = stream.capture();
      while (now == capture) {
        if (freeInCapture()) {
          return;
        }
        now = stream.capture();
      }
      if (now == null) {
        orderBehindUses();
        given.free(this::freeInOrder);
      } else {
        freePlainly(); // this is no work of the other graph
      }
    } finally {
      stream.ending().unhold();
    }
  }

  /**
   * Frees it as a part of its capture, which nobody ends meanwhile: the driver crashes if a capture
   * ends while work of it is being queued. False if that is over.
   */
  private boolean freeInCapture() {
    return stream.capturing.alone(() -> {
      boolean goesOn = stream.capture() == capture;
      if (goesOn) {
        given.free(this::freeInOrder);
      }
      return goesOn;
    });
  }

  private void freeInOrder() {
    unlessFree(() -> session.driver().ordered().memFreeAsync(device.id(), address, stream.handle));
  }

  private void orderBehindUses() {
    for (var use = uses(); use != null; use = use.next()) {
      if (!StreamOrder.follow(use.stream(), stream)) {
        boolean _ = use.stream().await();
      }
    }
  }

  private void freePlainly() {
    given.free(() -> unlessFree(() -> session.driver().memory().memFree(device.id(), address)));
  }

  /** No launch has allocated it, or the next one has freed it, or its capture is just given up. */
  private static void unlessFree(Runnable free) {
    try {
      free.run();
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
    }
  }
}
