package io.cuvette.array;

import io.cuvette.array.internal.kernel.LoopPlan;
import java.util.Arrays;
import java.util.List;

/** What an operation is given. */
sealed interface Operand {

  /**
   * The elements of an array.
   *
   * @param name what the caller knows it by
   * @param array the array
   * @param type the type that they are computed with
   */
  record Elements(String name, BaseArray<?> array, ElementType type) implements Operand {}

  /** One value for all elements. */
  record Value(Scalar value) implements Operand {}

  static Operand of(String name, BaseArray<?> array, ElementType type) {
    return new Elements(name, array, type);
  }

  /** The layout of results: the order of the first operand that has their shape, else C. */
  static Layout orderOf(List<BaseArray<?>> arrays, long[] shape) {
    return arrays.stream()
        .map(BaseArray::layout)
        .filter(each -> Arrays.equals(each.sizes(), shape))
        .findFirst()
        .map(each -> each.like(Order.K))
        .orElseGet(() -> Layout.of(shape));
  }

  /** As an array of a loop over a shape; address of the memory, for what is moved in packs. */
  static LoopPlan.Array inLoop(ElementType type, Layout layout, long address) {
    int bytes = type.bytes();
    long[] strides = layout.strides();
    for (int axis = 0; axis < strides.length; axis++) {
      strides[axis] *= bytes;
    }
    return new LoopPlan.Array(bytes, address, layout.offset() * bytes, strides, new long[0]);
  }

  /** As an array of a loop over a shape. */
  default LoopPlan.Array inLoop(long[] shape) {
    return switch (this) {
      case Elements(_, BaseArray<?> array, ElementType type) ->
          inLoop(type, array.layout().broadcastTo(shape), array.memoryAddress());
      case Value(Scalar value) ->
          new LoopPlan.Array(
              value.type().bytes(),
              0,
              0,
              new long[shape.length],
              new long[] {value.low(), value.high()});
    };
  }
}
