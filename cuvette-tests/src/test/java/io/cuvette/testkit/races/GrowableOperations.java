package io.cuvette.testkit.races;

import io.cuvette.GrowableBuffer;
import io.cuvette.GrowableOptions;
import java.util.List;
import java.util.function.Consumer;

/** Operations of {@code GrowableBuffer}. Stateless. */
final class GrowableOperations {
  private static final long MOST = 1L << 26;
  private static final long SIZE = 3L << 20;

  private GrowableOperations() {}

  static List<Operation> all() {
    return List.of(
        of("grow(long)", buffer -> buffer.grow(4 * SIZE)),
        of("shrink(long)", buffer -> buffer.shrink(1)),
        Operation.of(
            "CudaDevice.growable(long)", stage -> () -> stage.device.growable(MOST).close()),
        Operation.of(
            "CudaDevice.growable(GrowableOptions)",
            stage -> () -> stage.device.growable(GrowableOptions.ofMaxBytes(MOST)).close()));
  }

  private static Operation of(String method, Consumer<GrowableBuffer> body) {
    return Operation.of(
        "GrowableBuffer." + method,
        stage -> {
          GrowableBuffer buffer = stage.ended(Closer.BUFFER, stage.device.growable(MOST));
          buffer.grow(SIZE);
          return () -> body.accept(buffer);
        });
  }
}
