package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaStatus;
import org.junit.jupiter.api.Test;

/** Copies of rows and of ranges that no driver makes. */
class BoxCopiesTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;

  private final long stream = stream(0);
  private final long memory = driver.memory().memAlloc(0, 256);
  private final long target = driver.memory().memAlloc(0, 256);

  private static BoxCopy.Side side(long address, long pitch, long rows) {
    return new BoxCopy.Side(address, pitch, rows);
  }

  private void copy(BoxCopy.Side to, BoxCopy.Side from, long width, long height, long depth) {
    driver.transfers().memcpy3DAsync(0, new BoxCopy(to, from, width, height, depth), stream);
  }

  @Test
  void sizesAndSides_areThoseOfABox() {
    BoxCopy.Side to = side(target, 16, 2);
    BoxCopy.Side from = side(memory, 16, 2);
    assertFails(INVALID, "width: -1 (expected: >= 0)", () -> copy(to, from, -1, 2, 2));
    assertFails(INVALID, "height: -2 (expected: >= 0)", () -> copy(to, from, 8, -2, 2));
    assertFails(INVALID, "depth: -3 (expected: >= 0)", () -> copy(to, from, 8, 2, -3));
    String pitch = "pitch 15 (expected: 16 to 2147483647)";
    assertFails(INVALID, "target: " + pitch, () -> copy(side(target, 15, 2), from, 16, 2, 2));
    assertFails(INVALID, "source: " + pitch, () -> copy(to, side(memory, 15, 2), 16, 2, 2));
    String rows = "1 rows from layer to layer (expected: >= 2)";
    assertFails(INVALID, "target: " + rows, () -> copy(side(target, 16, 1), from, 8, 2, 2));
    assertFails(INVALID, "source: " + rows, () -> copy(to, side(memory, 16, 1), 8, 2, 2));
    copy(to, from, 16, 2, 2);
    copy(to, from, 0, 2, 2);
    long most = BoxCopy.MAX_PITCH;
    copy(side(target, most, 1), side(memory, most, 1), 8, 1, 1);
    String beyond = "pitch 2147483648 (expected: 8 to 2147483647)";
    assertFails(INVALID, beyond, () -> copy(side(target, most + 1, 1), from, 8, 1, 1));
    driver.streams().streamSynchronize(0, stream);
  }

  @Test
  void rowsOfBothSides_areApart() {
    driver.transfers().memsetD8Async(0, memory, (byte) 3, 256, stream);
    driver.transfers().memsetD8Async(0, memory, (byte) 4, 8, stream);
    assertFails(
        INVALID,
        "3 bytes are in rows of the source and of the target (expected: none)",
        () -> copy(side(memory + 5, 32, 2), side(memory, 32, 2), 8, 2, 1));
    copy(side(memory + 8, 32, 2), side(memory, 32, 2), 8, 2, 1);
    driver.streams().streamSynchronize(0, stream);
    assertThat(read(memory, 17)).startsWith(4, 4, 4, 4, 4, 4, 4, 4, 4).endsWith(4, 3);
  }

  @Test
  void batch_hasAsManyOfEach() {
    String rule = "(expected: as many of each, >= 1)";
    long[] none = {};
    long[] one = {target};
    long[] two = {memory, memory + 8};
    long[] bytes = {8, 8};
    assertFails(INVALID, "0 targets, 0 sources, 0 sizes " + rule, () -> batch(none, none, none));
    assertFails(INVALID, "1 targets, 2 sources, 2 sizes " + rule, () -> batch(one, two, bytes));
    assertFails(INVALID, "2 targets, 1 sources, 2 sizes " + rule, () -> batch(two, one, bytes));
    assertFails(INVALID, "2 targets, 2 sources, 1 sizes " + rule, () -> batch(two, two, one));
  }

  @Test
  void batch_namesWhatIsNotThere() {
    long[] good = {memory, memory + 8};
    long[] gone = {target, NO_HANDLE};
    long[] bytes = {8, 8};
    assertFails(INVALID, "target[1]", () -> batch(gone, good, bytes));
    assertFails(INVALID, "source[1]", () -> batch(good, gone, bytes));
    assertFails(INVALID, "bytes[1]: 0 (", () -> batch(gone, good, new long[] {8, 0}));
  }

  @Test
  void batch_takesAsLongAsItsCopies() {
    long host = driver.memory().memHostAlloc(0, MIB, 0).address();
    long there = driver.memory().memAlloc(0, MIB);
    long here = driver.memory().memAlloc(0, MIB);
    for (long[] sides : new long[][] {{there, host}, {host, there}, {there, here}}) {
      long single = nanos(() -> driver.transfers().memcpyAsync(0, sides[0], sides[1], MIB, stream));
      long[] to = {sides[0]};
      long[] from = {sides[1]};
      assertThat(nanos(() -> batch(to, from, new long[] {MIB}))).isEqualTo(single);
    }
  }

  private long nanos(Runnable work) {
    driver.streams().streamSynchronize(0, stream);
    long before = driver.simulatedNanos(0);
    work.run();
    driver.streams().streamSynchronize(0, stream);
    return driver.simulatedNanos(0) - before;
  }

  private void batch(long[] targets, long[] sources, long[] bytes) {
    driver.transfers().memcpyBatchAsync(0, targets, sources, bytes, stream);
  }
}
