package io.cuvette.internal.share;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.session.PeerHandles.Range;
import io.cuvette.internal.share.Mappings.Key;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Which handles are of one allocation: those that are alike in what the driver reads of them. */
class MappingKeysTest {
  private static ByteBuffer bytes(int first, int last) {
    return ByteBuffer.wrap(new byte[] {(byte) first, 0, (byte) last});
  }

  private static Key key(int device, int first, int last, @Nullable Range range) {
    return new Key(device, bytes(first, last), range);
  }

  private static Range range(int block, long offset, long bytes) {
    return new Range(ByteBuffer.wrap(new byte[] {(byte) block}), offset, bytes);
  }

  private static final Key OF_POOL = key(-1, 1, 2, null);
  private static final Key WITH_RANGE = key(-1, 1, 2, range(1, 256, 64));

  @Test
  void handlesOfOneAllocation_areEqual() {
    assertThat(key(-1, 1, 2, null)).isEqualTo(OF_POOL).hasSameHashCodeAs(OF_POOL);
    for (Key same :
        List.of(
            key(-1, 1, 2, range(1, 256, 64)),
            key(-1, 1, 3, range(1, 256, 64)),
            key(-1, 9, 9, range(1, 256, 1 << 20)))) {
      assertThat(same).isEqualTo(WITH_RANGE).hasSameHashCodeAs(WITH_RANGE);
    }
  }

  @Test
  void handlesOfTwoAllocations_areNot() {
    List<Key> all =
        Stream.of(
                OF_POOL,
                WITH_RANGE,
                key(0, 1, 2, null),
                key(1, 1, 2, null),
                key(-1, 2, 2, null),
                key(-1, 1, 3, null),
                key(-1, 1, 2, range(1, 512, 64)),
                key(-1, 1, 2, range(2, 256, 64)),
                key(0, 1, 2, range(1, 256, 64)))
            .toList();
    assertThat(all).doesNotHaveDuplicates();
    assertThat(OF_POOL.equals((Object) bytes(1, 2))).isFalse();
    assertThat(OF_POOL.equals(null)).isFalse();
  }
}
