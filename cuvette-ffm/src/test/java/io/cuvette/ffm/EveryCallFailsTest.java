package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphEdge;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import java.lang.foreign.Arena;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever function of the driver an operation calls: where that one fails, the operation fails
 * with its status, and the thread has the context and the mode that it had.
 */
class EveryCallFailsTest {
  private static final CudaStatus STATUS = CudaStatus.OPERATING_SYSTEM;

  /** Calls for the thread's context and mode, which have tests of their own. */
  private static final Set<String> OTHERS =
      Set.of("cuCtxSetCurrent", "cuCtxGetCurrent", "cuThreadExchangeStreamCaptureMode");

  /** What is in libraries of its own, or called by its address. */
  private static final Set<String> PARTS = Set.of("math", "natives");

  private static final Set<Class<?>> OF_CONTEXTS =
      Set.of(
          MemoryCalls.class,
          TransferCalls.class,
          OrderedCalls.class,
          StreamCalls.class,
          EventCalls.class,
          CaptureCalls.class);
  private static final List<CudaStatus> REFUSALS =
      List.of(
          CudaStatus.INVALID_CONTEXT, CudaStatus.INVALID_HANDLE, CudaStatus.CONTEXT_IS_DESTROYED);

  private static final LaunchShape SHAPE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  private record Operation(Object target, Method method, Object[] arguments) {
    /** {@return what it failed with, or null} */
    CudaException run() {
      try {
        method.invoke(target, arguments);
        return null;
      } catch (InvocationTargetException e) {
        if (e.getCause() instanceof CudaException failure) {
          return failure;
        }
        throw new AssertionError(this + ": " + e.getCause(), e.getCause());
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

  private final Arena arena = Arena.ofAuto();

  @TempDir private Path folder;

  @Test
  void operation_failsWithTheStatusOfEachFunctionThatItCalls() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    Set<String> functions = new LinkedHashSet<>();
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (int answer : new int[] {0, 1, 2, 7, 10}) {
        for (Operation operation : operations(driver)) {
          check(library, operation, answer, functions);
        }
      }
    }
    assertThat(functions).hasSizeGreaterThan(160);
  }

  private static void check(
      StubLibrary library, Operation operation, long answer, Set<String> functions) {
    if (answer == 0 && operation.method.getName().equals("graphNodeGetParams")) {
      return; // a kernel of as many parameters as are asked for
    }
    library.reset();
    library.answer(answer, 0);
    CudaException failure = operation.run();
    if (failure != null) {
      return; // the answer makes no sense here
    }
    Set<String> called = called(library);
    if (operation.method.getName().equals("launchHostFunc")) {
      called.remove("cuStreamGetCaptureInfo"); // the launch is refused as well, and says why
    }
    for (String function : called) {
      library.reset();
      library.answer(answer, 0);
      library.makeCurrent(0xeee);
      library.setMode(1);
      library.fail(function, STATUS.code());
      CudaException thrown = operation.run();
      assertThat(thrown).as("%s where %s fails", operation, function).isNotNull();
      assertThat(thrown.status()).as("%s: %s", operation, thrown).isEqualTo(STATUS);
      assertThat(library.current()).as("%s where %s fails", operation, function).isEqualTo(0xeee);
      assertThat(library.mode()).as("%s where %s fails", operation, function).isEqualTo(1);
      functions.add(function);
    }
  }

  /** Some calls are made without a context first, for streams and events name theirs. */
  @Test
  void callThatIsRefusedForWantOfAContext_isMadeAgainWithThatOfItsDevice() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(1);
      for (Operation operation : operations(driver)) {
        if (OF_CONTEXTS.contains(operation.method.getDeclaringClass())) {
          for (CudaStatus status : REFUSALS) {
            checkContext(library, operation, status);
          }
        }
      }
    }
  }

  private static void checkContext(StubLibrary library, Operation operation, CudaStatus status) {
    library.reset();
    if (operation.run() != null) {
      return; // the answer makes no sense here
    }
    for (String function : called(library)) {
      library.reset();
      library.makeCurrent(0);
      library.fail(function, status.code());
      operation.run();
      assertThat(library.calls())
          .as("%s where %s fails", operation, function)
          .filteredOn(call -> call.startsWith(function + "@"))
          .extracting(call -> call.substring(call.lastIndexOf(' ') + 1))
          .isIn(List.of("c001"), List.of("0", "c001"));
    }
  }

  private static Set<String> called(StubLibrary library) {
    Set<String> called = new LinkedHashSet<>();
    for (String call : library.calls()) {
      called.add(call.substring(0, call.indexOf('@')));
    }
    called.removeAll(OTHERS);
    return called;
  }

  private List<Operation> operations(CudaDriver driver) throws ReflectiveOperationException {
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
        new GraphNodeParams.Copy(0xab, 0xcd, 8),
        new GraphNodeParams.Fill(0xab, 7, 4, 8),
        new GraphNodeParams.Host(() -> {}),
        new GraphNodeParams.Empty(),
        new GraphNodeParams.EventRecord(6),
        new GraphNodeParams.EventWait(6),
        new GraphNodeParams.Child(9),
        new GraphNodeParams.Allocation(1, 64, List.of(0), 0),
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
      case "int" -> 1;
      case "long" -> 8L;
      case "short" -> (short) 7;
      case "byte" -> (byte) 7;
      case "boolean" -> true;
      case "String" -> "text";
      case "int[]" -> new int[] {1};
      case "long[]" -> new long[] {8};
      case "byte[]" -> new byte[64];
      case "MemorySegment" -> arena.allocate(64);
      case "Arena" -> arena;
      case "Runnable" -> (Runnable) () -> {};
      case "List" -> List.of(new GraphEdge(8, 9));
      case "PoolProperties" -> new PoolProperties(1, 1, 1, 1, 64);
      case "AllocationProperties" -> new AllocationProperties(1, 1, 1);
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
