package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

class FillTest {

  @CudaTest
  void everyByteValue_fillsEveryKind(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 1025)) {
        for (byte value : new byte[] {0, 1, 127, -1, -128}) {
          buffer.fill(value);
          byte[] expected = new byte[1025];
          Arrays.fill(expected, value);
          assertThat(Bytes.of(buffer)).as("%s with %d", kind, value).isEqualTo(expected);
        }
      }
    }
  }

  @CudaTest
  void shortValue_keepsTheOrderOfItsBytes(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 1026)) {
        for (short value : new short[] {0x1234, -2, Short.MIN_VALUE, Short.MAX_VALUE}) {
          buffer.fillShorts(value);
          short[] content = new short[513];
          buffer.copyTo(MemorySegment.ofArray(content));
          short[] expected = new short[513];
          Arrays.fill(expected, value);
          assertThat(content).as("%s with %d", kind, value).isEqualTo(expected);
        }
      }
    }
  }

  @CudaTest
  void intValue_keepsTheOrderOfItsBytes(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (Buffer buffer = kind.allocate(cuda, 1028)) {
        for (int value : new int[] {0x12345678, -3, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
          buffer.fillInts(value);
          int[] content = new int[257];
          buffer.copyTo(MemorySegment.ofArray(content));
          int[] expected = new int[257];
          Arrays.fill(expected, value);
          assertThat(content).as("%s with %d", kind, value).isEqualTo(expected);
        }
      }
    }
  }

  @CudaTest
  void intTypedByte_fillsEveryByte(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      try (CudaStream stream = cuda.device(0).createStream();
          Buffer buffer = kind.allocate(cuda, 1025)) {
        for (int value : new int[] {0, 7, 0xFF, 200, -1, -128}) {
          byte[] expected = new byte[1025];
          Arrays.fill(expected, (byte) value);
          buffer.fill(value);
          assertThat(Bytes.of(buffer)).as("%s with %d", kind, value).isEqualTo(expected);
          buffer.fill((byte) 1);
          buffer.fill(value, stream);
          stream.synchronize();
          assertThat(Bytes.of(buffer)).as("%s with %d", kind, value).isEqualTo(expected);
        }
      }
    }
  }

  @CudaTest
  void intThatIsNoByte_isRefused_andNothingIsWritten(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(64)) {
      buffer.fill((byte) 5);
      for (int value : new int[] {256, -129, 0x01010101, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
        String expected =
            "value: %d (expected: a byte, -128 to 255; fillInts fills with 4-byte values)"
                .formatted(value);
        assertThatThrownBy(() -> buffer.fill(value))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage(expected);
        assertThatThrownBy(() -> buffer.fill(value, cuda.currentStream()))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage(expected);
      }
      assertThat(Bytes.of(buffer)).containsOnly(5);
    }
  }

  @CudaTest(seeds = 3)
  void fillsOnAStream_happenInItsOrder(Cuda cuda, CudaStream stream) {
    try (Buffer buffer = cuda.allocate(1 << 16, stream)) {
      buffer.fill((byte) 1, stream);
      buffer.fillShorts((short) 0x0202, stream);
      buffer.slice(0, 8).fillInts(0x03030303, stream);
      stream.synchronize();
      byte[] content = Bytes.of(buffer);
      assertThat(Arrays.copyOf(content, 8)).containsOnly(3);
      assertThat(Arrays.copyOfRange(content, 8, content.length)).containsOnly(2);
    }
  }

  @CudaTest
  void fillOfASlice_leavesTheRestAlone(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(100)) {
      buffer.fill((byte) 5);
      buffer.slice(3, 4).fill((byte) 6);
      byte[] expected = new byte[100];
      Arrays.fill(expected, (byte) 5);
      Arrays.fill(expected, 3, 7, (byte) 6);
      assertThat(Bytes.of(buffer)).isEqualTo(expected);
    }
  }

  @CudaTest
  void shortFill_needsAnEvenSizeAndAddress(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(99)) {
      assertThatThrownBy(() -> buffer.fillShorts((short) 1))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("99 bytes")
          .hasMessageContaining("multiples of 2");
      assertThatThrownBy(() -> buffer.slice(1, 98).fillShorts((short) 1, cuda.currentStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("multiples of 2");
    }
  }

  @CudaTest
  void intFill_needsASizeAndAnAddressThatFourDivides(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(102)) {
      assertThatThrownBy(() -> buffer.fillInts(1))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("102 bytes")
          .hasMessageContaining("multiples of 4");
      for (int offset = 1; offset < 4; offset++) {
        Buffer slice = buffer.slice(offset, 8);
        assertThatThrownBy(() -> slice.fillInts(1, cuda.currentStream()))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("multiples of 4");
      }
    }
  }

  @CudaTest(devices = 2)
  void fill_needsAStreamOfTheBuffersDevice(Cuda cuda) {
    try (Buffer buffer = cuda.allocate(64, cuda.device(0).nullStream())) {
      assertThatThrownBy(() -> buffer.fill((byte) 1, cuda.device(1).nullStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device 1")
          .hasMessageContaining("expected: a stream of device 0");
    }
  }
}
