package io.cuvette.internal.kernel;

import io.cuvette.LaunchConfig;
import io.cuvette.internal.order.OpenStream;
import org.jspecify.annotations.Nullable;

/** Arguments that are packed once and launched often. Thread-safe. */
public final class PackedArguments {
  private final OpenKernel kernel;
  private final Arguments arguments;
  private volatile @Nullable CheckedConfig checked;

  public PackedArguments(OpenKernel kernel, @Nullable Object[] values, ArgumentReader reader) {
    this.kernel = kernel;
    this.arguments = new Arguments(kernel);
    kernel.module.ending.checkOpen();
    arguments.pack(values, reader);
  }

  /** Launches; with the configuration of the launch before this needs no Java heap. */
  public void launch(OpenStream stream, LaunchConfig config) {
    CheckedConfig last = checked;
    CheckedConfig now = kernel.checked(last, arguments.deviceOf(stream), config);
    if (now != last) {
      checked = now;
    }
    arguments.launch(stream, now.shape());
  }
}
