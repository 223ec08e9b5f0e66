package io.cuvette.testkit;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;

/** Expects a driver to refuse a call. Stateless. */
final class Refused {
  private Refused() {}

  /** With one status, and a message that names it. */
  static void with(CudaStatus status, Runnable call) {
    CudaException refusal = withAny(call);
    if (refusal.status() != status || !refusal.toString().contains(status.cudaName())) {
      throw new AssertionError("refused with " + refusal + " (expected: " + status + ")", refusal);
    }
  }

  /** With whatever status. */
  static CudaException withAny(Runnable call) {
    try {
      call.run();
    } catch (CudaException e) {
      return e;
    }
    throw new AssertionError("the call worked (expected: a CudaException)");
  }
}
