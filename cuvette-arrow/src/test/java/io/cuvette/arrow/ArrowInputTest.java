package io.cuvette.arrow;

import static io.cuvette.arrow.HostVectors.INT;
import static io.cuvette.arrow.HostVectors.field;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.testkit.FaultSweeps;
import java.lang.foreign.Arena;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Missing arguments, and calls of the driver that fail. */
class ArrowInputTest {

  @Test
  void everyMissingArgument_isNamed() throws Exception {
    Field field = field("x", INT);
    List<String> wrong = new ArrayList<>();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        BufferAllocator allocator = new RootAllocator();
        Arena arena = Arena.ofConfined();
        FieldVector ints = HostVectors.ints(3, allocator);
        Buffer buffer = cuda.allocate(64);
        DeviceVector vector = DeviceVector.of(field, 4, null, buffer)) {
      VectorSchemaRoot root = new VectorSchemaRoot(List.of(ints)); // a view
      Map<Class<?>, Object> samples =
          Map.ofEntries(
              Map.entry(CudaStream.class, cuda.currentStream()),
              Map.entry(Buffer.class, buffer),
              Map.entry(Arena.class, arena),
              Map.entry(Field.class, field),
              Map.entry(Schema.class, new Schema(List.of(field))),
              Map.entry(List.class, List.of()),
              Map.entry(FieldVector.class, ints),
              Map.entry(VectorSchemaRoot.class, root),
              Map.entry(BufferAllocator.class, allocator),
              Map.entry(ArrowDeviceArray.class, ArrowDeviceArray.allocate(arena)),
              Map.entry(DeviceVector.class, vector));
      for (Class<?> type : List.of(DeviceVector.class, ArrowDeviceArray.class)) {
        for (Method method : type.getDeclaredMethods()) {
          if (Modifier.isPublic(method.getModifiers())) {
            check(method, samples, wrong);
          }
        }
      }
    }
    assertThat(wrong).isEmpty();
  }

  private static void check(Method method, Map<Class<?>, Object> samples, List<String> wrong)
      throws Exception {
    Parameter[] parameters = method.getParameters();
    for (int i = 0; i < parameters.length; i++) {
      if (parameters[i].getType().isPrimitive() || isNullable(parameters[i])) {
        continue;
      }
      Object[] arguments = new Object[parameters.length];
      for (int k = 0; k < arguments.length; k++) {
        arguments[k] = k == i ? null : argument(parameters[k], samples);
      }
      String found;
      try {
        found = "returned " + method.invoke(samples.get(method.getDeclaringClass()), arguments);
      } catch (InvocationTargetException e) {
        found = e.getCause().toString();
      }
      if (!found.equals("java.lang.NullPointerException: " + parameters[i].getName())) {
        wrong.add("%s, %s null: %s".formatted(method, parameters[i].getName(), found));
      }
    }
  }

  private static boolean isNullable(Parameter parameter) {
    return parameter.getAnnotatedType().isAnnotationPresent(Nullable.class);
  }

  private static @Nullable Object argument(Parameter parameter, Map<Class<?>, Object> samples) {
    return isNullable(parameter)
        ? null
        : parameter.getType() == long.class ? (Object) 1L : samples.get(parameter.getType());
  }

  /** Whatever call fails, nothing is left of a copy, on either side. */
  @Test
  @Tag("simulated")
  void failedCopies_leaveNothing() throws Exception {
    Schema schema = new Schema(List.of(field("x", INT), HostVectors.list("v", 3, field("y", INT))));
    try (BufferAllocator allocator = new RootAllocator();
        VectorSchemaRoot root = HostVectors.random(schema, 9, new Random(1), allocator)) {
      long before = allocator.getAllocatedMemory();
      FaultSweeps.onSimulator("")
          .run(
              FaultSweeps.using(cuda -> {
                try (CudaStream stream = cuda.device(0).createStream();
                    DeviceVector there = DeviceVector.copyOf(root, stream);
                    VectorSchemaRoot back = there.toRoot(allocator, stream)) {
                  assertThat(back.getRowCount()).isEqualTo(9);
                } finally {
                  assertThat(allocator.getAllocatedMemory()).isEqualTo(before);
                }
              }))
          .orThrow();
    }
  }
}
