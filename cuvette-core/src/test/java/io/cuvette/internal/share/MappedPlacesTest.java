package io.cuvette.internal.share;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.session.PeerHandles;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** Whose memory a range of a pool would be mapped over, by where its neighbours are. */
class MappedPlacesTest {
  private static final long ADDRESS = 0x10_0000;
  private static final long OFFSET = 0x4000;
  private static final long BYTES = 0x1000;

  private final Mappings table = Mappings.of(true);
  private final MappedPlaces places = new MappedPlaces();
  private final Mapping known = mapping(1, OFFSET, BYTES);

  private Mapping mapping(int block, long offset, long bytes) {
    ByteBuffer name = ByteBuffer.wrap(new byte[] {(byte) block});
    PeerHandles.Range range = new PeerHandles.Range(name, offset, bytes);
    return new Mapping(new Mappings.Key(-1, name, range), table);
  }

  private boolean overlaps(int block, long offset, long bytes) {
    Mapping asker = mapping(block, offset, bytes);
    PeerHandles.Range range = Objects.requireNonNull(asker.range());
    return places.ownerOfUnmapped(range, asker) == known;
  }

  @Test
  void rangeOfTheSameBlock_isAsFarFromItsNeighbourAsItsOffset() {
    places.put(known, ADDRESS, BYTES);
    assertThat(overlaps(1, OFFSET + BYTES - 0x100, 0x100)).as("its last bytes").isTrue();
    assertThat(overlaps(1, OFFSET + BYTES, 0x100)).as("what is behind").isFalse();
    assertThat(overlaps(1, OFFSET - 0x100, 0x200)).as("into its first bytes").isTrue();
    assertThat(overlaps(1, OFFSET - 0x100, 0x100)).as("what is before").isFalse();
    assertThat(overlaps(2, OFFSET, BYTES)).as("of another block").isFalse();
  }

  @Test
  void rangeOfItsOwn_isNoOverlap_norIsThatOfMemoryThatWent() {
    places.put(known, ADDRESS, BYTES);
    PeerHandles.Range own = Objects.requireNonNull(known.range());
    assertThat(places.ownerOfUnmapped(own, known)).isNull();
    places.remove(known);
    assertThat(overlaps(1, OFFSET, BYTES)).isFalse();
  }

  @Test
  void neighbourWhosePartOfAPoolIsNotKnown_saysNothing() {
    ByteBuffer name = ByteBuffer.wrap(new byte[] {1});
    places.put(new Mapping(new Mappings.Key(-1, name, null), table), ADDRESS - BYTES, BYTES);
    assertThat(overlaps(1, OFFSET, BYTES)).isFalse();
    places.put(known, ADDRESS, BYTES);
    assertThat(overlaps(1, OFFSET, BYTES)).isTrue();
  }

  /** Memory can be mapped at several places. */
  @Test
  void placesOfTheAskerItself_areLookedPast() {
    Mapping other = mapping(2, 0, BYTES);
    places.put(known, ADDRESS, BYTES);
    places.put(known, ADDRESS + 2 * BYTES, BYTES);
    places.put(other, ADDRESS + 4 * BYTES, BYTES);
    long before = ADDRESS - BYTES;
    assertThat(places.owner(before, 5 * BYTES, known)).isNull();
    assertThat(places.owner(before, 5 * BYTES + 1, known)).isSameAs(other);
    assertThat(places.owner(ADDRESS + 5 * BYTES - 1, 1, known)).isSameAs(other);
    assertThat(places.owner(ADDRESS + 5 * BYTES, BYTES, known)).isNull();
    assertThat(places.owner(before, BYTES, other)).isNull();
    assertThat(places.owner(before, BYTES + 1, other)).isSameAs(known);
    assertThat(places.owner(ADDRESS + BYTES, 3 * BYTES + 1, other)).isSameAs(known);
    assertThat(places.owner(ADDRESS + 3 * BYTES, 3 * BYTES, other)).isNull();
  }
}
