package io.cuvette.array;

/** Checks where arrays are. Stateless. */
final class Places {
  private Places() {}

  /** Checks that another operand is where an array is: on its device, or on the host too. */
  static void checkSame(BaseArray<?> a, String name, BaseArray<?> other) {
    boolean isSame =
        (a instanceof CudaArray one && other instanceof CudaArray two)
            ? one.device().equals(two.device())
            : a instanceof HostArray && other instanceof HostArray;
    if (!isSame) {
      throw new IllegalArgumentException(
          "%s: %s (expected: where %s is; the array() of its module() copies it there)"
              .formatted(name, other, a));
    }
  }
}
