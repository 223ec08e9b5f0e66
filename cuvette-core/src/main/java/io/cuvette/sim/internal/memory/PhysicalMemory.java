package io.cuvette.sim.internal.memory;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.MemLocationType;

/**
 * Memory without an address: it is there as long as somebody holds a handle of it or has mapped it.
 * Guarded by the driver's lock.
 */
public final class PhysicalMemory {
  public final AllocationProperties properties;

  /** Its bytes, and the device they are on; for memory of the host any device. */
  public final DeviceBlock content;

  /** Whether it is counted as memory of its device. */
  private final boolean isCounted;

  private long handle;
  private int handles;
  private int mappings;

  private PhysicalMemory(AllocationProperties properties, DeviceBlock content, boolean isCounted) {
    this.properties = properties;
    this.content = content;
    this.isCounted = isCounted;
  }

  /** New memory of this process, in pages of its device. */
  public static PhysicalMemory create(
      AllocationProperties properties, DeviceMemory memory, long bytes, long id) {
    boolean onDevice = properties.locationType() == MemLocationType.DEVICE;
    if (onDevice) {
      memory.takePages(bytes);
    }
    return new PhysicalMemory(properties, new DeviceBlock(memory, 0, bytes, id), onDevice);
  }

  /** Memory of another process, which is not counted here. */
  public static PhysicalMemory imported(
      AllocationProperties properties, DeviceMemory memory, SharedBytes bytes, long id) {
    DeviceBlock content = new DeviceBlock(memory, 0, bytes.extent().byteSize(), id);
    content.share(bytes);
    return new PhysicalMemory(properties, content, false);
  }

  public long byteSize() {
    return content.byteSize;
  }

  /** Whether the memory is that of a device, and not of the host. */
  public boolean isOnDevice() {
    return properties.locationType() == MemLocationType.DEVICE;
  }

  /** Its handle, which is the same as long as the memory is there. */
  public long handle() {
    return handle;
  }

  public void handle(long value) {
    handle = value;
  }

  /** Whether somebody holds the handle. */
  public boolean isHeld() {
    return handles > 0;
  }

  /** Somebody holds the handle once more. */
  public void retain() {
    handles++;
  }

  /** Somebody gives the handle back. */
  public void release() {
    handles--;
  }

  void mapped(int more) {
    mappings += more;
  }

  /** Whether it is mapped somewhere. */
  public boolean isMapped() {
    return mappings > 0;
  }

  /** Whether nobody can reach it any more. */
  public boolean isUnused() {
    return handles == 0 && mappings == 0;
  }

  /** Gives the bytes back. */
  public void end() {
    content.die();
    content.release();
    if (isCounted) {
      content.memory.givePages(byteSize());
    }
  }

  @Override
  public String toString() {
    return "%d bytes of %s"
        .formatted(byteSize(), isOnDevice() ? "device " + properties.locationId() : "the host");
  }
}
