package io.cuvette.ffm;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PoolProperties;
import java.lang.foreign.Arena;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Every operation of a driver, with arguments that make sense. */
final class DriverOperations {
  /** What is in libraries of its own, or called by its address. */
  private static final Set<String> PARTS = Set.of("math", "natives");

  private static final LaunchShape SHAPE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  private static final LaunchShape CLUSTERS =
      new LaunchShape(2, 2, 1, 1, 1, 1, 2, 2, 1, 0, true, false);

  private final Arena arena = Arena.ofAuto();
  private final long handle;
  private final int number;

  DriverOperations() {
    this(8, 1);
  }

  /**
   * Gives numbers.
   *
   * @param handle for each address, size and handle
   * @param number for each device, kind and flag
   */
  DriverOperations(long handle, int number) {
    this.handle = handle;
    this.number = number;
  }

  /** A call of a part of the driver. */
  record Operation(Object target, Method method, Object[] arguments) {
    /** {@return what it failed with, or null} */
    CudaException run() {
      Throwable failure = attempt();
      if (failure == null || failure instanceof CudaException) {
        return (CudaException) failure;
      }
      throw new AssertionError(this + ": " + failure, failure);
    }

    /** {@return whatever it failed with, or null} */
    Throwable attempt() {
      try {
        method.invoke(target, arguments);
        return null;
      } catch (InvocationTargetException e) {
        return e.getCause();
      } catch (IllegalAccessException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    public String toString() {
      return method.getDeclaringClass().getSimpleName()
          + "."
          + method.getName()
          + Arrays.deepToString(arguments);
    }
  }

  /** One or more of each operation, in an order that is the same each time. */
  List<Operation> all(CudaDriver driver) throws ReflectiveOperationException {
    List<Operation> operations = new ArrayList<>();
    for (Method part : sorted(CudaDriver.class)) {
      if (!part.getReturnType().getSimpleName().endsWith("Calls")
          || PARTS.contains(part.getName())) {
        continue;
      }
      Object target = part.invoke(driver);
      for (Method method : sorted(part.getReturnType())) {
        addAll(operations, target, method);
      }
    }
    return operations;
  }

  /** In an order that is the same each time. */
  private static List<Method> sorted(Class<?> type) {
    return Stream.of(type.getDeclaredMethods())
        .filter(method -> !method.isSynthetic())
        .sorted(Comparator.comparing(Method::toGenericString))
        .toList();
  }

  private void addAll(List<Operation> operations, Object target, Method method) {
    List<Class<?>> types = List.of(method.getParameterTypes());
    if (!types.contains(GraphNodeParams.class)) {
      operations.add(operation(target, method, null));
      return;
    }
    nodes().forEach(node -> operations.add(operation(target, method, node)));
  }

  private Stream<GraphNodeParams> nodes() {
    return Stream.of(
        new GraphNodeParams.Kernel(5, SHAPE, launch()),
        new GraphNodeParams.Kernel(5, CLUSTERS, launch()),
        new GraphNodeParams.Copy(0xab, 0xcd, 8),
        new GraphNodeParams.Fill(0xab, 7, 4, 8),
        new GraphNodeParams.Host(() -> {}),
        new GraphNodeParams.Empty(),
        new GraphNodeParams.EventRecord(6),
        new GraphNodeParams.EventWait(6),
        new GraphNodeParams.Child(9),
        new GraphNodeParams.Allocation(number, 64, List.of(0), 0),
        new GraphNodeParams.Free(0xab),
        new GraphNodeParams.Conditional(3, GraphConditionType.values()[0], 1));
  }

  /** As many as the functions that stand in for the driver's look at. */
  private LaunchParameters launch() {
    return new LaunchParameters(
        arena.allocate(128),
        IntStream.range(0, 16).mapToObj(i -> new KernelParameter(8 * i, 8)).toList());
  }

  private Operation operation(Object target, Method method, GraphNodeParams node) {
    Object[] arguments =
        Arrays.stream(method.getParameterTypes())
            .map(type -> type == GraphNodeParams.class ? node : sample(type))
            .toArray();
    return new Operation(target, method, arguments);
  }

  private Object sample(Class<?> type) {
    return switch (type.getSimpleName()) {
      case "int" -> number;
      case "long" -> handle;
      case "short" -> (short) 7;
      case "byte" -> (byte) 7;
      case "boolean" -> true;
      case "String" -> "text";
      case "int[]" -> new int[] {number};
      case "long[]" -> new long[] {8};
      case "byte[]" -> new byte[64];
      case "MemorySegment" -> arena.allocate(64);
      case "Arena" -> arena;
      case "Runnable" -> (Runnable) () -> {};
      case "List" -> List.of(new GraphEdge(8, 9));
      case "PoolProperties" -> new PoolProperties(1, 1, 1, number, 64);
      case "AllocationProperties" -> new AllocationProperties(1, 1, number);
      case "BoxCopy" -> {
        BoxCopy.Side side = new BoxCopy.Side(0xab, 8, 2);
        yield new BoxCopy(side, side, 4, 2, 1);
      }
      case "LaunchShape" -> SHAPE;
      case "LaunchParameters" -> launch();
      case "GraphMemAttribute" -> GraphMemAttribute.RESERVED_HIGH;
      default -> throw new IllegalArgumentException("no sample of " + type);
    };
  }
}
