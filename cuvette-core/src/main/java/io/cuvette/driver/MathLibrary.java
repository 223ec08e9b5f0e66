package io.cuvette.driver;

/** The libraries whose handles are lent. */
public enum MathLibrary {
  /** cuBLAS (cublasHandle_t). */
  CUBLAS("cuBLAS"),
  /** cuSOLVER for dense matrices (cusolverDnHandle_t). */
  CUSOLVER_DN("cuSOLVER (dense)"),
  /** cuSOLVER for sparse matrices (cusolverSpHandle_t). */
  CUSOLVER_SP("cuSOLVER (sparse)");

  private final String title;

  MathLibrary(String title) {
    this.title = title;
  }

  /** {@return what the library is called} */
  public String title() {
    return title;
  }

  /** {@return the file that it is in} */
  public OptionalLibrary file() {
    return this == CUBLAS ? OptionalLibrary.CUBLAS : OptionalLibrary.CUSOLVER;
  }

  /** {@return whether its handles use memory that the caller gives} */
  public boolean takesWorkspace() {
    return this == CUBLAS;
  }

  @Override
  public String toString() {
    return title;
  }
}
