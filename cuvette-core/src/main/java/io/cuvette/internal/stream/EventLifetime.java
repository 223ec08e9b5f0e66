package io.cuvette.internal.stream;

import io.cuvette.internal.base.Once;
import io.cuvette.internal.lifetime.HandleLifetime;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;

/** The end of an event. */
public final class EventLifetime extends HandleLifetime {
  private final Session session;
  private final int device;
  private final long handle;
  private final Runnable end = this::endByOwner;
  private final Once destroyed = new Once();

  public EventLifetime(Object event, Device device, long handle) {
    super(event, device.session().leaks().queue, device.session().leaks().site());
    this.session = device.session();
    this.device = device.id();
    this.handle = handle;
  }

  public void register() {
    session.children().add(end);
    opened();
  }

  /** Its event was not made, for want of Java heap, and is destroyed by the caller. */
  public void discard() {
    clear();
    session.children().remove(end);
  }

  @Override
  public String describe() {
    return "event 0x" + Long.toHexString(handle);
  }

  @Override
  public void release() {
    session.entrance().run(this::destroy);
  }

  @Override
  public void failed() {
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
