package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What every object of the public API answers in the same way, found by reflection. */
@Timeout(60)
class SimpleAnswersTest {

  /** What the objects with a public method without parameters answer, as {@code type: answer}. */
  private static List<String> answers(
      NullSamples samples, String name, Predicate<Object> of, Class<?> type) throws Exception {
    List<String> answers = new ArrayList<>();
    for (Object object : samples.allOf(Object.class)) {
      Method method = method(object, name);
      if (method != null && method.getReturnType() == type && of.test(object)) {
        answers.add(object.getClass().getSimpleName() + ": " + call(method, object));
      }
    }
    return answers;
  }

  private static @Nullable Method method(Object object, String name) {
    try {
      Method method = object.getClass().getMethod(name);
      method.setAccessible(true); // also that of a class behind the public ones
      return method;
    } catch (NoSuchMethodException e) {
      return null;
    }
  }

  private static Object call(Method method, Object object) throws IllegalAccessException {
    try {
      return method.invoke(object);
    } catch (InvocationTargetException e) {
      return e.getCause();
    }
  }

  private static boolean isOfLibrary(Object object) {
    return object.getClass().getPackageName().equals("io.cuvette");
  }

  /** Channels and listeners are of the process. */
  private static boolean isOfCuda(Object object) {
    return isOfLibrary(object) && !(object instanceof IpcChannel || object instanceof IpcListener);
  }

  @Test
  void whatIsOpen_saysSo_andWhatEndedWithTheCuda_saysThat() throws Exception {
    NullSamples samples = new NullSamples();
    try {
      List<String> open =
          answers(samples, "isClosed", SimpleAnswersTest::isOfLibrary, boolean.class);
      assertThat(open).hasSizeGreaterThan(20).allMatch(answer -> answer.endsWith(": false"));
    } finally {
      samples.close();
    }
    assertThat(answers(samples, "isClosed", SimpleAnswersTest::isOfLibrary, boolean.class))
        .allMatch(answer -> answer.endsWith(": true"));
  }

  @Test
  void whatIsClosed_saysSo() throws Exception {
    NullSamples samples = new NullSamples();
    try {
      for (Object object : samples.allOf(AutoCloseable.class).reversed()) {
        Method method = method(object, "isClosed");
        if (method != null && isOfCuda(object) && !(object instanceof Cuda)) {
          ((AutoCloseable) object).close();
          assertThat(call(method, object)).as("%s", object).isEqualTo(true);
        }
      }
    } finally {
      samples.close();
    }
  }

  /** Also to what is of another type, or nothing. */
  @Test
  void everything_isEqualToItself_andToNothingElse() {
    Object text = "something else";
    try (NullSamples samples = new NullSamples()) {
      for (Object object : samples.allOf(Object.class)) {
        if (isOfLibrary(object)) {
          assertThat(object.equals(text) || object.equals(null)).as("%s", object).isFalse();
          assertThat(object).isEqualTo(object).hasSameHashCodeAs(object);
        }
      }
    }
  }

  @Test
  void whatIsOfACuda_namesIt() throws Exception {
    try (NullSamples samples = new NullSamples()) {
      Cuda cuda = (Cuda) samples.allOf(Cuda.class).getFirst();
      List<String> named = answers(samples, "cuda", SimpleAnswersTest::isOfCuda, Cuda.class);
      assertThat(named).isNotEmpty().allMatch(answer -> answer.endsWith(": " + cuda));
    }
  }

  /** What has a text of its own. */
  @Test
  void everyText_saysWhatItIs() throws Exception {
    try (NullSamples samples = new NullSamples()) {
      for (Object object : samples.allOf(Object.class)) {
        boolean isOwn = object.getClass().getMethod("toString").getDeclaringClass() != Object.class;
        if (isOfLibrary(object) && isOwn) {
          assertThat(object.toString())
              .as("%s", object.getClass())
              .isNotBlank()
              .doesNotContain("(closed)");
        }
      }
    }
  }

  @Test
  void optionsOfWhatWasMadeWithSome_areThere() throws Exception {
    try (NullSamples samples = new NullSamples()) {
      int found = 0;
      for (Object object : samples.allOf(Object.class)) {
        Method method = method(object, "options");
        if (method != null && isOfLibrary(object)) {
          assertThat(call(method, object)).as("%s", object).isInstanceOf(method.getReturnType());
          found++;
        }
      }
      assertThat(found).isGreaterThan(2);
    }
  }
}
