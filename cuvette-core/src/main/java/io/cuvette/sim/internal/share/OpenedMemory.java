package io.cuvette.sim.internal.share;

import io.cuvette.sim.internal.memory.DeviceBlock;

/** An allocation of another process that is open here, any number of times. */
public final class OpenedMemory {
  private final DeviceBlock block;
  private int count = 1;

  public OpenedMemory(DeviceBlock block) {
    this.block = block;
  }

  public DeviceBlock block() {
    return block;
  }

  public void openAgain() {
    count++;
  }

  public void closeOnce() {
    count--;
  }

  /** Whether the next close is the last one. */
  public boolean isOpenOnce() {
    return count == 1;
  }
}
