package io.cuvette.testkit.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaException;
import io.cuvette.instrument.NvtxMemoryDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.PeerCommand;
import io.cuvette.testkit.support.TestKernels;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.io.TempDir;

/**
 * What Compute Sanitizer reports of a kernel that uses memory of a pool, and of the examples of
 * graphs, each in a program of its own. Needs a GPU and the tool: on the path, in /usr/local/cuda,
 * or named by -Dcuvette.compute-sanitizer.
 */
class ComputeSanitizerTest {
  private static final String PROPERTY = "cuvette.compute-sanitizer";
  private static final long PATIENCE_SECONDS = 240;
  private static final int ERRORS_FOUND = 86;
  private static final int COUNT = 64;

  @TempDir private Path folder;

  /** What the process runs: a kernel writes to a block of a pool. */
  static final class Program {
    private Program() {}

    public static void main(String[] arguments) {
      boolean shown = arguments[0].equals("shown");
      boolean closed = arguments[1].equals("closed");
      CudaOptions options = CudaOptions.DEFAULTS;
      try (Cuda cuda = Cuda.open(shown ? options.withDecorator(NvtxMemoryDriver::over) : options);
          CudaModule module = TestKernels.launches(cuda);
          CudaStream stream = cuda.currentDevice().createStream()) {
        Buffer buffer = cuda.allocate((long) COUNT * Float.BYTES, stream);
        long address = buffer.address();
        buffer.fill((byte) 0, stream);
        stream.synchronize();
        if (closed) {
          buffer.close();
        }
        stream.launch(
            module.kernel("scale"), LaunchConfig.forElements(COUNT, COUNT), address, 2f, COUNT);
        stream.synchronize();
        buffer.close();
        System.out.println("driver " + cuda.driver().name());
      } catch (CudaException e) {
        System.out.println(e); // the tool has ended the work with an error
      }
    }
  }

  private static Path tool() {
    List<Path> places = new ArrayList<>();
    String named = System.getProperty(PROPERTY);
    if (named != null) {
      places.add(Path.of(named));
    }
    Stream.of(System.getenv().getOrDefault("PATH", "").split(":"))
        .map(each -> Path.of(each, "compute-sanitizer"))
        .forEach(places::add);
    places.add(Path.of("/usr/local/cuda/bin/compute-sanitizer"));
    Path found = places.stream().filter(Files::isExecutable).findFirst().orElse(null);
    assumeTrue(found != null, "no compute-sanitizer");
    return found;
  }

  /** Runs the program below the tool, which exits with {@value #ERRORS_FOUND} if it has errors. */
  private String run(Cuda cuda, int expected, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    assumeFalse(cuda.isSimulated(), "Compute Sanitizer watches GPUs");
    List<String> command =
        new ArrayList<>(
            List.of(
                tool().toString(),
                "--tool",
                "memcheck",
                "--report-api-errors", // a question past the last parameter of a kernel is one
                "no",
                "--error-exitcode",
                Integer.toString(ERRORS_FOUND)));
    command.addAll(PeerCommand.of(main));
    command.addAll(List.of(arguments));
    Path output = folder.resolve("output");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      boolean ended = process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS);
      String printed = Files.readString(output, StandardCharsets.UTF_8);
      assertThat(ended).as("ended; printed: %s", printed).isTrue();
      assertThat(process.exitValue()).as("printed: %s", printed).isEqualTo(expected);
      return printed;
    } finally {
      process.destroyForcibly();
    }
  }

  @CudaTest
  void useAfterFreeInsideAPool_isReported_whereBlocksAreShown(Cuda cuda) throws Exception {
    assertThat(run(cuda, ERRORS_FOUND, Program.class, "shown", "closed"))
        .contains("Invalid __global__", "scale");
  }

  @CudaTest
  void useOfAnOpenBuffer_isNoError_whereBlocksAreShown(Cuda cuda) throws Exception {
    assertThat(run(cuda, 0, Program.class, "shown", "open")).contains("driver nvtx(");
  }

  @CudaTest
  void useAfterFreeInsideAPool_isNotSeen_whereBlocksAreHidden(Cuda cuda) throws Exception {
    assertThat(run(cuda, 0, Program.class, "hidden", "closed"))
        .doesNotContain("Invalid __global__");
  }

  /** Leaves and overruns no memory, whatever graphs own of it. */
  @CudaTest
  void examplesOfGraphs_haveNoErrors(Cuda cuda) throws Exception {
    for (String example : List.of("graph", "graph-memory")) {
      assertThat(run(cuda, 0, commandLine(), "example", example, "--device", "gpu"))
          .as(example)
          .contains("ERROR SUMMARY: 0 errors");
    }
  }

  /** The command line is on the class path where all modules are tested together. */
  private static Class<?> commandLine() {
    try {
      return Class.forName("io.cuvette.cli.Main");
    } catch (ClassNotFoundException e) {
      return Assumptions.abort(
          "no command line on the class path (expected: run test, of the GPU bundle)");
    }
  }
}
