package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import io.cuvette.Cuda;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.Faults;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.PublicApi;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Whatever takes an object says which one is missing, before it has done anything. Found by
 * reflection: a new method is checked as soon as it is there.
 */
@Timeout(60)
class NullArgumentsTest {
  /** What users implement and the library calls. */
  private static final Set<String> OF_USERS =
      Set.of(
          "MemoryHook",
          "PressureListener",
          "StreamCallback",
          "WithStatus",
          "MallocFunction",
          "FreeFunction",
          "GridFunction",
          "KernelFunction",
          "KernelThread", // which the simulated device makes
          "Interceptor",
          "UseCase",
          "Leftovers",
          "CudaUse",
          "Answer");

  /** Made by the JUnit extension alone; has a test of its own. */
  private static final Class<?> GIVEN_BY_JUNIT = Subject.class;

  private static NullSamples samples;

  @BeforeAll
  static void makeSamples() {
    samples = new NullSamples();
  }

  @AfterAll
  static void closeSamples() {
    samples.close();
  }

  @Test
  void library_namesWhatIsMissing() {
    assertThat(wrong(Cuda.class)).isEmpty();
  }

  @Test
  void driverSeam_namesWhatIsMissing() {
    assertThat(wrong(CudaDriver.class)).isEmpty();
  }

  @Test
  void simulatedDevice_namesWhatIsMissing() {
    assertThat(wrong(SimulatedDriver.class)).isEmpty();
  }

  @Test
  void instruments_nameWhatIsMissing() {
    assertThat(wrong(Faults.class)).isEmpty();
  }

  @Test
  void testKit_namesWhatIsMissing() {
    assertThat(wrong(Subject.class)).isEmpty();
  }

  @CudaTest
  void subject_namesWhatIsMissing(Subject subject) {
    assertThatNullPointerException().isThrownBy(() -> subject.open(null)).withMessage("options");
    assertThatNullPointerException().isThrownBy(() -> subject.simulator(null)).withMessage("cuda");
  }

  private static List<String> wrong(Class<?> known) {
    List<String> wrong = new ArrayList<>();
    for (Class<?> type : PublicApi.classesBeside(known)) {
      if (!OF_USERS.contains(type.getSimpleName()) && type != GIVEN_BY_JUNIT) {
        for (Executable call : PublicApi.calls(type)) {
          if (isChecked(call)) {
            check(type, call, wrong);
          }
        }
      }
    }
    return wrong;
  }

  /** The seam's own methods take what the library gives them; tests are called by JUnit. */
  private static boolean isChecked(Executable call) {
    Class<?> type = call.getDeclaringClass();
    boolean ofEveryObject =
        Set.of("equals", "compareTo").contains(call.getName())
            || (type.isEnum() && call.getName().equals("valueOf"));
    boolean ofTheSeam =
        call instanceof Method method
            && (isOfTheSeam(type, method) || (type.isInterface() && isSeam(type)));
    return !ofEveryObject && !ofTheSeam && !isOfJunit(call);
  }

  private static boolean isSeam(Class<?> type) {
    return type.getPackageName().equals("io.cuvette.driver");
  }

  private static boolean isOfTheSeam(Class<?> type, Method method) {
    for (Class<?> at = type; at != null; at = at.getSuperclass()) {
      for (Class<?> face : at.getInterfaces()) {
        if ((isSeam(face) && has(face, method)) || isOfTheSeam(face, method)) {
          return true;
        }
      }
    }
    return false;
  }

  private static boolean has(Class<?> face, Method method) {
    return Arrays.stream(face.getMethods())
        .anyMatch(m ->
            m.getName().equals(method.getName())
                && Arrays.equals(m.getParameterTypes(), method.getParameterTypes()));
  }

  private static boolean isOfJunit(Executable call) {
    return call.getDeclaringClass().getName().endsWith("Extension")
        || Arrays.stream(call.getAnnotations())
            .anyMatch(a -> a.annotationType().getName().contains("CudaTest"))
        || call.isAnnotationPresent(ExtendWith.class);
  }

  private static void check(Class<?> type, Executable call, List<String> wrong) {
    Parameter[] parameters = call.getParameters();
    for (int i = 0; i < parameters.length; i++) {
      if (!parameters[i].getType().isPrimitive() && !isNullable(parameters[i])) {
        int before = wrong.size();
        for (Object receiver : receivers(type, call, wrong)) {
          if (wrong.size() == before) {
            check(receiver, call, i, wrong);
          }
        }
      }
    }
  }

  private static boolean isNullable(Parameter parameter) {
    return parameter.getAnnotatedType().isAnnotationPresent(Nullable.class);
  }

  private static List<@Nullable Object> receivers(
      Class<?> type, Executable call, List<String> wrong) {
    if (call instanceof Constructor || Modifier.isStatic(call.getModifiers())) {
      return Arrays.asList((Object) null);
    }
    List<@Nullable Object> receivers = new ArrayList<>(samples.allOf(type));
    if (receivers.isEmpty()) {
      wrong.add("no sample of %s: add one to NullSamples".formatted(type));
    }
    return receivers;
  }

  private static void check(
      @Nullable Object receiver, Executable call, int missing, List<String> wrong) {
    Parameter[] parameters = call.getParameters();
    @Nullable Object[] arguments = new Object[parameters.length];
    for (int i = 0; i < arguments.length; i++) {
      boolean given = i != missing && !isNullable(parameters[i]);
      arguments[i] = given ? samples.argument(parameters[i].getType()) : null;
    }
    String before = samples.state();
    String expected = parameters[missing].getName();
    Throwable thrown = call(receiver, call, arguments);
    boolean named = thrown instanceof NullPointerException && expected.equals(thrown.getMessage());
    if (!named || !samples.state().equals(before)) {
      String found = named ? samples.state() + " (before: " + before + ")" : thrown + at(thrown);
      wrong.add(
          "%s with %s null: %s"
              .formatted(call.toString().replace("io.cuvette.", ""), expected, found));
    }
  }

  private static String at(@Nullable Throwable thrown) {
    return thrown == null || thrown.getStackTrace().length == 0
        ? ""
        : " at " + thrown.getStackTrace()[0];
  }

  private static @Nullable Throwable call(
      @Nullable Object receiver, Executable call, @Nullable Object[] arguments) {
    try {
      if (call instanceof Constructor<?> constructor) {
        constructor.newInstance(arguments);
      } else {
        ((Method) call).setAccessible(true);
        ((Method) call).invoke(receiver, arguments);
      }
      return null;
    } catch (InvocationTargetException e) {
      return e.getCause();
    } catch (ReflectiveOperationException | RuntimeException e) {
      return e;
    }
  }
}
