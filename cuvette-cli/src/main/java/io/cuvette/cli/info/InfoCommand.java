package io.cuvette.cli.info;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.Nvtx;
import io.cuvette.cli.CommonOptions;
import io.cuvette.cli.Json;
import io.cuvette.cli.Version;
import io.cuvette.cli.Wrapped;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.OptionalLibrary;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Shows the driver, the devices, the pools and the optional libraries. Not thread-safe. */
@Command(
    name = "info",
    mixinStandardHelpOptions = true,
    description = {
      "Show the driver, the devices, which pools the driver can make, with the NUMA nodes and the"
          + " types of handles they can be exported by, and which optional libraries were found."
    })
public final class InfoCommand implements Runnable {
  private final CommonOptions common;

  @Option(names = "--attributes", description = "List all attributes of each device.")
  private boolean attributes;

  /** The command with the options that all have. */
  public InfoCommand(CommonOptions common) {
    this.common = common;
  }

  @Override
  public void run() {
    try (Cuda cuda = common.open()) {
      PrintStream out = common.terminal().out();
      driver(cuda, out);
      for (CudaDevice device : cuda.devices()) {
        DeviceInfo info = DeviceInfo.of(device, attributes);
        if (common.json()) {
          out.println(info.json());
        } else {
          info.print(out);
        }
      }
      PoolInfo pools = PoolInfo.of(cuda);
      if (common.json()) {
        pools.printJson(out);
      } else {
        pools.print(out);
      }
      libraries(cuda, out);
    }
  }

  private void driver(Cuda cuda, PrintStream out) {
    String runtime =
        cuda.runtimeVersion().stream().mapToObj(InfoCommand::version).findFirst().orElse(null);
    if (common.json()) {
      out.println(
          new Json()
              .with("kind", "driver")
              .with("cuvette", Version.text())
              .with("java", Runtime.version().toString())
              .with("name", cuda.driver().name())
              .with("simulated", cuda.isSimulated())
              .with("cudaVersion", version(cuda.driverVersion()))
              .with("driverVersion", cuda.driverVersion())
              .with("runtimeVersion", runtime)
              .with("devices", cuda.deviceCount()));
      return;
    }
    String simulated = cuda.isSimulated() ? " (simulated)" : "";
    out.printf("Cuvette %s, Java %s%n", Version.text(), Runtime.version());
    out.printf(
        "Driver %s%s, CUDA %s", cuda.driver().name(), simulated, version(cuda.driverVersion()));
    out.println(runtime == null ? "" : ", CUDA runtime " + runtime);
  }

  private void libraries(Cuda cuda, PrintStream out) {
    if (!common.json()) {
      out.println();
      out.println("Optional libraries");
    }
    for (OptionalLibrary library : OptionalLibrary.ALL) {
      Optional<Path> file = library.find();
      String version = file.isPresent() ? version(cuda, library) : null;
      if (common.json()) {
        out.println(
            new Json()
                .with("kind", "library")
                .with("name", library.title())
                .with("found", file.isPresent())
                .with("path", file.map(Path::toString).orElse(null))
                .with("version", version)
                .with("install", file.isPresent() ? null : library.install()));
      } else {
        String text = file.map(Path::toString).orElse("missing; install " + library.install());
        text += version == null ? "" : ", " + version;
        text +=
            library.equals(OptionalLibrary.NVTX) && Nvtx.isListening() ? ", a tool listens" : "";
        Wrapped.print(out, "  %-10s ".formatted(library.title()), text);
      }
    }
  }

  /** What the first use of a library finds: its version, or why it cannot be used. */
  private static @Nullable String version(Cuda cuda, OptionalLibrary file) {
    if (cuda.isSimulated()) {
      return null; // it has no libraries
    }
    for (MathLibrary library : MathLibrary.values()) {
      if (library.file().equals(file)) {
        try {
          return "version " + cuda.driver().math().mathLibraryVersion(library);
        } catch (CudaException e) {
          return e.getMessage();
        }
      }
    }
    return null;
  }

  private static String version(int number) {
    return number / 1000 + "." + number % 1000 / 10;
  }
}
