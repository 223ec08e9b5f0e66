package io.cuvette.internal.block;

import io.cuvette.BufferDescriptor;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.base.UserFailures;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.lifetime.Children;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.Streams;
import java.lang.foreign.MemorySegment;
import java.util.function.LongConsumer;

/**
 * The end of memory that no pool caches. The driver's plain free does not know streams other than
 * by waiting for the device, so streams that used host memory are waited for first.
 */
public final class PlainBlock extends Block {
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

  private final By by;

  private final Once given = new Once();

  /** Who gives the memory, and gets it back. */
  public enum By {
    /** The driver, without a pool. */
    DRIVER,

    /** Somebody else, who may have it from a pool of the driver. */
    OTHERS,

    /** The same, released by code of the user, which is not waited for. */
    USER
  }

  private PlainBlock(
      Face buffer, OpenStream stream, long address, long bytes, LongConsumer free, By by) {
    super(buffer, stream.on().session().leaks().queue, stream.on().session().leaks().site(), null);
    this.streams = stream.state.streams;
    this.session = streams.session();
    this.device = stream.on();
    this.address = address;
    this.free = free;
    this.by = by;
    this.bytes = bytes;
    this.text = "buffer of %d bytes at 0x%x".formatted(bytes, address);
  }

  /**
   * Makes a buffer that owns memory which was just given; who gave it gets it back if there is no
   * Java heap for that.
   *
   * @param free gives the memory back
   */
  public static Face own(
      Faces faces, long address, long bytes, OpenStream stream, LongConsumer free, By by) {
    PlainBlock block;
    Face buffer;
    try {
      buffer = faces.make(address, bytes, stream);
      block = new PlainBlock(buffer, stream, address, bytes, free, by);
      list(faces, buffer, block);
    } catch (OutOfMemoryError e) {
      free.accept(address);
      throw e;
    }
    block.joinCapture(stream.state);
    return buffer;
  }

  /** The same for memory of the driver that the host sees as a segment. */
  public static Face own(Faces faces, MemorySegment given, OpenStream stream, LongConsumer free) {
    long address = given.address();
    PlainBlock block;
    Face buffer;
    try {
      buffer = faces.make(given, stream);
      block = new PlainBlock(buffer, stream, address, given.byteSize(), free, By.DRIVER);
      list(faces, buffer, block);
    } catch (OutOfMemoryError e) {
      free.accept(address);
      throw e;
    }
    block.joinCapture(stream.state);
    return buffer;
  }

  /** Has a buffer of the null stream own page-locking of the program; {@code free} ends that. */
  public static void ownRegistered(
      Faces faces, Face buffer, MemorySegment memory, OpenStream stream, LongConsumer free) {
    try {
      PlainBlock block =
          new PlainBlock(buffer, stream, memory.address(), memory.byteSize(), free, By.DRIVER);
      block.streams.views().register(block, memory);
      list(faces, buffer, block);
    } catch (OutOfMemoryError e) {
      free.accept(memory.address());
      throw e;
    }
  }

  /** Makes one own memory that code of the user releases, which is not waited for. */
  public static void ownAdopted(Memory memory, Runnable free) {
    OpenStream stream = memory.order();
    PlainBlock block =
        new PlainBlock(
            memory.face(), stream, memory.address(), memory.byteSize(), _ -> free.run(), By.USER);
    list(memory.faces(), memory.face(), block);
  }

  /** All or nothing, should there be no Java heap. */
  private static void list(Faces faces, Face buffer, PlainBlock block) {
    Children children = block.session.children();
    try {
      children.add(block.end);
      faces.own(buffer, block);
      block.opened();
    } catch (OutOfMemoryError e) {
      block.clear();
      children.remove(block.end);
      throw e;
    }
  }

  /** Memory taken in order of a capturing stream is for what is captured. */
  private void joinCapture(DriverStream stream) {
    try {
      Capture capture = stream.capture();
      if (capture != null) {
        use(capture.checked("allocate", stream));
      }
    } catch (RuntimeException e) {
      Failures.runAfter(e, () -> close(this));
      throw e;
    }
  }

  @Override
  public long blockBytes() {
    return bytes;
  }

  @Override
  public boolean deniesAccess(Device other) {
    return by != By.DRIVER && Addresses.deniesAccess(device, address, other);
  }

  @Override
  public boolean isPlain() {
    return by == By.DRIVER || Addresses.isPlain(device, address);
  }

  @Override
  public int depth() {
    return by != By.DRIVER ? BlockReports.FOREIGN : super.depth();
  }

  @Override
  public BufferDescriptor descriptor(Memory part) {
    return PlainExport.plain(part, part.address());
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public boolean wouldWait() {
    return by != By.USER && session.frees().areHolding();
  }

  @Override
  public void giveBack() {
    if (isCaptured()) {
      streams.releaseAfterGraphs(this);
      return;
    }
    if (session.frees().putOff(wouldWait(), this::releaseAgain)) {
      return;
    }
    for (var use = uses(); use != null; use = use.next()) {
      boolean _ = use.stream().await();
    }
    if (by == By.USER) {
      give();
    } else {
      session.frees().free(() -> session.gate().run(giveOnce), this::releaseAgain);
    }
  }

  @Override
  public void failed() {
    session.leaks().failed(this);
  }

  @Override
  public void failedUntold(Throwable e) {
    if (by == By.USER && (given.isDone() || !(e instanceof CudaException))) {
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
    if (by == By.USER) {
      given.call(freeNow);
    } else {
      given.free(freeNow);
    }
    session.children().remove(end);
  }
}
