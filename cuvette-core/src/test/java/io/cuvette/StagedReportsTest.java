package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.QuietListener;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What whoever watches memory is told of large copies: each byte of the host once. */
@Timeout(60)
class StagedReportsTest {
  private static final int MIB = 1 << 20;

  private record Access(long address, long bytes, boolean writes) {}

  private final List<Access> told = new CopyOnWriteArrayList<>();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new));

  @AfterEach
  void close() {
    cuda.close();
  }

  private final class Watched extends ForwardingDriver {
    Watched(CudaDriver delegate) {
      super(delegate);
    }

    @Override
    public BlockListener blockListener() {
      return new QuietListener() {
        @Override
        public void hostAccess(long address, long bytes, boolean writes) {
          told.add(new Access(address, bytes, writes));
        }
      };
    }
  }

  /** The accesses in a range, one behind the other; the others are of chunks. */
  private void check(MemorySegment host, boolean in, String what) {
    long end = host.address();
    long chunks = 0;
    for (Access each : told) {
      boolean isOfHost =
          each.address >= host.address() && each.address < host.address() + host.byteSize();
      assertThat(each.writes).as(what).isEqualTo(isOfHost != in);
      if (isOfHost) {
        assertThat(each.address).as(what).isEqualTo(end);
        end += each.bytes;
      } else {
        chunks += each.bytes;
      }
    }
    assertThat(end - host.address()).as(what).isEqualTo(host.byteSize());
    assertThat(chunks).as(what).isEqualTo(host.byteSize());
  }

  @Test
  void copiesThroughChunks_areToldPartByPart_ofBothSides() {
    for (int bytes : new int[] {100_000, 2 * MIB, 2 * MIB + 1, 9 * MIB + 77}) {
      for (boolean confined : new boolean[] {true, false}) {
        try (Arena arena = confined ? Arena.ofConfined() : Arena.ofShared();
            Buffer buffer = cuda.allocate(bytes)) {
          MemorySegment host = arena.allocate(bytes);
          for (boolean in : new boolean[] {true, false}) {
            told.clear();
            if (in) {
              buffer.copyFrom(host);
            } else {
              buffer.copyTo(host);
            }
            check(host, in, "%d bytes, in: %s, confined: %s".formatted(bytes, in, confined));
          }
        }
      }
    }
  }

  @Test
  void rowsThroughChunks_areToldOnceEach_andTheChunksAsOften() {
    try (Arena arena = Arena.ofConfined();
        Buffer buffer = cuda.allocate(9 * MIB)) {
      List<MemorySegment> rows =
          List.of(arena.allocate(MIB), arena.allocate(5 * MIB), arena.allocate(3 * MIB));
      for (boolean in : new boolean[] {true, false}) {
        told.clear();
        if (in) {
          buffer.gatherFrom(rows);
        } else {
          buffer.scatterTo(rows);
        }
        for (MemorySegment row : rows) {
          assertThat(told).containsOnlyOnce(new Access(row.address(), row.byteSize(), !in));
        }
        assertThat(told.stream().filter(each -> each.writes == in).mapToLong(Access::bytes).sum())
            .isEqualTo(9 * MIB);
      }
    }
  }
}
