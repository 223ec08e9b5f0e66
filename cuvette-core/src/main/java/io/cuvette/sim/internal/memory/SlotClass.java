package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.util.Arrays;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of one size class by slot. A freed slot is used again only after many others, so that
 * the use of a stale address is found. Guarded by the driver's lock.
 */
public final class SlotClass {
  private static final int DELAY = 1024;

  private final int delay;
  private final long slots;
  private @Nullable DeviceBlock[] blocks = new @Nullable DeviceBlock[8];
  private int used;

  // A ring of freed slots, oldest first.
  private int[] freed = new int[8];
  private int oldest;
  private int count;

  /** A class with room for a number of slots. */
  public SlotClass(long slots) {
    this.slots = slots;
    this.delay = (int) Math.min(DELAY, slots / 2);
  }

  public int take() {
    if (count > delay || (used == slots && count > 0)) {
      int slot = freed[oldest];
      oldest = (oldest + 1) % freed.length;
      count--;
      return slot;
    }
    if (used == slots) {
      throw new SimRefusal(
          CudaStatus.OUT_OF_MEMORY, "%d blocks of one size are in use".formatted(used));
    }
    if (used == blocks.length) {
      blocks = Arrays.copyOf(blocks, 2 * used);
    }
    return used++;
  }

  public void put(int slot, DeviceBlock block) {
    blocks[slot] = block;
  }

  public @Nullable DeviceBlock get(long slot) {
    return slot < used ? blocks[(int) slot] : null;
  }

  public boolean wasUsed(long slot) {
    return slot < used;
  }

  public void give(int slot) {
    blocks[slot] = null;
    if (count == freed.length) {
      freed = grown();
      oldest = 0;
    }
    freed[(oldest + count++) % freed.length] = slot;
  }

  private int[] grown() {
    int[] larger = new int[2 * freed.length];
    for (int i = 0; i < count; i++) {
      larger[i] = freed[(oldest + i) % freed.length];
    }
    return larger;
  }

  public void forEach(Consumer<SimBlock> action) {
    for (int i = 0; i < used; i++) {
      DeviceBlock block = blocks[i];
      if (block != null) {
        action.accept(block);
      }
    }
  }
}
