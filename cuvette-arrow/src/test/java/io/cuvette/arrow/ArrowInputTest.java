package io.cuvette.arrow;

import static io.cuvette.arrow.HostVectors.INT;
import static io.cuvette.arrow.HostVectors.field;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ForeignLoan;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.FaultSweeps;
import io.cuvette.testkit.ScriptedDriver;
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
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Missing arguments, and calls of the driver that fail. */
class ArrowInputTest {
  private static final Field PAIR =
      field("p", new ArrowType.Struct(), field("x", INT), field("y", INT));

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

  /** What others give back comes back on a thread of its own, one after the other. */
  private static void awaitReturns() {
    ForeignLoan last = ForeignLoan.of(() -> {});
    last.giveBack();
    DeviceVectorTest.await(last::isOver);
  }

  private static DeviceVector pair(Field pair, Buffer first, Buffer second) {
    List<Field> fields = pair.getChildren();
    return DeviceVector.of(
        pair,
        10,
        null,
        List.of(
            DeviceVector.of(fields.get(0), 10, null, first),
            DeviceVector.of(fields.get(1), 10, null, second)));
  }

  /** The event has to be closed, and the memory of both columns is no longer out. */
  @CudaTest
  void exportWhoseEventFails_leavesNothing(Cuda cuda, CudaStream stream, ScriptedDriver script) {
    try (Arena arena = Arena.ofConfined();
        DeviceVector values = pair(PAIR, cuda.allocate(40, stream), cuda.allocate(40, stream))) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      for (String call : List.of("eventCreate", "eventRecord")) {
        script.fail(call, CudaStatus.INVALID_VALUE);
        assertThatThrownBy(() -> values.export(array, stream))
            .isInstanceOf(CudaException.class)
            .hasMessageContaining(call);
        script.unscript(call);
        assertThat(array.isReleased()).isTrue();
        assertThat(open(cuda, "event")).isEmpty();
      }
    }
    awaitReturns();
    assertThat(DeviceVectorTest.used(cuda)).isZero();
  }

  private static List<String> open(Cuda cuda, String what) {
    return cuda.openObjects().stream()
        .map(Object::toString)
        .filter(text -> text.contains(what))
        .toList();
  }

  /** Nothing of an array that could not be waited for is kept, and it can be taken later. */
  @CudaTest
  void takeWhoseWaitFails_leavesTheArrayToItsProducer(
      Cuda cuda, CudaStream stream, CudaStream other, ScriptedDriver script) {
    try (Arena arena = Arena.ofConfined()) {
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      try (DeviceVector values = pair(PAIR, cuda.allocate(40, stream), cuda.allocate(40, stream))) {
        values.export(array, stream);
      }
      int before = cuda.openObjects().size();
      script.fail("streamWaitEvent", CudaStatus.INVALID_VALUE);
      assertThatThrownBy(() -> DeviceVector.take(array, PAIR, other))
          .isInstanceOf(CudaException.class);
      script.unscript("streamWaitEvent");
      assertThat(array.isReleased()).isFalse();
      assertThat(cuda.openObjects()).hasSize(before);
      DeviceVector.take(array, PAIR, other).close();
      assertThat(array.isReleased()).isTrue();
    }
    awaitReturns();
    assertThat(DeviceVectorTest.used(cuda)).isZero();
  }

  /** The buffers before the closed one were lent already. */
  @CudaTest
  void exportOfAClosedBuffer_givesBackWhatItBorrowed(Cuda cuda, CudaStream stream) {
    Buffer closed = cuda.allocate(40, stream);
    try (Arena arena = Arena.ofConfined();
        DeviceVector values = pair(PAIR, cuda.allocate(40, stream), closed)) {
      closed.close();
      ArrowDeviceArray array = ArrowDeviceArray.allocate(arena);
      assertThatThrownBy(() -> values.export(array, stream))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
      assertThat(array.isReleased()).isTrue();
    }
    awaitReturns();
    assertThat(DeviceVectorTest.used(cuda)).isZero();
  }
}
