package io.cuvette.sim.internal.memory;

import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.internal.base.SimRefusal;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * Four bytes of memory that a stream waits at, which other threads write past the driver. Guarded
 * by the driver's lock.
 */
public final class SimWord {
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

  private static final int GREATER_OR_EQUAL = 0;
  private static final int EQUAL = 1;
  private static final int AND = 2;
  private static final int NOR = 3;

  private final SimPlace place;

  private SimWord(SimPlace place) {
    this.place = place;
  }

  public static SimWord at(SimPlace place, long address) {
    if (address % Integer.BYTES != 0) {
      throw SimRefusal.invalidValue(
          "address: 0x%x (expected: a multiple of %d)".formatted(address, Integer.BYTES));
    }
    if (place.block() instanceof HostBlock host && host.kind == HostBlock.Kind.MANAGED) {
      throw SimRefusal.invalidValue(
          "address: 0x%x is managed memory (expected: device or page-locked memory)"
              .formatted(address));
    }
    return new SimWord(place);
  }

  public static void checkFlags(int flags) {
    if (flags < GREATER_OR_EQUAL || flags > NOR) {
      throw SimRefusal.invalidValue("flags: %d (expected: 0 to 3)".formatted(flags));
    }
  }

  public boolean isLive() {
    return place.block().isLive();
  }

  /** The device has stopped at memory that was freed. */
  public void check() {
    if (!isLive()) {
      throw new SimRefusal(CudaStatus.ILLEGAL_ADDRESS, "a stream waits at memory that was freed");
    }
  }

  public boolean satisfies(int value, int flags) {
    int word = read();
    return switch (flags) {
      case GREATER_OR_EQUAL -> word - value >= 0;
      case EQUAL -> word == value;
      case AND -> (word & value) != 0;
      default -> ~(word | value) != 0;
    };
  }

  private int read() {
    if (place.block() instanceof HostBlock host) {
      return (int) INT.getAcquire(host.segment, place.offset());
    }
    int[] word = new int[1];
    place.block().read(place.offset(), MemorySegment.ofArray(word));
    return word[0];
  }
}
