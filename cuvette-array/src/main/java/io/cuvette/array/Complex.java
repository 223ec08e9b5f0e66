package io.cuvette.array;

/**
 * A complex number: an element of {@link ElementType#COMPLEX64} and {@link ElementType#COMPLEX128}.
 * A value.
 *
 * @param real the real part, any double
 * @param imaginary the imaginary part, any double
 */
public record Complex(double real, double imaginary) {
  /** 0. */
  public static final Complex ZERO = new Complex(0, 0);

  /** 1. */
  public static final Complex ONE = new Complex(1, 0);

  @Override
  public String toString() {
    return real + (Math.copySign(1, imaginary) < 0 ? "-" : "+") + Math.abs(imaginary) + "i";
  }
}
