package io.cuvette.internal.transfer;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenStream;

/**
 * A value to fill memory with.
 *
 * @param bits the value
 * @param bytes its size: 1, 2 or 4
 */
public record FillValue(int bits, int bytes) {

  public static FillValue ofByte(int value) {
    if (value < Byte.MIN_VALUE || value > 0xFF) {
      throw new IllegalArgumentException(
          "value: %d (expected: a byte, -128 to 255; fillInts fills with 4-byte values)"
              .formatted(value));
    }
    return new FillValue(value, Byte.BYTES);
  }

  public static FillValue ofShort(short value) {
    return new FillValue(value, Short.BYTES);
  }

  public static FillValue ofInt(int value) {
    return new FillValue(value, Integer.BYTES);
  }

  public void check(Memory target) {
    if (target.byteSize() % bytes != 0 || target.address() % bytes != 0) {
      throw new IllegalArgumentException(
          "fill with a %d-byte value: %d bytes at 0x%x (expected: address and size are multiples of %d)"
              .formatted(bytes, target.byteSize(), target.address(), bytes));
    }
  }

  public void fill(CudaDriver driver, Memory target, OpenStream stream) {
    int device = stream.on().id();
    long count = target.byteSize() / bytes;
    switch (bytes) {
      case 1 ->
          driver
              .transfers()
              .memsetD8Async(device, target.address(), (byte) bits, count, stream.state.handle);
      case 2 ->
          driver
              .transfers()
              .memsetD16Async(device, target.address(), (short) bits, count, stream.state.handle);
      default ->
          driver
              .transfers()
              .memsetD32Async(device, target.address(), bits, count, stream.state.handle);
    }
  }
}
