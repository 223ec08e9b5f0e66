package io.cuvette.driver;

/**
 * The type of the elements of matrices that are multiplied, and what is computed with: float for
 * half and bfloat16, else the type itself.
 */
public enum MatrixType {
  /** A floating-point number of 2 bytes (CUDA_R_16F). */
  HALF(2, 2, 68),
  /** The upper half of a float (CUDA_R_16BF). */
  BFLOAT16(2, 14, 68),
  /** A float (CUDA_R_32F). */
  FLOAT(4, 0, 68),
  /** A double (CUDA_R_64F). */
  DOUBLE(8, 1, 70),
  /** Two floats, the real part first (CUDA_C_32F). */
  COMPLEX_FLOAT(8, 4, 68),
  /** Two doubles, the real part first (CUDA_C_64F). */
  COMPLEX_DOUBLE(16, 5, 70);

  private final int bytes;
  private final int code;
  private final int computeCode;

  MatrixType(int bytes, int code, int computeCode) {
    this.bytes = bytes;
    this.code = code;
    this.computeCode = computeCode;
  }

  /** {@return the size of an element in bytes} */
  public int bytes() {
    return bytes;
  }

  /** {@return what addresses of matrices are multiples of, in bytes} */
  public int alignment() {
    return isComplex() ? bytes / 2 : bytes;
  }

  /** {@return the number that cuBLAS has for it (cudaDataType)} */
  public int code() {
    return code;
  }

  /** {@return the number that cuBLAS has for how it is computed (cublasComputeType_t)} */
  public int computeCode() {
    return computeCode;
  }

  /** {@return whether an element has a real and an imaginary part} */
  public boolean isComplex() {
    return this == COMPLEX_FLOAT || this == COMPLEX_DOUBLE;
  }
}
