package io.cuvette;

import io.cuvette.internal.order.OpenStream;

/**
 * A stream as executable graphs are launched in: a {@link CudaStream}. Apart from that class, so
 * that graphs do not depend on all that streams do. Thread-safe.
 */
public abstract class LaunchStream {
  final OpenStream core;

  LaunchStream(OpenStream core) {
    this.core = core;
  }
}
