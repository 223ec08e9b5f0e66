package io.cuvette.testkit.async;

import io.cuvette.AsyncPoolChoice;
import io.cuvette.Cuda;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Choices of pools for machines of one device and of several. Stateless. */
final class Choices {
  private Choices() {}

  /** A choice for device 0; the others take their default pools. */
  static List<AsyncPoolChoice> first(Cuda cuda, AsyncPoolChoice choice) {
    List<AsyncPoolChoice> all =
        new ArrayList<>(Collections.nCopies(cuda.deviceCount(), AsyncPoolChoice.ofDefault()));
    all.set(0, choice);
    return all;
  }
}
