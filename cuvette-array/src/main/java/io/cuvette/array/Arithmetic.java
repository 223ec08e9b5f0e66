package io.cuvette.array;

import io.cuvette.array.internal.kernel.KernelNames;
import io.cuvette.array.internal.twin.ElementTwin;
import io.cuvette.array.internal.twin.Twins;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Computes element by element. Stateless. */
final class Arithmetic {
  private Arithmetic() {}

  static <A extends NdArray> A map(
      BaseArray<A> a, UnaryOperation operation, @Nullable NdArray out) {
    ElementType type = operation.computedType(a.type());
    return run(
        a,
        new Step(KernelNames.of(operation, type), Twins.of(operation, type)),
        out,
        List.of(Operand.of("this", a, type)));
  }

  static <A extends NdArray> A combine(
      BaseArray<A> a, BinaryOperation operation, NdArray other, @Nullable NdArray out) {
    ElementType type = operation.computedType(a.type(), other.type());
    return run(
        a,
        step(operation, type),
        out,
        List.of(Operand.of("this", a, type), Operand.of("other", (BaseArray<?>) other, type)));
  }

  static <A extends NdArray> A combine(BaseArray<A> a, BinaryOperation operation, Scalar other) {
    return run(
        a,
        step(operation, other.type()),
        null,
        List.of(Operand.of("this", a, other.type()), new Operand.Value(other)));
  }

  private static Step step(BinaryOperation operation, ElementType type) {
    return new Step(KernelNames.of(operation, type), Twins.of(operation, type));
  }

  static <A extends NdArray> A where(BaseArray<A> condition, NdArray one, NdArray other) {
    if (condition.type() != ElementType.BOOLEAN) {
      throw new IllegalArgumentException(
          "this: %s (expected: elements of BOOLEAN)".formatted(condition));
    }
    ElementType type = one.type().commonWith(other.type());
    return run(
        condition,
        new Step(KernelNames.where(type), Twins.where(type)),
        null,
        List.of(
            Operand.of("this", condition, ElementType.BOOLEAN),
            Operand.of("whenTrue", (BaseArray<?>) one, type),
            Operand.of("whenFalse", (BaseArray<?>) other, type)));
  }

  static <A extends NdArray> A clip(BaseArray<A> a, double low, double high) {
    ElementType type = a.type();
    if (type.isComplex()) {
      throw new IllegalArgumentException("clip: %s (expected: no complex type)".formatted(type));
    }
    return run(
        a,
        new Step(KernelNames.clip(type), Twins.clip(type)),
        null,
        List.of(
            Operand.of("this", a, type),
            new Operand.Value(Scalar.of(type, low)),
            new Operand.Value(Scalar.of(type, high))));
  }

  /** A kernel and its twin. */
  record Step(KernelNames.Place kernel, ElementTwin twin) {}

  /** Runs a step on operands where an array is, once all is checked. */
  private static <A extends NdArray> A run(
      BaseArray<A> a, Step step, @Nullable NdArray out, List<Operand> operands) {
    List<BaseArray<?>> arrays = new ArrayList<>();
    for (Operand each : operands) {
      if (each instanceof Operand.Elements elements) {
        elements.array().checkOpen();
        Places.checkSame(a, elements.name(), elements.array());
        arrays.add(elements.array());
      }
    }
    long[] shape =
        Layout.broadcastShape(
            arrays.stream().map(each -> each.layout().sizes()).toArray(long[][]::new));
    ElementType type = step.twin.result();
    BaseArray<A> target = Outs.check(a, out, type, shape, arrays, true);
    return Outs.fill(
        a,
        target,
        () -> a.module().allocate(type, Operand.orderOf(arrays, shape)),
        made -> run(made, step, operands));
  }

  /** Converts what is of another type, and runs; the results are not one of what is converted. */
  private static void run(BaseArray<?> target, Step step, List<Operand> operands) {
    if (target.layout().size() == 0) {
      return;
    }
    List<NdArray> converted = new ArrayList<>();
    try {
      List<Operand> ready = new ArrayList<>();
      for (Operand each : operands) {
        if (each instanceof Operand.Elements(String name, BaseArray<?> array, ElementType type)
            && array.type() != type) {
          NdArray copy = array.asType(type);
          converted.add(copy);
          ready.add(Operand.of(name, (BaseArray<?>) copy, type));
        } else {
          ready.add(each);
        }
      }
      switch (target) {
        case CudaArray device -> Launches.elements(device, step, ready);
        case HostArray host -> HostLoops.elements(host, step.twin, ready);
      }
    } finally {
      converted.forEach(NdArray::close);
    }
  }
}
