package io.cuvette.sim.internal.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.sim.internal.base.FileExtents;
import io.cuvette.sim.internal.base.SimRefusal;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What a table of exported allocations tells its readers, whoever wrote in it. */
class SharedTableTest {
  private static final long PAGE = FileExtents.PAGE;
  private static final long DATA = 16 * PAGE;
  private static final long MOST = 8 * PAGE;
  private static final int PLACES = (int) (SharedTable.BYTES / 24);

  private final MemorySegment bytes = Arena.ofAuto().allocate(SharedTable.BYTES, 8);
  private final SharedTable writer = new SharedTable(bytes, DATA, MOST);
  private final SharedTable reader = new SharedTable(bytes, DATA, MOST);

  private SharedTable.Entry found(SharedTable.Entry entry) {
    return reader.find(entry.place(), entry.generation());
  }

  @Test
  void allocation_isFoundUntilItIsRemoved_andIsGoneOnceItHasEnded() {
    SharedTable.Entry first = writer.add(PAGE, 100);
    SharedTable.Entry second = writer.add(2 * PAGE, PAGE);
    assertThat(found(first)).isEqualTo(first);
    assertThat(found(second)).isEqualTo(second);
    writer.remove(first);
    assertThat(found(first)).isNull();
    assertThat(reader.isGone(first)).as("who has it, has it").isFalse();
    writer.end(first);
    assertThat(reader.isGone(first)).isTrue();
    assertThat(reader.isGone(second)).isFalse();
    SharedTable.Entry next = writer.add(PAGE, 100);
    assertThat(next.place()).isEqualTo(first.place());
    assertThat(found(next)).isEqualTo(next);
    assertThat(found(first)).isNull();
    assertThat(reader.isGone(first)).isTrue();
  }

  @Test
  void placesThatAreUsedAgain_haveHandlesOfTheirOwn() {
    Set<SharedTable.Entry> all = new HashSet<>();
    List<SharedTable.Entry> old = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      SharedTable.Entry kept = writer.add(0, 1);
      SharedTable.Entry entry = writer.add(PAGE, 1);
      assertThat(all.add(kept)).isTrue();
      assertThat(all.add(entry)).isTrue();
      assertThat(entry.generation() % 2).isEqualTo(1);
      assertThat(entry.generation()).isPositive();
      writer.remove(entry);
      writer.end(entry);
      old.add(entry);
    }
    assertThat(old).allMatch(entry -> found(entry) == null && reader.isGone(entry));
  }

  @Test
  void handleOfNoPlace_orOfNoGeneration_isNone() {
    SharedTable.Entry entry = writer.add(0, 1);
    for (int place : new int[] {-1, Integer.MIN_VALUE, PLACES, Integer.MAX_VALUE, 1}) {
      assertThat(reader.find(place, entry.generation())).as("place %d", place).isNull();
    }
    for (long generation : new long[] {0, 2, -1, entry.generation() + 2}) {
      assertThat(reader.find(entry.place(), generation)).as("%d", generation).isNull();
    }
    writer.remove(entry);
    assertThat(reader.find(entry.place(), entry.generation() + 1)).as("not in use").isNull();
  }

  /** Another process may have written it. */
  @Test
  void allocationThatIsNotInsideTheFile_isNone() {
    SharedTable.Entry entry = writer.add(0, 1);
    long[][] sound = {{0, 1}, {0, MOST}, {8 * PAGE, MOST}, {15 * PAGE, PAGE}};
    for (long[] each : sound) {
      set(each);
      assertThat(found(entry))
          .isEqualTo(new SharedTable.Entry(entry.place(), entry.generation(), each[0], each[1]));
    }
    long[][] none = {
      {-PAGE, 1},
      {1, 1},
      {PAGE - 1, 1},
      {0, 0},
      {0, -1},
      {0, MOST + 1},
      {9 * PAGE, MOST},
      {15 * PAGE, PAGE + 1},
      {16 * PAGE, 1},
      {Long.MAX_VALUE / PAGE * PAGE, MOST},
      {Long.MIN_VALUE, 1},
      {0, Long.MAX_VALUE},
      {PAGE, Long.MIN_VALUE}
    };
    for (long[] each : none) {
      set(each);
      assertThat(found(entry)).as("offset %d, %d bytes", each[0], each[1]).isNull();
    }
  }

  private void set(long[] offsetAndSize) {
    bytes.set(ValueLayout.JAVA_LONG, 8, offsetAndSize[0]);
    bytes.set(ValueLayout.JAVA_LONG, 16, offsetAndSize[1]);
  }

  @Test
  void table_isFullAtSomePoint_andGoesOn() {
    for (int i = 0; i < PLACES; i++) {
      assertThat(writer.add(0, 1).place()).isEqualTo(i);
    }
    for (int i = 0; i < 2; i++) {
      assertThatExceptionOfType(SimRefusal.class).isThrownBy(() -> writer.add(0, 1));
    }
    SharedTable.Entry last = new SharedTable.Entry(PLACES - 1, 1, 0, 1);
    writer.remove(last);
    writer.end(last);
    assertThat(writer.add(0, 1).place()).isEqualTo(PLACES - 1);
  }
}
