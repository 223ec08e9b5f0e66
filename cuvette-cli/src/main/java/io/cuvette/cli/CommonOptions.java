package io.cuvette.cli;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The options that every command has, and the devices they name. Not thread-safe. */
public final class CommonOptions {
  private final Terminal terminal;

  private @Nullable CommandLine command;

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description = {
        "gpu, sim, or sim:devices=2,memory=80GiB,seed=7. Without it -Dcuvette.device, then"
            + " CUVETTE_DEVICE, then the GPU if there is one, else a simulated device."
      })
  private @Nullable String device;

  @Option(names = "--json", description = "One JSON object a line on standard output.")
  private boolean json;

  @Option(names = "--verbose", description = "Show where an error came from.")
  @SuppressWarnings("unused") // looked for before the options are read
  private boolean verbose;

  private boolean announced;

  CommonOptions(Terminal terminal) {
    this.terminal = terminal;
  }

  @Option(
      names = "-D",
      paramLabel = "NAME=VALUE",
      mapFallbackValue = "",
      description = "Set a system property, such as cuvette.device or cuvette.seed.")
  @SuppressWarnings("UnusedMethod") // called by picocli
  private void properties(Map<String, String> properties) {
    properties.forEach(System::setProperty);
  }

  /** Names the command that has these options. */
  void belongTo(CommandLine of) {
    command = of;
    of.addMixin("common", this);
  }

  /** Where the command writes. */
  public Terminal terminal() {
    return terminal;
  }

  /** Whether results are JSON. */
  public boolean json() {
    return json;
  }

  /**
   * The specification of the devices: given, set for the process, or else the GPU if there is one
   * and the simulated device, with a banner, if not.
   */
  public String device() {
    String chosen = device != null ? device : configured();
    if (chosen != null) {
      return chosen;
    }
    if (Cuda.isAvailable()) {
      return "gpu";
    }
    if (!announced) {
      announced = true;
      terminal.err().println("cuvette: no GPU here, running on a simulated device (--device sim)");
    }
    return "sim";
  }

  private static @Nullable String configured() {
    String property = System.getProperty("cuvette.device");
    String variable = System.getenv("CUVETTE_DEVICE");
    return property != null ? property : variable == null || variable.isBlank() ? null : variable;
  }

  /** Opens the devices. */
  public Cuda open() {
    return open(device(), UnaryOperator.identity());
  }

  /** Opens devices with other options. */
  public Cuda open(String specification, UnaryOperator<CudaOptions> change) {
    CudaOptions options = change.apply(CudaOptions.DEFAULTS.withDevice(specification));
    try {
      return Cuda.open(options);
    } catch (IllegalArgumentException e) {
      throw usage(String.valueOf(e.getMessage()), e);
    }
  }

  /** What is wrong with how the command was called. */
  public ParameterException usage(String message, @Nullable Throwable cause) {
    return new ParameterException(Objects.requireNonNull(command, "command"), message, cause);
  }
}
