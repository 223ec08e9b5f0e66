package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Layouts against a model that goes through all indices one by one. */
@Timeout(600)
class LayoutModelTest {
  /** A million by hand: {@code -Dcuvette.programs=1000000}. */
  private static final int PROGRAMS = Integer.getInteger("cuvette.programs", 60_000);

  private static final long FIRST_SEED = Long.getLong("cuvette.seed", 1);

  @Test
  void randomViews_areThoseOfTheModel() {
    for (int program = 0; program < PROGRAMS; program++) {
      long seed = FIRST_SEED + program;
      RandomView view = RandomView.whole(new Random(seed));
      for (int step = 0; step < 4; step++) {
        RandomView _ = view.steps(1);
        check(view, seed);
      }
    }
  }

  private static void check(RandomView view, long seed) {
    Layout layout = view.layout;
    ModelView model = view.model;
    String what = "cuvette.seed=%d: %s".formatted(seed, view);
    assertThat(layout.shape()).as(what).isEqualTo(model.shape());
    assertThat(layout.size()).as(what).isEqualTo(model.places().length);
    assertThat(places(layout)).as(what).isEqualTo(model.places());
    if (layout.hasDistinctElements() != model.isDistinct()) {
      throw new AssertionError(what + ": hasDistinctElements " + layout.hasDistinctElements());
    }
    if (layout.size() > 0) {
      long lowest = Arrays.stream(model.places()).min().orElseThrow();
      long highest = Arrays.stream(model.places()).max().orElseThrow();
      boolean isDense = model.isDistinct() && highest - lowest + 1 == model.places().length;
      assertThat(layout.lowest()).as(what).isEqualTo(lowest);
      assertThat(layout.end()).as(what).isEqualTo(highest + 1);
      assertThat(layout.isDense()).as(what).isEqualTo(isDense);
    }
    assertThat(layout.isContiguous(Order.C)).as(what).isEqualTo(follows(model.places()));
    long[] columns = places(layout.transpose());
    assertThat(layout.isContiguous(Order.F)).as(what).isEqualTo(follows(columns));
    checkCopies(layout, what);
  }

  private static void checkCopies(Layout layout, String what) {
    for (Order order : Order.values()) {
      Layout copy = layout.like(order);
      assertThat(copy.shape()).as(what).isEqualTo(layout.shape());
      assertThat(copy.isDense()).as(what).isTrue();
      assertThat(copy.offset()).as(what).isZero();
    }
    assertThat(layout.like(Order.C).isContiguous(Order.C)).as(what).isTrue();
    assertThat(layout.like(Order.F).isContiguous(Order.F)).as(what).isTrue();
  }

  private static boolean follows(long[] places) {
    for (int i = 1; i < places.length; i++) {
      if (places[i] != places[i - 1] + 1) {
        return false;
      }
    }
    return true;
  }

  static long[] places(Layout layout) {
    long[] places = new long[(int) layout.size()];
    long[] index = new long[layout.rank()];
    for (int i = 0; i < places.length; i++) {
      places[i] = layout.at(index);
      boolean _ = ModelView.next(index, layout.sizes());
    }
    return places;
  }

  @Test
  void axes_areThirtyTwoAtMost() {
    long[] most = new long[Layout.MAX_RANK];
    Arrays.fill(most, 1);
    assertThat(Layout.of(most).rank()).isEqualTo(32);
    assertThatThrownBy(() -> Layout.of(Arrays.copyOf(most, 33)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("shape: 33 axes (expected: at most 32)");
  }

  /** They are places before the first, and not the marks of a range without an end. */
  @Test
  void placesFarBeforeTheFirst_areBeforeTheFirst() {
    Layout five = Layout.of(5);
    assertThat(five.slice(Range.to(Long.MIN_VALUE)).size()).isZero();
    assertThat(five.slice(Range.from(Long.MIN_VALUE)).size()).isEqualTo(5);
    assertThat(five.slice(Range.from(Long.MIN_VALUE).step(-1)).size()).isZero();
  }

  @Test
  void overlap_isExact() {
    int met = 0;
    for (int program = 0; program < PROGRAMS; program++) {
      long seed = FIRST_SEED + program;
      Random random = new Random(seed);
      RandomView a = RandomView.whole(random).steps(3);
      RandomView b = RandomView.whole(random).steps(3);
      int shift = random.nextInt(70);
      ModelView moved =
          new ModelView(
              b.model.shape(), Arrays.stream(b.model.places()).map(i -> i + shift).toArray());
      boolean expected = a.model.shares(moved);
      met += expected ? 1 : 0;
      boolean found =
          Overlap.exists(
              a.layout, ElementType.FLOAT32, 1000, b.layout, ElementType.INT32, 1000 + 4L * shift);
      if (found != expected) {
        throw new AssertionError(
            "cuvette.seed=%d: %s and %s + %d: %b".formatted(seed, a, b, shift, found));
      }
    }
    assertThat(met).isBetween(PROGRAMS / 20, PROGRAMS - PROGRAMS / 20);
  }

  /** Elements of 1 to 16 bytes at places of one another that no multiple divides. */
  @Test
  void overlapOfDifferentTypes_isExactToTheByte() {
    ElementType[] types = ElementType.values();
    for (int program = 0; program < PROGRAMS; program++) {
      long seed = FIRST_SEED + program;
      Random random = new Random(seed);
      RandomView a = RandomView.whole(random).steps(2);
      RandomView b = RandomView.whole(random).steps(2);
      ElementType typeA = types[random.nextInt(types.length)];
      ElementType typeB = types[random.nextInt(types.length)];
      int shift = random.nextInt(-80, 81);
      boolean[] bytes = new boolean[3000];
      for (long place : a.model.places()) {
        Arrays.fill(
            bytes,
            (int) (500 + place * typeA.bytes()),
            (int) (500 + (place + 1) * typeA.bytes()),
            true);
      }
      boolean expected = false;
      for (long place : b.model.places()) {
        for (int i = 0; i < typeB.bytes(); i++) {
          expected |= bytes[(int) (500 + shift + place * typeB.bytes() + i)];
        }
      }
      if (Overlap.exists(a.layout, typeA, 500, b.layout, typeB, 500 + shift) != expected) {
        throw new AssertionError(
            "cuvette.seed=%d: %s of %s and %s of %s + %d (expected: %b)"
                .formatted(seed, a, typeA, b, typeB, shift, expected));
      }
    }
  }

  /** Whoever copies between them takes the safe way then. */
  @Test
  void overlapThatTakesTooLongToDecide_countsAsOne() {
    long[] sizes = {30, 30, 30, 30, 30};
    Layout layout = Layout.strided(sizes, new long[] {1010, 1030, 1070, 1090, 1130}, 0);
    Layout beside = Layout.strided(new long[] {2}, new long[] {10}, 0);
    ElementType type = ElementType.INT32;
    assertThat(Overlap.exists(layout, type, 0, beside, type, 4L * 50_005)).isTrue();
    Layout small = Layout.strided(new long[] {30, 30}, new long[] {1010, 1030}, 0);
    assertThat(Overlap.exists(small, type, 0, beside, type, 4L * 50_005)).isFalse();
  }
}
