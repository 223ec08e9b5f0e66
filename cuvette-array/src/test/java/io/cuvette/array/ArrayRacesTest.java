package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.INT32;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Each operation of an array beside the close of what it uses: it completes, or one
 * IllegalStateException says that something is closed, and nothing is left.
 */
class ArrayRacesTest {
  private static final int ROUNDS = Integer.getInteger("cuvette.races.rounds", 30);

  /** What only reads what was fixed when the array was made, or is the close itself. */
  private static final Set<String> ANSWERS =
      Set.of(
          "type",
          "layout",
          "module",
          "shape",
          "rank",
          "size",
          "byteSize",
          "isContiguous",
          "isView",
          "isReadOnly",
          "isClosed",
          "buffer",
          "address",
          "device",
          "stream",
          "segment",
          "isPinned",
          "toString",
          "equals",
          "hashCode",
          "close");

  /** An operation on an array, with another of its kind beside it. */
  private interface Operation {
    /** {@return what the operation made, to be closed} */
    AutoCloseable run(NdArray a, NdArray other, CudaStream stream) throws Exception;
  }

  private static final AutoCloseable NOTHING = () -> {};

  private static Operation of(ThrowingUse use) {
    return (a, other, stream) -> {
      use.run(a, other, stream);
      return NOTHING;
    };
  }

  private interface ThrowingUse {
    void run(NdArray a, NdArray other, CudaStream stream) throws Exception;
  }

  private static Map<String, Operation> operations() {
    Map<String, Operation> rows = new LinkedHashMap<>();
    rows.put("slice", (a, _, _) -> a.slice(Range.from(1)));
    rows.put("reshape", (a, _, _) -> a.reshape(-1));
    rows.put("reshape, copied", (a, _, _) -> a.transpose().reshape(-1));
    rows.put("transpose", (a, _, _) -> a.transpose(1, 0));
    rows.put("broadcastTo", (a, _, _) -> a.broadcastTo(2, 8, 8));
    rows.put("squeeze", (a, _, _) -> a.squeeze());
    rows.put("expand", (a, _, _) -> a.expand(1));
    rows.put("copy", (a, _, _) -> a.copy());
    rows.put("copy, turned", (a, _, _) -> a.copy(Order.F));
    rows.put("asType", (a, _, _) -> a.asType(FLOAT32));
    rows.put("copyFrom", of((a, other, _) -> a.copyFrom(other)));
    rows.put("copyFrom, turned", of((a, other, _) -> a.copyFrom(other.transpose())));
    rows.put(
        "copyFrom, stream",
        of((a, other, stream) -> {
          if (a instanceof CudaArray array) {
            array.copyFrom(other, stream);
          }
        }));
    rows.put("fill", of((a, _, _) -> a.fill(3)));
    rows.put("fill, part", of((a, _, _) -> a.slice(Range.all(), Range.all().step(3)).fill(3.0)));
    rows.put("toHost", (a, _, _) -> a.toHost());
    rows.put("toHost, queued", (a, _, stream) -> a.toHost(stream, Order.C, null, false));
    rows.put("toArray", of((a, _, _) -> a.toArray(int[][].class)));
    rows.put("map", (a, _, _) -> a.map(UnaryOperation.NEGATE));
    rows.put("combine", (a, other, _) -> a.combine(BinaryOperation.EQUAL, other));
    rows.put("add", (a, other, _) -> a.add(other));
    rows.put("subtract", (a, _, _) -> a.subtract(1));
    rows.put("multiply", (a, _, _) -> a.multiply(0.5));
    rows.put("divide", (a, other, _) -> a.divide(other));
    rows.put("clip", (a, _, _) -> a.clip(0, 1));
    rows.put("where", (a, other, _) -> chosen(a, other));
    rows.put("reduce", (a, _, _) -> a.reduce(Reduction.ARGMAX));
    rows.put("sum", (a, _, _) -> a.sum(0));
    rows.put("mean", (a, _, _) -> a.mean());
    rows.put("min", (a, _, _) -> a.min(1));
    rows.put("max", (a, _, _) -> a.max());
    rows.put("dot", ArrayRacesTest::product);
    rows.put("matmul", ArrayRacesTest::product);
    rows.put("getLong", of((a, _, _) -> onHost(a, array -> array.getLong(1, 1))));
    rows.put("getDouble", of((a, _, _) -> onHost(a, array -> array.getDouble(1, 1))));
    rows.put("getComplex", of((a, _, _) -> onHost(a, array -> array.getComplex(1, 1))));
    rows.put("setLong", of((a, _, _) -> onHost(a, array -> array.setLong(1, 1, 1))));
    rows.put("setDouble", of((a, _, _) -> onHost(a, array -> array.setDouble(1, 1, 1))));
    rows.put(
        "setComplex", of((a, _, _) -> onHost(a, array -> array.setComplex(Complex.ONE, 1, 1))));
    return rows;
  }

