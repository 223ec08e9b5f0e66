package io.cuvette.array.internal.twin;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.cuvette.array.ElementType;
import io.cuvette.array.internal.kernel.Distribution;
import io.cuvette.array.internal.kernel.DrawArgument;
import java.lang.foreign.MemorySegment;

/**
 * A kernel of common.cu for random numbers.
 *
 * @param distribution what is drawn from
 * @param type the type of the numbers
 */
public record RandomTwin(Distribution distribution, ElementType type) {
  private static final int BLOCKS = 512;

  /** Writes the numbers. */
  public void run(DrawArgument draw, Cells out) {
    int perBlock = distribution.perBlock(type);
    int blockBytes = perBlock * type.bytes();
    MemorySegment bytes = MemorySegment.ofArray(new long[BLOCKS * blockBytes / Long.BYTES]);
    long size = draw.count() * type.bytes();
    int[] block = new int[4];
    long counter = draw.counter();
    for (long done = 0; done < size; done += bytes.byteSize()) {
      for (int i = 0; i < BLOCKS; i++) {
        Philox.block(block, counter++, draw.key());
        put(block, draw, bytes, (long) i * blockBytes);
      }
      out.write(draw.outOffset() + done, bytes.asSlice(0, Math.min(bytes.byteSize(), size - done)));
    }
  }

  private void put(int[] block, DrawArgument draw, MemorySegment to, long at) {
    switch (distribution) {
      case UNIFORM -> uniform(block, to, at);
      case NORMAL -> normal(block, draw, to, at);
      case INTEGERS -> {
        integer(both(block[0], block[1]), draw, to, at);
        integer(both(block[2], block[3]), draw, to, at + type.bytes());
      }
    }
  }

  private void uniform(int[] block, MemorySegment to, long at) {
    if (type == ElementType.FLOAT32) {
      for (int i = 0; i < block.length; i++) {
        to.set(JAVA_FLOAT, at + 4L * i, unit(block[i]));
      }
    } else {
      to.set(JAVA_DOUBLE, at, unit(both(block[0], block[1])));
      to.set(JAVA_DOUBLE, at + 8, unit(both(block[2], block[3])));
    }
  }

  /** By Box and Muller. */
  private void normal(int[] block, DrawArgument draw, MemorySegment to, long at) {
    double mean = Double.longBitsToDouble(draw.low());
    double deviation = Double.longBitsToDouble(draw.extent());
    if (type == ElementType.FLOAT32) {
      for (int i = 0; i < block.length; i += 2) {
        double radius = Math.sqrt(-2 * Math.log(1 - unit(block[i])));
        double angle = 2 * Math.PI * unit(block[i + 1]);
        to.set(JAVA_FLOAT, at + 4L * i, (float) (mean + deviation * radius * Math.cos(angle)));
        to.set(JAVA_FLOAT, at + 4L * i + 4, (float) (mean + deviation * radius * Math.sin(angle)));
      }
    } else {
      double radius = Math.sqrt(-2 * Math.log(1 - unit(both(block[0], block[1]))));
      double angle = 2 * Math.PI * unit(both(block[2], block[3]));
      to.set(JAVA_DOUBLE, at, mean + deviation * (radius * Math.cos(angle)));
      to.set(JAVA_DOUBLE, at + 8, mean + deviation * (radius * Math.sin(angle)));
    }
  }

  private void integer(long drawn, DrawArgument draw, MemorySegment to, long at) {
    long value =
        draw.low() + (draw.extent() == 0 ? drawn : Math.unsignedMultiplyHigh(drawn, draw.extent()));
    switch (type.bytes()) {
      case 1 -> to.set(JAVA_BYTE, at, (byte) value);
      case 2 -> to.set(JAVA_SHORT, at, (short) value);
      case 4 -> to.set(JAVA_INT, at, (int) value);
      default -> to.set(JAVA_LONG, at, value);
    }
  }

  private static long both(int low, int high) {
    return (long) high << Integer.SIZE | (low & 0xFFFF_FFFFL);
  }

  private static float unit(int word) {
    return (word >>> 8) * 0x1p-24f;
  }

  private static double unit(long word) {
    return (word >>> 11) * 0x1p-53;
  }
}
