package io.cuvette.sim.internal.base;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.FirstFailure;

/** A call the simulated driver refuses, before its name and arguments are known. Immutable. */
public final class SimRefusal extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final CudaStatus status;
  private final String text;

  /** One failure of a device is thrown by every call from then on. */
  private final transient FirstFailure first = new FirstFailure();

  public SimRefusal(CudaStatus status, String text) {
    // No stack trace of its own: the exception made of it has one.
    super(text, null, false, false);
    this.status = status;
    this.text = text;
  }

  public static SimRefusal invalidValue(String text) {
    return new SimRefusal(CudaStatus.INVALID_VALUE, text);
  }

  public CudaStatus status() {
    return status;
  }

  public String text() {
    return text;
  }

  public CudaException in(String call) {
    String lost = first.explain(status, call);
    return new CudaException(status, call, lost.isEmpty() ? text : text + "; " + lost);
  }
}
