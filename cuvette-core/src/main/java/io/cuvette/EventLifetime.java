package io.cuvette;

import java.util.concurrent.atomic.AtomicBoolean;

/** The end of an event. */
final class EventLifetime extends Lifetime {
  private final Cuda cuda;
  private final int device;
  private final long handle;
  private final Runnable end = this::destroy;
  private final AtomicBoolean destroyed = new AtomicBoolean();

  EventLifetime(CudaEvent event, Cuda cuda) {
    super(event, cuda.leaks().queue, cuda.leaks().site());
    this.cuda = cuda;
    this.device = event.device().id();
    this.handle = event.handle();
  }

  void register() {
    cuda.children().add(end);
  }

  @Override
  String describe() {
    return "event 0x" + Long.toHexString(handle);
  }

  @Override
  void release() {
    destroy();
  }

  /** Once for the user, and once more by the Cuda if that failed. */
  private void destroy() {
    if (destroyed.compareAndSet(false, true)) {
      try {
        cuda.driver().eventDestroy(device, handle);
      } catch (RuntimeException e) {
        destroyed.set(false);
        throw e;
      }
    }
    cuda.children().remove(end);
  }
}
