package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT32;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Whatever takes an object says which one is missing. Found by reflection. */
class ArrayNullsTest {
  private static final List<Class<?>> TYPES =
      List.of(
          ArrayModule.class,
          ArrayRandom.class,
          BinaryOperation.class,
          Complex.class,
          CudaArray.class,
          CudaArrays.class,
          Dlpack.class,
          ElementType.class,
          HostArray.class,
          HostArrays.class,
          Layout.class,
          NdArray.class,
          Order.class,
          Range.class,
          Reduction.class,
          UnaryOperation.class);

  @Test
  void everyMissingArgument_isNamed() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        Buffer buffer = cuda.allocate(64);
        CudaArray device = CudaArrays.of(cuda).zeros(FLOAT32, 1);
        HostArray host = HostArrays.of(cuda).zeros(FLOAT32, 1)) {
      Map<Class<?>, Object> samples =
          Map.ofEntries(
              Map.entry(Cuda.class, cuda),
              Map.entry(CudaDevice.class, cuda.device(0)),
              Map.entry(CudaStream.class, cuda.currentStream()),
              Map.entry(Buffer.class, buffer),
              Map.entry(CudaArray.class, device),
              Map.entry(HostArray.class, host),
              Map.entry(NdArray.class, device),
              Map.entry(NdArray[].class, new NdArray[] {host}),
              Map.entry(CudaArrays.class, CudaArrays.of(cuda)),
              Map.entry(HostArrays.class, HostArrays.of(cuda)),
              Map.entry(ArrayModule.class, HostArrays.of(cuda)),
              Map.entry(ElementType.class, FLOAT32),
              Map.entry(ArrayRandom.class, ArrayRandom.of(HostArrays.of(cuda), 1)),
              Map.entry(BinaryOperation.class, BinaryOperation.ADD),
              Map.entry(UnaryOperation.class, UnaryOperation.NEGATE),
              Map.entry(Reduction.class, Reduction.SUM),
              Map.entry(Order.class, Order.C),
              Map.entry(Layout.class, Layout.of(1)),
              Map.entry(DlpackOptions.class, DlpackOptions.DEFAULTS),
              Map.entry(DlpackTensor.class, new DlpackTensor(1, true)),
              Map.entry(Complex.class, Complex.ONE),
              Map.entry(Range.class, Range.all()),
              Map.entry(Range[].class, new Range[0]),
              Map.entry(long[].class, new long[] {1}),
              Map.entry(long[][].class, new long[][] {{1}}),
              Map.entry(int[].class, new int[] {0}),
              Map.entry(Class.class, float[].class),
              Map.entry(Object.class, new float[] {1}),
              Map.entry(MemorySegment.class, MemorySegment.ofArray(new float[1])));
      List<String> wrong = new ArrayList<>();
      for (Class<?> type : TYPES) {
        for (Method method : type.getMethods()) {
          if (method.getDeclaringClass().getPackageName().equals("io.cuvette.array")
              && !method.isBridge()
              && !Set.of("equals", "valueOf").contains(method.getName())) {
            check(type, method, samples, wrong);
          }
        }
      }
      assertThat(wrong).isEmpty();
    }
  }

  private static void check(
      Class<?> type, Method method, Map<Class<?>, Object> samples, List<String> wrong)
      throws Exception {
    Parameter[] parameters = method.getParameters();
    method.setAccessible(true);
    for (int i = 0; i < parameters.length; i++) {
      if (parameters[i].getType().isPrimitive()
          || parameters[i].getAnnotatedType().isAnnotationPresent(Nullable.class)) {
        continue;
      }
      Object[] arguments = new Object[parameters.length];
      for (int k = 0; k < arguments.length; k++) {
        arguments[k] = k == i ? null : argument(parameters[k], samples);
      }
      Object receiver = Modifier.isStatic(method.getModifiers()) ? null : samples.get(type);
      String found;
      try {
        found = "returned " + method.invoke(receiver, arguments);
      } catch (InvocationTargetException e) {
        found = e.getCause().toString();
      }
      if (!found.equals("java.lang.NullPointerException: " + parameters[i].getName())) {
        wrong.add(
            "%s.%s, %s null: %s"
                .formatted(type.getSimpleName(), method.getName(), parameters[i].getName(), found));
      }
    }
  }

  private static @Nullable Object argument(Parameter parameter, Map<Class<?>, Object> samples) {
    Class<?> type = parameter.getType();
    if (parameter.getAnnotatedType().isAnnotationPresent(Nullable.class)) {
      return null;
    }
    if (type == long.class) {
      return 1L;
    }
    if (type == int.class) {
      return 0;
    }
    if (type == double.class) {
      return 1.0;
    }
    if (type == boolean.class) {
      return true;
    }
    return samples.get(type);
  }
}
