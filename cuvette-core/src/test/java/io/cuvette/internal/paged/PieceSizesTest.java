package io.cuvette.internal.paged;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.internal.block.Memory;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** In which pieces memory is mapped. */
class PieceSizesTest {
  private static final long MIB = 1L << 20;
  private static final long UNIT = 2 * MIB;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final Buffer any = cuda.allocate(1);
  private final Memory memory = EngineMemory.of(any);
  private final Paging paging = Paging.of(memory.on(), List.of());

  @AfterEach
  void close() {
    cuda.close();
  }

  /** A piece is at most 32 MiB, and at most a sixteenth of what there is with it. */
  @Test
  void growingRange_endsWithAPieceOfFittingSize() {
    assertThat(paging.unit()).isEqualTo(UNIT);
    long most = 1L << 40;
    PagedRange range = PagedRange.reserve(paging, most);
    SplittableRandom random = new SplittableRandom(1);
    List<Long> sizes = new ArrayList<>(List.of(1L, UNIT, UNIT + 1, most, most - 1));
    for (long around : new long[] {32 * MIB, 128 * MIB, 512 * MIB, 2048 * MIB}) {
      sizes.addAll(List.of(around - 1, around, around + 1));
    }
    for (int i = 0; i < 200; i++) {
      sizes.add(1 + random.nextLong(1L << random.nextInt(20, 40)));
    }
    for (long bytes : sizes) {
      long step = UNIT;
      for (long larger = 4 * UNIT; larger <= 32 * MIB && 16 * larger <= bytes; larger *= 4) {
        step = larger;
      }
      long expected = Math.min(most, Math.ceilDiv(bytes, step) * step);
      assertThat(range.pieceBytes(bytes)).as("of %d", bytes).isEqualTo(expected);
    }
    range.free();
  }

  /** The largest first, each four times the next. */
  @Test
  void mappedMemory_isInThePiecesThatAreAsked() {
    Memory window = Window.reserve(memory.faces(), paging, 256 * MIB, memory.order());
    Window mapped = (Window) window.block();
    long at = window.address();
    for (long largest : new long[] {1, UNIT, 3 * UNIT, 4 * UNIT, 16 * UNIT, 1L << 40}) {
      for (long units : new long[] {1, 3, 4, 5, 16, 23, 64}) {
        mapped.map(at, units * UNIT, largest);
        long rest = units * UNIT;
        long piece = at;
        int count = 0;
        while (rest > 0) {
          long size = UNIT;
          while (4 * size <= Math.min(largest, rest)) {
            size *= 4;
          }
          assertThat(mapped.pieces.sizeAt(piece)).as("%d of %d", largest, units).isEqualTo(size);
          piece += size;
          rest -= size;
          count++;
        }
        assertThat(mapped.pieces.count()).isEqualTo(count);
        assertThat(mapped.blockBytes()).isEqualTo(units * UNIT);
        mapped.unmap(at, units * UNIT);
        assertThat(mapped.blockBytes()).isZero();
      }
    }
    mapped.free();
    assertThat(mapped.isFreed()).isTrue();
  }
}
