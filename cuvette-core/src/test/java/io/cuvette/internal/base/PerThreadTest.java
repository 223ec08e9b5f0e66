package io.cuvette.internal.base;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What a thread's value is, and that closing lets go of those of all threads. */
@Timeout(60)
class PerThreadTest {
  private final List<WeakReference<Object>> made = new ArrayList<>();
  private final PerThread<Object> values = new PerThread<>(this::make);

  private synchronized Object make() {
    Object value = new Object();
    made.add(new WeakReference<>(value));
    return value;
  }

  private static boolean isGone(WeakReference<Object> value) {
    for (int i = 0; i < 5 && !value.refersTo(null); i++) {
      System.gc();
    }
    return value.refersTo(null);
  }

  private WeakReference<Object> setOne() {
    Object value = new Object();
    values.set(value);
    return new WeakReference<>(value);
  }

  @Test
  void closing_letsGoOfTheValues_ofThreadsThatGoOn() throws InterruptedException {
    CountDownLatch has = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    Thread other =
        Thread.ofPlatform()
            .start(() -> {
              assertThat(values.get()).isSameAs(values.get());
              has.countDown();
              Await.until(() -> mayEnd.getCount() == 0);
              assertThat(values.get()).as("after the end too").isNotNull();
            });
    Await.until(() -> has.getCount() == 0);
    assertThat(values.get()).isSameAs(values.get());
    assertThat(made).as("one for each thread").hasSize(2);
    System.gc();
    assertThat(made).noneMatch(value -> value.refersTo(null));
    values.close();
    assertThat(made).allMatch(PerThreadTest::isGone);
    mayEnd.countDown();
    other.join();
  }

  @Test
  void valueThatIsSetOrMadeAfterTheEnd_isNotKeptEither() {
    values.close();
    assertThat(values.get()).isNotNull();
    assertThat(made).singleElement().matches(PerThreadTest::isGone);
    WeakReference<Object> mine = setOne();
    assertThat(isGone(mine)).isTrue();
    Object another = new Object();
    values.set(another);
    assertThat(values.get()).isSameAs(another).isSameAs(values.get());
  }

  @Test
  void threadThatBeginsAnew_hasAnotherValue() {
    Object first = values.get();
    values.remove();
    assertThat(values.get()).isNotSameAs(first).isSameAs(values.get());
  }

  /** Each way to have a value, before the end and after it. */
  @Test
  void value_isKeptUntilTheEnd_andThenAsLongAsSomebodyHasIt() {
    for (boolean isSet : new boolean[] {false, true}) {
      values.remove();
      WeakReference<Object> before = isSet ? setOne() : new WeakReference<>(values.get());
      System.gc();
      assertThat(before.refersTo(null)).as("before the end").isFalse();
      assertThat(before.refersTo(values.get())).isTrue();
    }
    values.close();
    for (int i = 0; i < 3; i++) {
      Object mine = values.get();
      System.gc();
      assertThat(mine).isNotNull().isSameAs(values.get());
      WeakReference<Object> last = new WeakReference<>(mine);
      mine = null;
      assertThat(isGone(last)).as("nobody has it any more").isTrue();
    }
    WeakReference<Object> after = setOne();
    assertThat(isGone(after)).isTrue();
    assertThat(values.get()).as("another one").isNotNull();
  }
}
