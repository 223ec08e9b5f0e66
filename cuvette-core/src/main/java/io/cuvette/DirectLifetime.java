package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.UserFailures;

/**
 * The end of memory that no pool caches. The driver's plain free does not know streams other than
 * by waiting for the device, so streams that used host memory are waited for first.
 */
final class DirectLifetime extends BlockLifetime {
  private final Cuda cuda;
  private final Runnable free;
  private final Runnable end = this::endByOwner;
  private final String text;
  private final long bytes;
  private final CudaDevice device;
  private final long address;

  /** Whether somebody else allocated the memory, who may have it from a pool of the driver. */
  private final boolean foreign;

  /** Whether code of the user gives it back. */
  private final boolean byUser;

  private final Once given = new Once();

  private DirectLifetime(
      BufferBase buffer, Cuda cuda, Runnable free, boolean foreign, boolean byUser) {
    super(buffer, cuda.leaks().queue, cuda.leaks().site(), null);
    this.cuda = cuda;
    this.device = buffer.device();
    this.address = buffer.address();
    this.free = free;
    this.foreign = foreign;
    this.byUser = byUser;
    this.bytes = buffer.byteSize();
    this.text = "buffer of %d bytes at 0x%x".formatted(bytes, buffer.address());
  }

  /** Makes a buffer own plain memory of the driver that {@code free} gives back. */
  static void own(BufferBase buffer, Runnable free) {
    own(buffer, free, false, false);
  }

  /** Makes a buffer own memory that somebody else allocated and {@code free} gives back. */
  static void ownForeign(BufferBase buffer, Runnable free) {
    own(buffer, free, true, false);
  }

  /** The same for memory that code of the user gives back, which nobody waits for. */
  static void ownAdopted(BufferBase buffer, Runnable free) {
    own(buffer, free, true, true);
  }

  private static void own(BufferBase buffer, Runnable free, boolean foreign, boolean byUser) {
    Cuda cuda = buffer.device().cuda();
    DirectLifetime lifetime = new DirectLifetime(buffer, cuda, free, foreign, byUser);
    buffer.own(lifetime);
    cuda.owned().children().add(lifetime.end);
    lifetime.joinCapture(buffer.stream().state);
  }

  /** Memory taken in order of a capturing stream is for what is captured. */
  private void joinCapture(StreamState stream) {
    try {
      Capture capture = stream.capture();
      if (capture != null) {
        use(capture.checked("allocate", stream));
      }
    } catch (RuntimeException e) {
      Failures.closeAfter(e, this::close);
      throw e;
    }
  }

  @Override
  long blockBytes() {
    return bytes;
  }

  @Override
  boolean keepsOut(CudaDevice other) {
    return foreign && ForeignMemory.keepsOut(device, address, other);
  }

  @Override
  BufferDescriptor descriptor(BufferBase part) {
    return Sharing.plain(part, part.address());
  }

  @Override
  String describe() {
    return text;
  }

  @Override
  void giveBack() {
    if (isCaptured()) {
      cuda.captures().releaseLater(this);
      return;
    }
    if (cuda.callbacks().putOff(this::releaseAgain)) {
      return;
    }
    for (StreamUse use = uses(); use != null; use = use.next()) {
      use.stream().await();
    }
    if (byUser) {
      give();
    } else {
      cuda.callbacks().awaitHolding();
      cuda.owned().entrance().run(this::give);
    }
  }

  @Override
  void failed() {
    cuda.leaks().failed(this);
  }

  @Override
  void failedUntold(Throwable e) {
    if (byUser && !(e instanceof CudaException)) {
      UserFailures.uncaught(e);
    } else {
      super.failedUntold(e);
    }
  }

  private void endByOwner() {
    abandon();
    give();
  }

  private void give() {
    given.run(free);
    cuda.owned().children().remove(end);
  }
}
