package io.cuvette.internal.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BoxCopy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Which bytes of a buffer packed ones are, however they are divided into calls. */
class PackedRowsTest {
  private static final int ROUNDS = 3_000;

  private final SplittableRandom random = new SplittableRandom(Long.getLong("cuvette.seed", 1));

  /** Rows of a few bytes with gaps between them, and between their layers. */
  private PackedRows some() {
    long width = 1 + random.nextInt(5);
    long height = 1 + random.nextInt(4);
    long depth = 1 + random.nextInt(4);
    long pitch = width + random.nextInt(3);
    BoxCopy.Side side = new BoxCopy.Side(random.nextInt(9), pitch, height + random.nextInt(3));
    return new PackedRows(side, width, height, depth);
  }

  /** Where each packed byte is, by the definition of rows. */
  private static long[] places(PackedRows packed) {
    long[] places = new long[(int) (packed.width() * packed.height() * packed.depth())];
    for (int i = 0; i < places.length; i++) {
      long row = i / packed.width();
      BoxCopy.Side side = packed.side();
      long layer = row / packed.height();
      places[i] =
          side.address()
              + (layer * side.rows() + row % packed.height()) * side.pitch()
              + i % packed.width();
    }
    return places;
  }

  /** Where the calls put each byte; in their order, each once. */
  private static long[] divided(PackedRows packed, int from, int bytes, boolean together) {
    long[] places = new long[bytes];
    Arrays.fill(places, -1);
    int[] next = {from};
    packed.split(
        from,
        bytes,
        together,
        (at, apart, width, rows, layers) -> {
          assertThat(at).as("one call after the other").isEqualTo(next[0]);
          for (long layer = 0; layer < layers; layer++) {
            for (long row = 0; row < rows; row++) {
              for (long i = 0; i < width; i++) {
                places[next[0]++ - from] =
                    apart.address() + (layer * apart.rows() + row) * apart.pitch() + i;
              }
            }
          }
        });
    assertThat(next[0]).isEqualTo(from + bytes);
    return places;
  }

  @Test
  void anyRange_isDividedIntoCallsThatCopyItsBytes_andNoOther() {
    for (int round = 0; round < ROUNDS; round++) {
      PackedRows packed = some();
      long[] all = places(packed);
      int from = random.nextInt(all.length);
      int bytes = random.nextInt(all.length - from + 1);
      for (boolean together : new boolean[] {false, true}) {
        assertThat(divided(packed, from, bytes, together))
            .as("%s: %d bytes from %d on, together: %b", packed, bytes, from, together)
            .isEqualTo(Arrays.copyOfRange(all, from, from + bytes));
      }
    }
  }

  @Test
  void wholeLayers_areOneCall_andRowsAroundThemOneEach() {
    PackedRows packed = new PackedRows(new BoxCopy.Side(0, 8, 5), 4, 3, 6);
    List<String> calls = new ArrayList<>();
    packed.split(
        4 + 2, // from the middle of the second row on
        2 + 4 + 4 * 12 + 4 * 2 + 1,
        true,
        (at, apart, width, rows, layers) ->
            calls.add(
                "%d: %d x %d x %d to %d".formatted(at, width, rows, layers, apart.address())));
    assertThat(calls)
        .containsExactly(
            "6: 2 x 1 x 1 to 10",
            "8: 4 x 1 x 1 to 16",
            "12: 4 x 3 x 4 to 40",
            "60: 4 x 2 x 1 to 200",
            "68: 1 x 1 x 1 to 216");
  }

  @Test
  void pitchThatTheDriverDoesNotTake_isRowByRow() {
    for (long pitch : new long[] {4, BoxCopy.MAX_PITCH}) {
      assertThat(new PackedRows(new BoxCopy.Side(0, pitch, 2), 4, 2, 1).isForDriver()).isTrue();
    }
    BoxCopy.Side larger = new BoxCopy.Side(0, BoxCopy.MAX_PITCH + 1, 2);
    assertThat(new PackedRows(larger, 4, 2, 1).isForDriver()).isFalse();
  }
}
