package io.cuvette;

import io.cuvette.internal.block.HostView;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.transfer.Transfers;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * Managed memory: one address for the host and all devices, moved on demand. The host may touch it
 * while a device works only where the device has {@link DeviceAttribute#CONCURRENT_MANAGED_ACCESS}.
 * See {@link Buffer} for its operations and for threads.
 */
public final class ManagedBuffer extends BufferBase implements Buffer {
  private final HostView view;

  ManagedBuffer(long address, long bytes, OpenStream stream) {
    super(address, bytes, stream);
    this.view = new HostView();
  }

  private ManagedBuffer(ManagedBuffer of, long offset, long bytes) {
    super(of, offset, bytes);
    this.view = of.view;
  }

  /**
   * {@return the memory as a segment} It dies with the buffer: every access after {@link #close()}
   * throws IllegalStateException. Keep the buffer as long as the segment: a buffer that is not
   * reachable any more is released, and its segment dies with it.
   */
  public MemorySegment segment() {
    return view.of(memory(), whole().memory());
  }

  /**
   * {@return the memory as a byte buffer in the host's byte order, up to 2 GiB} It dies with the
   * buffer.
   */
  public ByteBuffer byteBuffer() {
    return HostView.byteBuffer(segment());
  }

  /**
   * Moves exactly this buffer's range to a location in stream order; the driver works in whole
   * pages (cuMemPrefetchAsync).
   *
   * @param target the place the bytes are moved to
   * @param stream the stream
   * @throws IllegalArgumentException if there is no such device
   * @throws IllegalStateException if the stream is capturing
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public void prefetch(MemoryLocation target, CudaStream stream) {
    Objects.requireNonNull(target, "target");
    checkOpen();
    OpenStream order = CudaStream.coreOf(stream);
    order.checkOf(on().session());
    range().check(target);
    order.checkNotCapturing("prefetch");
    if (byteSize() > 0) {
      block().advised();
      int on = order.on().id();
      Transfers.queue(
          order,
          memory(),
          driver ->
              driver
                  .memory()
                  .memPrefetchAsync(
                      on, address(), byteSize(), target.type(), target.id(), order.state.handle));
    }
  }

  /**
   * {@link #prefetch(MemoryLocation, CudaStream)} on the current stream of the buffer's device.
   *
   * @param target the place the bytes are moved to
   */
  public void prefetch(MemoryLocation target) {
    Objects.requireNonNull(target, "target");
    prefetch(target, device().cuda().currentStream(device()));
  }

  /**
   * {@return the place that this buffer's whole range was last moved to by {@link #prefetch}; empty
   * if parts of it never were or went to different places} It need not be there any more
   * (cuMemRangeGetAttribute).
   *
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public Optional<MemoryLocation> lastPrefetchLocation() {
    return range().lastPrefetch();
  }

  /**
   * Advises on the use of exactly this buffer's range (cuMemAdvise). It lasts until the memory goes
   * back to the driver: a {@link MemoryPool} of managed memory hands it on with its advice.
   *
   * @param advice the advice
   * @param location where the advice is about; some advice ignores it
   * @throws IllegalArgumentException if there is no such device, or the advice cannot be about it
   * @throws io.cuvette.driver.CudaException if the driver reports an error: NOT_SUPPORTED where it
   *     takes no such advice, as some do not for memory of a pool
   */
  public void advise(MemoryAdvice advice, MemoryLocation location) {
    Objects.requireNonNull(advice, "advice");
    Objects.requireNonNull(location, "location");
    range().advise(advice, location);
  }

  /**
   * {@return whether this buffer's whole range is advised to be read mostly, so that each reader
   * may have its own copy}
   */
  public boolean isReadMostly() {
    checkOpen();
    return range().isReadMostly();
  }

  /**
   * Sets or clears {@link #isReadMostly()}.
   *
   * @param mostly whether it is
   */
  public void setReadMostly(boolean mostly) {
    range()
        .advise(
            mostly ? MemoryAdvice.SET_READ_MOSTLY : MemoryAdvice.UNSET_READ_MOSTLY,
            MemoryLocation.host());
  }

  /**
   * {@return the preferred place of this buffer's whole range; empty if none was set or parts of it
   * differ} A driver before CUDA 13 gives a NUMA node as the host.
   */
  public Optional<MemoryLocation> preferredLocation() {
    return range().preferred();
  }

  /**
   * Sets {@link #preferredLocation()}.
   *
   * @param location the place
   */
  public void setPreferredLocation(MemoryLocation location) {
    Objects.requireNonNull(location, "location");
    range().advise(MemoryAdvice.SET_PREFERRED_LOCATION, location);
  }

  /** Takes {@link #preferredLocation()} back. */
  public void clearPreferredLocation() {
    range().advise(MemoryAdvice.UNSET_PREFERRED_LOCATION, MemoryLocation.host());
  }

  /**
   * {@return the devices and the host for which this buffer's whole range is mapped, as a live set:
   * reading queries the driver, adding and removing advises it} All elements are checked before the
   * first change; each change is a call of its own. NUMA nodes of the host cannot be added. In
   * ascending order, the host last.
   */
  public Set<MemoryLocation> accessedBy() {
    return range().accessedBy();
  }

  /**
   * Makes {@link #accessedBy()} have exactly some elements.
   *
   * @param locations the devices, and the host
   * @throws IllegalArgumentException if one of them cannot be in it; nothing changed then
   */
  public void setAccessedBy(Collection<? extends MemoryLocation> locations) {
    Objects.requireNonNull(locations, "locations");
    checkOpen();
    range().accessedBy().assign(locations);
  }

  private ManagedRange range() {
    return new ManagedRange(memory());
  }

  @Override
  public boolean isHostAccessible() {
    return true;
  }

  @Override
  public ManagedBuffer parent() {
    return (ManagedBuffer) whole();
  }

  @Override
  public ManagedBuffer slice(long offset) {
    return slice(offset, byteSize() - offset);
  }

  @Override
  public ManagedBuffer slice(long offset, long bytes) {
    return new ManagedBuffer(this, offset, bytes);
  }

  @Override
  BufferKind kind() {
    return BufferKind.MANAGED;
  }

  @Override
  Buffer asBuffer() {
    return this;
  }

  @Override
  long hostAddress() {
    return view.addressOf(memory(), whole().memory());
  }

  @Override
  public String toString() {
    return text("managed buffer");
  }
}
