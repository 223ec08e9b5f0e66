package io.cuvette.cli;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.driver.CudaException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The options that every command has, and the devices they name. Not thread-safe. */
public final class CommonOptions {
  /** The properties that the library and this program read. */
  static final List<String> PROPERTIES =
      List.of(
          "cuvette.cache",
          "cuvette.debug",
          "cuvette.device",
          "cuvette.leaks",
          "cuvette.libcuda",
          "cuvette.nvjitlink",
          "cuvette.nvrtc",
          "cuvette.nvtx",
          "cuvette.pool.validate",
          "cuvette.seed",
          "cuvette.sim.dir");

  private final Terminal terminal;
  private final UnaryOperator<@Nullable String> variables;

  private @Nullable CommandLine command;

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description = {
        "gpu, gpu:1 (with device 1 as the current one), sim, or"
            + " sim:devices=2,memory=80GiB,seed=7. Without it -Dcuvette.device, then"
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
    this(terminal, System::getenv);
  }

  CommonOptions(Terminal terminal, UnaryOperator<@Nullable String> variables) {
    this.terminal = terminal;
    this.variables = variables;
  }

  @Option(
      names = "-D",
      paramLabel = "NAME=VALUE",
      mapFallbackValue = "",
      description = "Set a system property, such as cuvette.device or cuvette.seed.")
  @SuppressWarnings("UnusedMethod") // called by picocli
  private void properties(Map<String, String> properties) {
    for (String name : properties.keySet()) {
      if (name.startsWith("cuvette.") && !PROPERTIES.contains(name)) {
        String known = String.join(", ", PROPERTIES);
        throw usage("-D: unknown property '%s' (expected: %s)".formatted(name, known), null);
      }
    }
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
    return chosen().specification;
  }

  /**
   * The devices, and the origin of that setting.
   *
   * @param origin the setting of the process that says it, or nothing; starts an error message
   */
  private record Chosen(String specification, String origin) {}

  private Chosen chosen() {
    String property = System.getProperty("cuvette.device");
    String variable = variables.apply("CUVETTE_DEVICE");
    if (device != null) {
      return new Chosen(device, "");
    }
    if (property != null) {
      return new Chosen(property, "-Dcuvette.device: ");
    }
    if (variable != null && !variable.isBlank()) {
      return new Chosen(variable, "CUVETTE_DEVICE: ");
    }
    // A driver that was named is to be used, or to be reported as unusable.
    if (Cuda.isAvailable() || System.getProperty("cuvette.libcuda") != null) {
      return new Chosen("gpu", "");
    }
    if (!announced) {
      announced = true;
      terminal.err().println("cuvette: no GPU here, running on a simulated device (--device sim)");
    }
    return new Chosen("sim", "");
  }

  /** Opens the devices. */
  public Cuda open() {
    return open(device(), UnaryOperator.identity());
  }

  /** Opens devices with other options. */
  public Cuda open(String specification, UnaryOperator<CudaOptions> change) {
    try {
      return Cuda.open(change.apply(CudaOptions.DEFAULTS.withDevice(specification)));
    } catch (IllegalArgumentException e) {
      throw usage(named(e), e);
    } catch (CudaException e) {
      if (specification.strip().startsWith("sim")) {
        throw e;
      }
      throw new CommandFailure(named(e) + "; for this command: --device sim", e);
    }
  }

  /** The message with the setting that was wrong, unless it names one itself. */
  private String named(RuntimeException e) {
    String message = String.valueOf(e.getMessage());
    boolean names = message.matches("(CUVETTE_|CUPY_|-D).*");
    return names ? message : chosen().origin + message;
  }

  /** What is wrong with how the command was called. */
  public ParameterException usage(String message, @Nullable Throwable cause) {
    return new ParameterException(Objects.requireNonNull(command, "command"), message, cause);
  }
}
