package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Each buffer that a copy has to do with is kept until the stream of the copy has done it. */
@Timeout(60)
class UsedByCopiesTest extends OrderingFixture {
  private static final long BYTES = 2L << 20;
  private static final CopyBox ROWS =
      CopyBox.of(64, 2).withSource(0, 128).withTarget(64, 256); // of a target and a source

  private Map<String, Consumer<List<Buffer>>> copies() {
    Map<String, Consumer<List<Buffer>>> all = new LinkedHashMap<>();
    all.put("one", some -> some.get(0).copyFrom(some.get(1), other));
    all.put("rows", some -> some.get(0).copyFrom(some.get(1), ROWS, other));
    all.put(
        "batch",
        some ->
            CopyBatch.of(
                    List.of(some.get(0), some.get(1), some.get(2)),
                    List.of(some.get(3), some.get(4), some.get(5)))
                .copy(other));
    return all;
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void buffersOfACopy_arePendingUntilItIsDone(Kind kind) {
    copies()
        .forEach((name, copy) -> {
          int count = name.equals("batch") ? 6 : 2;
          for (int kept = 0; kept < count; kept++) {
            MemoryResource pool = pool(kind);
            List<Buffer> some =
                Stream.generate(() -> pool.allocate(BYTES, home)).limit(count).toList();
            copy.accept(some);
            busy.begin(other);
            some.get(kept).close();
            assertThat(stats(pool).pendingBytes()).as("%s, %d", name, kept).isEqualTo(BYTES);
            busy.finish(other);
            some.forEach(Buffer::close);
          }
        });
  }
}
