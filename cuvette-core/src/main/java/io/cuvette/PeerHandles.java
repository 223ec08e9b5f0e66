package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Refuses handles that would end this process. A driver (580) follows what the handle of another
 * process says: an offset or a size of 2<sup>40</sup> in that of a pool's memory, or a slot beyond
 * its table in that of an event, is a read of memory that is not there. Where a handle has these is
 * not documented, so a handle of this process's own is looked at first; the handles of a driver
 * that has them elsewhere are not checked. Thread-safe.
 */
final class PeerHandles {
  private static final int OFFSET_AT = 24;
  private static final int SIZE_AT = 32;
  private static final int SLOT_AT = 16;

  /** No device has as much memory; the driver looks everything below up. */
  private static final long MOST_BYTES = 1L << 39;

  /** An event's slots are counted down from the last. */
  private static final long SLOTS = 1L << 12;

  private static final long PROBE_BYTES = 1L << 20;

  private volatile @Nullable Boolean knowsPointers;
  private volatile @Nullable Boolean knowsEvents;

  /**
   * The handle of a pool's memory, if the driver can be asked to import it.
   *
   * @throws CudaException INVALID_VALUE if its range is no device's
   */
  byte[] checkedPointer(CudaDevice device, byte[] handle) {
    if (!device.cuda().isSimulated() && knowsPointers(device)) {
      ByteBuffer words = words(handle);
      check("cuMemPoolImportPointer", "offset", words.getLong(OFFSET_AT), MOST_BYTES);
      check("cuMemPoolImportPointer", "size", words.getLong(SIZE_AT), MOST_BYTES);
    }
    return handle;
  }

  /**
   * The handle of an event, if the driver can be asked to open it.
   *
   * @throws CudaException INVALID_VALUE if it names a slot that no table has
   */
  byte[] checkedEvent(CudaDevice device, byte[] handle) {
    if (!device.cuda().isSimulated() && knowsEvents(device)) {
      long slot = Integer.toUnsignedLong(words(handle).getInt(SLOT_AT));
      check("cuIpcOpenEventHandle", "slot", slot, SLOTS);
    }
    return handle;
  }

  private static void check(String call, String what, long value, long end) {
    if (Long.compareUnsigned(value, end) >= 0) {
      throw new CudaException(
          CudaStatus.INVALID_VALUE,
          call,
          "%s in the handle: %s (expected: < %d)"
              .formatted(what, Long.toUnsignedString(value), end));
    }
  }

  private static ByteBuffer words(byte[] handle) {
    return ByteBuffer.wrap(handle).order(ByteOrder.nativeOrder());
  }

  private boolean knowsPointers(CudaDevice device) {
    Boolean known = knowsPointers;
    if (known == null) {
      known = tried(() -> lookAtPointers(device));
      knowsPointers = known;
    }
    return known;
  }

  private boolean knowsEvents(CudaDevice device) {
    Boolean known = knowsEvents;
    if (known == null) {
      known = tried(() -> lookAtEvent(device));
      knowsEvents = known;
    }
    return known;
  }

  /** What cannot be made here cannot be looked at. */
  private static boolean tried(BooleanSupplier look) {
    try {
      return look.getAsBoolean();
    } catch (CudaException e) {
      return false;
    }
  }

  private static boolean lookAtPointers(CudaDevice device) {
    CudaDriver driver = device.context();
    int id = device.id();
    long pool = driver.memPoolCreate(new PoolProperties(1, 1, 1, id, 0));
    try {
      long stream = driver.streamCreateWithPriority(id, 1, 0);
      try {
        return lookAtPointers(driver, id, pool, stream);
      } finally {
        driver.streamSynchronize(id, stream);
        driver.streamDestroy(id, stream);
      }
    } finally {
      driver.memPoolDestroy(pool);
    }
  }

  private static boolean lookAtPointers(CudaDriver driver, int device, long pool, long stream) {
    long one = driver.memAllocFromPoolAsync(device, PROBE_BYTES, pool, stream);
    try {
      long two = driver.memAllocFromPoolAsync(device, 2 * PROBE_BYTES, pool, stream);
      try {
        ByteBuffer first = words(driver.memPoolExportPointer(one));
        ByteBuffer second = words(driver.memPoolExportPointer(two));
        return first.getLong(SIZE_AT) == PROBE_BYTES
            && second.getLong(SIZE_AT) == 2 * PROBE_BYTES
            && second.getLong(OFFSET_AT) - first.getLong(OFFSET_AT) == two - one;
      } finally {
        driver.memFreeAsync(device, two, stream);
      }
    } finally {
      driver.memFreeAsync(device, one, stream);
    }
  }

  private static boolean lookAtEvent(CudaDevice device) {
    CudaDriver driver = device.context();
    int flags = new EventOptions(false, false, true).flags();
    long event = driver.eventCreate(device.id(), flags);
    try {
      ByteBuffer handle = words(driver.ipcGetEventHandle(device.id(), event));
      return Integer.toUnsignedLong(handle.getInt(SLOT_AT)) < SLOTS && isZeroAfter(handle);
    } finally {
      driver.eventDestroy(device.id(), event);
    }
  }

  private static boolean isZeroAfter(ByteBuffer handle) {
    for (int at = SLOT_AT + Integer.BYTES; at < handle.capacity(); at++) {
      if (handle.get(at) != 0) {
        return false;
      }
    }
    return true;
  }
}
