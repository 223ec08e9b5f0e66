package io.cuvette.internal.share;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.block.Addresses;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.driverpool.ImportedPool;
import io.cuvette.internal.paged.ImportedPages;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import org.jspecify.annotations.Nullable;

/** Where imported memory comes from, and how it goes back. Immutable. */
public sealed interface MappingSource {

  /** The device whose driver context does it. */
  Device device();

  /**
   * The key by which pools are distinguished; the same for all imports that the driver
   * distinguishes.
   */
  Object identity();

  /** Whether a device other than the memory's has no access to it; while the source is held. */
  boolean deniesAccess(Device other);

  /** From now on the memory needs the source; a plain allocation has none that could go. */
  default void hold() {}

  /** The end of what {@link #hold} began; the free was queued on a stream, if that is not null. */
  default void release(@Nullable DriverStream freedOn) {}

  /** Maps memory of another process. */
  long map(byte[] handle);

  /** Unmaps what no stream uses any more, by a driver whose Cuda is open. */
  void discard(CudaDriver driver, long address);

  /** Unmaps what was just mapped and never used. */
  default void discard(long address) {
    discard(device().session().driver(), address);
  }

  /**
   * Checks that an address which the driver gave is not of memory that this process has itself;
   * only pools give such addresses.
   *
   * @throws IllegalArgumentException if it is; it must not be freed
   */
  default void checkForeign(long address) {}

  /** Whether it is freed in order of a stream, or when its work is done. */
  default boolean isStreamOrdered() {
    return false;
  }

  /** Memory of a pool that was imported (cuMemPoolImportPointer). */
  record OfPool(DriverPool pool, Device device) implements MappingSource {
    /** Another Cuda's import is destroyed when that ends, so it is kept apart. */
    @Override
    public Object identity() {
      return pool instanceof ImportedPool imported ? imported.origin().identity() : pool;
    }

    @Override
    public boolean deniesAccess(Device other) {
      return Addresses.deniesAccess(other, pool.handle());
    }

    @Override
    public void hold() {
      pool.hold();
    }

    @Override
    public void release(@Nullable DriverStream freedOn) {
      if (freedOn != null) {
        pool.memory().freeing().add(freedOn);
      }
      pool.release();
    }

    @Override
    public long map(byte[] handle) {
      byte[] checked = pool.session().handles().checkedPointer(device, pool.handle(), handle);
      return pool.session().driver().sharing().memPoolImportPointer(pool.handle(), checked);
    }

    @Override
    public void discard(CudaDriver driver, long address) {
      driver.memory().memFree(device.id(), address);
    }

    @Override
    public void checkForeign(long address) {
      long owner = poolAt(address);
      if (owner != pool.handle() && pool.pools().isOwn(owner)) {
        throw new IllegalArgumentException(
            "descriptor: 0x%x is of pool 0x%x of this process (expected: another's; use the buffer"
                    .formatted(address, owner)
                + " itself)");
      }
    }

    @Override
    public boolean isStreamOrdered() {
      return true;
    }
  }

  /** A whole allocation without a pool (cuIpcOpenMemHandle). */
  record Plain(Device device) implements MappingSource {
    private static final Object ONE = new Object();

    @Override
    public Object identity() {
      return ONE;
    }

    @Override
    public boolean deniesAccess(Device other) {
      return false;
    }

    @Override
    public long map(byte[] handle) {
      byte[] checked = device.session().handles().checkedPlain(device, handle);
      return device.context().sharing().ipcOpenMemHandle(device.id(), checked);
    }

    @Override
    public void discard(CudaDriver driver, long address) {
      driver.sharing().ipcCloseMemHandle(device.id(), address);
    }
  }

  /** Pages of an elastic pool (cuMemImportFromShareableHandle). */
  record OfPages(Device device, ImportedPages.Pages pages, ImportedPages.PageMapping mapping)
      implements MappingSource {
    @Override
    public Object identity() {
      return pages;
    }

    @Override
    public boolean deniesAccess(Device other) {
      return other != device;
    }

    @Override
    public void hold() {
      pages.hold();
    }

    @Override
    public void release(@Nullable DriverStream freedOn) {
      pages.release();
    }

    @Override
    public long map(byte[] handle) {
      return mapping.map();
    }

    @Override
    public void discard(CudaDriver driver, long address) {
      mapping.unmap(driver.virtual());
    }

    @Override
    public long bytesAt(long address) {
      return pages.bytes();
    }

    @Override
    public boolean isHostMemory(long address) {
      return false;
    }

    @Override
    public CudaException explained(CudaException e) {
      return e;
    }
  }

  /**
   * The bytes that were mapped at an address, which is the start of the allocation. A driver (580)
   * gives RANGE_START of memory of another process as that process has it.
   */
  default long bytesAt(long address) {
    return attribute(PointerAttribute.RANGE_SIZE, address);
  }

  /** Whether the host owns the memory at an address. */
  default boolean isHostMemory(long address) {
    return attribute(PointerAttribute.MEMORY_TYPE, address) == MemoryType.HOST;
  }

  /** The pool of the memory at an address; 0 if the driver does not report it. */
  default long poolAt(long address) {
    try {
      return attribute(PointerAttribute.MEMPOOL_HANDLE, address);
    } catch (CudaException e) {
      return 0;
    }
  }

  /** Who has mapped something goes on to its end, also while the Cuda is being closed. */
  private long attribute(int attribute, long address) {
    return device()
        .session()
        .driver()
        .memory()
        .pointerGetAttribute(device().id(), attribute, address);
  }

  /** A failure of {@link #map} with what it may come from. */
  default CudaException explained(CudaException e) {
    String text =
        switch (e.status()) {
          case INVALID_VALUE, INVALID_HANDLE ->
              "the descriptor is of another pool or process than this, or its memory was freed"
                  + " meanwhile";
          case ALREADY_MAPPED ->
              "the memory is mapped in this process already, through another driver connection";
          case INVALID_CONTEXT ->
              "the exporter's device is not visible to this process, or it is this very process";
          default -> null;
        };
    return text == null ? e : e.explained(text);
  }
}
