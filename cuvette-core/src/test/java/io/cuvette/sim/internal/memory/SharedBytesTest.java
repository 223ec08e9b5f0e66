package io.cuvette.sim.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.internal.base.BlockFile;
import io.cuvette.sim.internal.base.Extent;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SharedBytesTest {
  private static final int BYTES = 64;

  /** A file of zeros. */
  private static final class Zeros implements BlockFile {
    @Override
    public MemorySegment map(long offset, long bytes, Arena arena) {
      return arena.allocate(bytes);
    }

    @Override
    public void release(Extent extent) {}
  }

  @ParameterizedTest
  @CsvSource({"0, 64", "0, 0", "3, 7", "5, 8", "8, 16", "1, 29"})
  void bytesThatAreWritten_areRead_andNoOthersChange(int offset, int bytes) {
    SharedBytes shared = new SharedBytes(new Zeros(), new Extent(0, BYTES), true);
    byte[] expected = new byte[BYTES];
    Arrays.fill(expected, (byte) 0xA5); // as memory that nobody wrote reads
    byte[] source = new byte[bytes];
    for (int i = 0; i < bytes; i++) {
      source[i] = (byte) (i + 1);
      expected[offset + i] = source[i];
    }
    shared.write(offset, MemorySegment.ofArray(source));
    MemorySegment all = MemorySegment.ofArray(new byte[BYTES]);
    shared.read(0, all);
    MemorySegment part = MemorySegment.ofArray(new byte[bytes]);
    shared.read(offset, part);
    shared.close();

    assertThat(all.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(expected);
    assertThat(part.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(source);
  }
}
