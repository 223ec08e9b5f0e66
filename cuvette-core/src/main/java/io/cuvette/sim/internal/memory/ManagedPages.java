package io.cuvette.sim.internal.memory;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/**
 * Which pages of one managed allocation are on a device: those that were prefetched to it or that
 * it filled. They count there until they are freed, wanted by another device, or have to make room;
 * not less if they are prefetched to the host, as on a GPU. Guarded by the driver's lock.
 */
public final class ManagedPages {
  private final BitSet pages = new BitSet();
  private @Nullable DevicePages place;

  /** Pages of a range are wanted by a device. */
  public void bring(DevicePages device, long offset, long bytes) {
    if (place != device) {
      leave();
    }
    place = device;
    int before = pages.cardinality();
    pages.set(
        (int) (offset / DevicePages.PAGE),
        (int) ((offset + bytes + DevicePages.PAGE - 1) / DevicePages.PAGE));
    device.bring(this, (pages.cardinality() - before) * DevicePages.PAGE);
  }

  /** No page is on a device any more. */
  public void leave() {
    if (place != null) {
      place.leave(this, pages.cardinality() * DevicePages.PAGE);
      place = null;
      pages.clear();
    }
  }

  /** Sends pages away, the last ones first; gives how many bytes that are. */
  public long evict(long bytes) {
    long gone = 0;
    while (gone < bytes && !pages.isEmpty()) {
      pages.clear(pages.length() - 1);
      gone += DevicePages.PAGE;
    }
    return gone;
  }

  public boolean isGone() {
    return pages.isEmpty();
  }
}
