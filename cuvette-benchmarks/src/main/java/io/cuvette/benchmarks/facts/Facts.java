package io.cuvette.benchmarks.facts;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.driver.CudaException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.util.List;

/**
 * Cuvette's part of the comparison of behaviour: the same operations as the programs of cuda.core
 * and CuPy, one JSON object for each fact on standard output. Runs on the device that {@code
 * -Dcuvette.device} or {@code CUVETTE_DEVICE} names. Stateless.
 */
public final class Facts {
  private Facts() {}

  /**
   * Runs one section of facts.
   *
   * @param arguments the section's name; {@code importer SOCKET} for the second process of {@code
   *     ipc}
   * @return false if there is no device, which is said in one line
   */
  public static boolean run(List<String> arguments) {
    return run(arguments, new FileOutputStream(FileDescriptor.out));
  }

  static boolean run(List<String> arguments, OutputStream out) {
    String section = arguments.isEmpty() ? "" : arguments.getFirst();
    Recorder recorder = new Recorder("cuvette", out);
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS)) {
      if (section.equals("importer")) {
        new ImporterFacts(cuda, recorder).run(arguments.get(1));
        return true;
      }
      String device = cuda.isSimulated() ? "the simulated device" : cuda.device(0).name();
      recorder.about("JDK " + Runtime.version() + ", " + device + ", CUDA " + cuda.driverVersion());
      run(section, new Ways(cuda), recorder);
      return true;
    } catch (CudaException e) {
      recorder.missing(String.valueOf(e.getMessage()));
      return false;
    }
  }

  private static void run(String section, Ways ways, Recorder recorder) {
    switch (section) {
      case "resources" -> new ResourceFacts(ways, recorder).members();
      case "birth" -> new ResourceFacts(ways, recorder).birth();
      case "sequence" -> new SequenceFacts(ways, recorder).run();
      case "buffers" -> new BufferFacts(ways, recorder).run();
      case "errors" -> new ErrorFacts(ways, recorder).run();
      case "descriptors" -> new DescriptorFacts(ways, recorder).run();
      case "register" -> new DescriptorFacts(ways, recorder).register();
      case "closed-device" -> new ClosedFacts(ways, recorder).run(Ways.Kind.DEVICE);
      case "closed-pinned" -> new ClosedFacts(ways, recorder).run(Ways.Kind.PINNED);
      case "closed-managed" -> new ClosedFacts(ways, recorder).run(Ways.Kind.MANAGED);
      case "peers" -> new PeerFacts(ways, recorder).run();
      case "preferred" -> new PreferredFacts(ways, recorder).run();
      case "managed" -> new AdviceFacts(ways, recorder).run();
      case "ipc" -> new ExporterFacts(ways, recorder).run();
      case "async-choices" -> new AsyncFacts(ways.cuda(), recorder).choices();
      case "async-limits" -> new AsyncLimitFacts(ways.cuda(), recorder).run();
      case "async-errors" -> new AsyncFacts(ways.cuda(), recorder).errors();
      case "async-sides" -> new AsyncFacts(ways.cuda(), recorder).sides();
      default -> throw new IllegalArgumentException("facts: no section " + section);
    }
  }
}
