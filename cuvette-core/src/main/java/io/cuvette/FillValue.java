package io.cuvette;

import io.cuvette.driver.CudaDriver;

/**
 * A value to fill memory with.
 *
 * @param bits the value
 * @param bytes its size: 1, 2 or 4
 */
record FillValue(int bits, int bytes) {

  static FillValue of(byte value) {
    return new FillValue(value, 1);
  }

  static FillValue of(short value) {
    return new FillValue(value, 2);
  }

  static FillValue of(int value) {
    return new FillValue(value, 4);
  }

  void check(BufferBase target) {
    if (target.byteSize() % bytes != 0 || target.address() % bytes != 0) {
      throw new IllegalArgumentException(
          "fill with a %d-byte value: %d bytes at 0x%x (expected: address and size are multiples of %d)"
              .formatted(bytes, target.byteSize(), target.address(), bytes));
    }
  }

  void fill(CudaDriver driver, BufferBase target, CudaStream stream) {
    int device = stream.device().id();
    long count = target.byteSize() / bytes;
    switch (bytes) {
      case 1 -> driver.memsetD8Async(device, target.address(), (byte) bits, count, stream.handle());
      case 2 ->
          driver.memsetD16Async(device, target.address(), (short) bits, count, stream.handle());
      default -> driver.memsetD32Async(device, target.address(), bits, count, stream.handle());
    }
  }
}
