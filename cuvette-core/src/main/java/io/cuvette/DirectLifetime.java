package io.cuvette;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.UserFailures;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

/**
 * The end of memory that no pool caches. The driver's plain free does not know streams other than
 * by waiting for the device, so streams that used host memory are waited for first.
 */
final class DirectLifetime extends BlockLifetime {
  private final Streams streams;
  private final Session session;
  private final LongConsumer free;
  private final Runnable freeNow = this::free;
  private final Runnable end = this::endByOwner;
  private final Runnable giveOnce = this::give;
  private final String text;
  private final long bytes;
  private final Device device;
  private final long address;

  /** Whether somebody else allocated the memory, who may have it from a pool of the driver. */
  private final boolean foreign;

  /** Whether code of the user gives it back. */
  private final boolean byUser;

  private final Once given = new Once();

  private DirectLifetime(
      BufferBase buffer, Streams streams, LongConsumer free, boolean foreign, boolean byUser) {
    super(buffer, streams.session().leaks().queue, streams.session().leaks().site(), null);
    this.streams = streams;
    this.session = streams.session();
    this.device = buffer.on();
    this.address = buffer.address();
    this.free = free;
    this.foreign = foreign;
    this.byUser = byUser;
    this.bytes = buffer.byteSize();
    this.text = "buffer of %d bytes at 0x%x".formatted(bytes, buffer.address());
  }

  /**
   * Makes a buffer that owns plain memory which the driver has just given; it gets it back if there
   * is no Java heap for that.
   *
   * @param kind makes the buffer
   * @param free gives the memory back
   */
  static <B extends BufferBase> B own(long address, LongFunction<B> kind, LongConsumer free) {
    return own(address, kind, free, false);
  }

  /** The same for memory that somebody else has just allocated. */
  static <B extends BufferBase> B ownForeign(
      long address, LongFunction<B> kind, LongConsumer free) {
    return own(address, kind, free, true);
  }

  private static <B extends BufferBase> B own(
      long address, LongFunction<B> kind, LongConsumer free, boolean foreign) {
    B buffer;
    DirectLifetime lifetime;
    try {
      buffer = kind.apply(address);
      lifetime = list(buffer, free, foreign, false);
    } catch (OutOfMemoryError e) {
      free.accept(address);
      throw e;
    }
    lifetime.joinCapture(buffer.order().state);
    return buffer;
  }

  /** Makes a buffer own memory that code of the user gives back, which nobody waits for. */
  static void ownAdopted(BufferBase buffer, Runnable free) {
    list(buffer, _ -> free.run(), true, true).joinCapture(buffer.order().state);
  }

  /** All or nothing, should there be no Java heap. */
  private static DirectLifetime list(
      BufferBase buffer, LongConsumer free, boolean foreign, boolean byUser) {
    Streams streams = buffer.order().state.streams;
    Session session = streams.session();
    DirectLifetime lifetime = new DirectLifetime(buffer, streams, free, foreign, byUser);
    try {
      session.children().add(lifetime.end);
      buffer.own(lifetime);
      return lifetime;
    } catch (OutOfMemoryError e) {
      lifetime.clear();
      session.children().remove(lifetime.end);
      throw e;
    }
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
  boolean keepsOut(Device other) {
    return foreign && Addresses.keepsOut(device, address, other);
  }

  @Override
  int depth() {
    return foreign ? BlockReports.FOREIGN : super.depth();
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
  boolean wouldWait() {
    return !byUser && streams.callbacks().areHolding();
  }

  @Override
  void giveBack() {
    if (isCaptured()) {
      streams.captures().releaseLater(this);
      return;
    }
    if (streams.callbacks().putOff(this, this::releaseAgain)) {
      return;
    }
    for (StreamUse use = uses(); use != null; use = use.next()) {
      use.stream().await();
    }
    if (byUser) {
      give();
    } else {
      streams.callbacks().free(() -> session.entrance().run(giveOnce), this::releaseAgain);
    }
  }

  @Override
  void failed() {
    session.leaks().failed(this);
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

  private void free() {
    free.accept(address);
  }

  private void give() {
    given.free(freeNow);
    session.children().remove(end);
  }
}
