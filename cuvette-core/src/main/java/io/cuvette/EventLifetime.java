package io.cuvette;

/** The end of an event. */
final class EventLifetime extends HandleLifetime {
  private final Cuda cuda;
  private final int device;
  private final long handle;
  private final Runnable end = this::endByOwner;
  private final Once destroyed = new Once();

  EventLifetime(CudaEvent event, Cuda cuda) {
    super(event, cuda.leaks().queue, cuda.leaks().site());
    this.cuda = cuda;
    this.device = event.device().id();
    this.handle = event.handle();
  }

  void register() {
    cuda.owned().children().add(end);
    opened();
  }

  /** Its event was not made, for want of Java heap, and is destroyed by the caller. */
  void discard() {
    clear();
    cuda.owned().children().remove(end);
  }

  @Override
  String describe() {
    return "event 0x" + Long.toHexString(handle);
  }

  @Override
  void release() {
    cuda.owned().entrance().run(this::destroy);
  }

  @Override
  void failed() {
    cuda.leaks().failed(this);
  }

  private void endByOwner() {
    takeOver();
    destroy();
  }

  private void destroy() {
    destroyed.free(() -> cuda.driver().eventDestroy(device, handle));
    cuda.owned().children().remove(end);
  }
}
