package io.cuvette;

/** The end of an event. */
final class EventLifetime extends HandleLifetime {
  private final Session session;
  private final int device;
  private final long handle;
  private final Runnable end = this::endByOwner;
  private final Once destroyed = new Once();

  EventLifetime(Object event, Device device, long handle) {
    super(event, device.session().leaks().queue, device.session().leaks().site());
    this.session = device.session();
    this.device = device.id();
    this.handle = handle;
  }

  void register() {
    session.children().add(end);
    opened();
  }

  /** Its event was not made, for want of Java heap, and is destroyed by the caller. */
  void discard() {
    clear();
    session.children().remove(end);
  }

  @Override
  String describe() {
    return "event 0x" + Long.toHexString(handle);
  }

  @Override
  void release() {
    session.entrance().run(this::destroy);
  }

  @Override
  void failed() {
    session.leaks().failed(this);
  }

  private void endByOwner() {
    takeOver();
    destroy();
  }

  private void destroy() {
    destroyed.free(() -> session.driver().events().eventDestroy(device, handle));
    session.children().remove(end);
  }
}
