package io.cuvette.sim;

/** An allocation of another process that is open here, any number of times. */
final class OpenedMemory {
  private final DeviceBlock block;
  private int count = 1;

  OpenedMemory(DeviceBlock block) {
    this.block = block;
  }

  DeviceBlock block() {
    return block;
  }

  void openAgain() {
    count++;
  }

  void closeOnce() {
    count--;
  }

  /** Whether the next close is the last one. */
  boolean isOpenOnce() {
    return count == 1;
  }
}