  private static NdArray chosen(NdArray a, NdArray other) {
    try (NdArray isLess = a.combine(BinaryOperation.LESS, other)) {
      return isLess.where(a, other);
    }
  }

  private static NdArray product(NdArray a, NdArray other, CudaStream stream) {
    try (NdArray one = a.asType(FLOAT32);
        NdArray second = other.asType(FLOAT32)) {
      return one.dot(second);
    }
  }

  private static void onHost(NdArray a, java.util.function.Consumer<HostArray> use) {
    if (a instanceof HostArray array) {
      use.accept(array);
    }
  }

  @Test
  void everyOperation_isInTheMatrix() {
    Set<String> covered =
        operations().keySet().stream()
            .map(row -> row.replaceAll(",.*", ""))
            .collect(Collectors.toSet());
    Set<String> missing = new TreeSet<>();
    for (Class<?> type : List.of(NdArray.class, CudaArray.class, HostArray.class)) {
      Arrays.stream(type.getMethods())
          .filter(method -> method.getDeclaringClass() != Object.class)
          .filter(method -> !Modifier.isStatic(method.getModifiers()))
          .map(Method::getName)
          .filter(name -> !covered.contains(name) && !ANSWERS.contains(name))
          .forEach(missing::add);
    }
    assertThat(missing).as("a row in operations(), or a name in ANSWERS").isEmpty();
  }

  @CudaTest(sanitized = false)
  void operationBesideClose_completesOrSaysWhatIsClosed(Cuda cuda) throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
      for (ArrayModule<?> module : List.of(CudaArrays.of(cuda), HostArrays.of(cuda))) {
        for (Map.Entry<String, Operation> row : operations().entrySet()) {
          for (int round = 0; round < ROUNDS; round++) {
            round(cuda, module, row.getKey(), row.getValue(), round, threads);
          }
        }
      }
    }
    cuda.device(0).synchronize();
    assertThat(cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes()).isZero();
    assertThat(cuda.defaultPinnedMemoryPool().stats().usedBytes()).isZero();
  }

  /** Closes the array, the other one, or the stream, by turns. */
  private static void round(
      Cuda cuda,
      ArrayModule<?> module,
      String name,
      Operation operation,
      int round,
      ExecutorService threads)
      throws Exception {
    CudaStream stream = cuda.device(0).createStream();
    NdArray a = module.zeros(INT32, 8, 8);
    NdArray other = module.ones(INT32, 8, 8);
    CyclicBarrier start = new CyclicBarrier(2);
    Future<?> run =
        threads.submit(() -> {
          start.await();
          spin(-round);
          try (AutoCloseable _ = operation.run(a, other, stream)) {
            return null;
          }
        });
    Future<?> close =
        threads.submit(() -> {
          start.await();
          spin(round % 15);
          (round % 3 == 0 ? other : round % 3 == 1 ? a : stream).close();
          return null;
        });
    close.get();
    try {
      run.get();
    } catch (java.util.concurrent.ExecutionException e) {
      assertThat(e.getCause())
          .as("%s of %s, round %d", name, module, round)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
    a.close();
    other.close();
    if (!stream.isClosed()) {
      stream.close();
    }
  }

  private static void spin(int steps) {
    for (int i = 0; i < 20 * steps; i++) {
      Thread.onSpinWait();
    }
  }
}
