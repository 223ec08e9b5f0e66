package io.cuvette.arrow;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * A structure {@code ArrowDeviceArray} of the Arrow C Device data interface, in memory of its
 * owner: an array with its children, the device it is on, and an event. It is released, or holds an
 * array that whoever has it must release once, or hand on. Its schema goes beside it, as an {@code
 * ArrowSchema} of {@code org.apache.arrow.c}.
 *
 * <p>Addresses are taken on trust. Thread-safe: of several threads that take or release an array,
 * one does.
 */
public final class ArrowDeviceArray {
  /** The size of the structure in bytes. */
  public static final long BYTES = ArrayStructure.BYTES;

  /** One thread at a time moves arrays in and out; held for moments. */
  private static final ReentrantLock CHANGES = new ReentrantLock();

  private final ArrayStructure structure;

  private ArrowDeviceArray(MemorySegment memory) {
    this.structure = new ArrayStructure(memory);
  }

  /**
   * {@return a new structure, released}
   *
   * @param arena how long its memory lives: longer than whoever is given the address uses it
   */
  public static ArrowDeviceArray allocate(Arena arena) {
    Objects.requireNonNull(arena, "arena");
    return new ArrowDeviceArray(arena.allocate(BYTES, Long.BYTES));
  }

  /**
   * {@return the structure at an address, as another library gives or expects it}
   *
   * @param address the first byte, which is the first of an {@code ArrowArray} too
   * @throws IllegalArgumentException if the address is 0 or no multiple of 8
   * @throws UnsupportedOperationException without the module of native access
   */
  public static ArrowDeviceArray at(long address) {
    if (address == 0 || address % Long.BYTES != 0) {
      throw new IllegalArgumentException(
          "address: 0x%x (expected: that of a structure, a multiple of 8)".formatted(address));
    }
    return new ArrowDeviceArray(NativeMemory.calls().memory(address, BYTES));
  }

  /** Where an array is written, inside of {@link #fill}. */
  ArrayStructure structure() {
    return structure;
  }

  private void checkThere() {
    if (isReleased()) {
      throw isGone();
    }
  }

  /** {@return the address, for another library} */
  public long address() {
    return structure.memory().address();
  }

  /** {@return whether it holds no array: none was exported to it, or it was taken or released} */
  public boolean isReleased() {
    return structure.release() == 0;
  }

  /**
   * {@return the kind of memory, as DLPack numbers it too: 2 for a device, 13 for managed memory}
   *
   * @throws IllegalStateException if it is released
   */
  public int deviceType() {
    checkThere();
    return structure.deviceType();
  }

  /**
   * {@return the number of the device}
   *
   * @throws IllegalStateException if it is released
   */
  public long deviceId() {
    checkThere();
    return structure.deviceId();
  }

  /**
   * Calls the release callback, as who has no use for the array must: after {@link
   * DeviceVector#take} has refused it, for example. Does nothing if it is released.
   *
   * @throws UnsupportedOperationException without the module of native access
   */
  public void release() {
    ArrayStructure seen = snapshot();
    if (seen.release() != 0) {
      Moved moved = move(seen);
      if (moved != null) {
        moved.release();
      }
    }
  }

  /** A copy of what is there. */
  ArrayStructure snapshot() {
    CHANGES.lock();
    try {
      MemorySegment copy = Arena.ofAuto().allocate(BYTES, Long.BYTES);
      return new ArrayStructure(copy.copyFrom(structure.memory()));
    } finally {
      CHANGES.unlock();
    }
  }

  /** Takes the array out that was seen; null if it is not there any more. */
  @Nullable Moved move(ArrayStructure seen) {
    CHANGES.lock();
    try {
      boolean isThere = structure.memory().mismatch(seen.memory()) < 0;
      return isThere && structure.claim(seen.release()) ? new Moved(seen, seen.release()) : null;
    } finally {
      CHANGES.unlock();
    }
  }

  /** Has an array written here. */
  void fill(Runnable write) {
    CHANGES.lock();
    try {
      checkReleased();
      write.run();
    } finally {
      CHANGES.unlock();
    }
  }

  /** Checks that no array would be lost. */
  void checkReleased() {
    if (!isReleased()) {
      throw new IllegalStateException(this + " (expected: released, or memory of zeros)");
    }
  }

  /** The error of who finds no array. */
  IllegalStateException isGone() {
    return new IllegalStateException(this + " (expected: an array that nobody has taken)");
  }

  @Override
  public String toString() {
    return "ArrowDeviceArray at 0x%x, %s"
        .formatted(
            address(),
            isReleased()
                ? "released"
                : "of %d on device %d of type %d"
                    .formatted(structure.length(), structure.deviceId(), structure.deviceType()));
  }
}
