package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.testkit.support.PeerCommand;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** System.exit while threads work ends the process, whether a hook closes the Cuda or not. */
class ExitTest {
  private static final long PATIENCE_SECONDS = 120;

  @ParameterizedTest
  @ValueSource(strings = {"bare", "hook"})
  void exit_ends_whileThreadsQueueForEver(String how, @TempDir Path folder) throws Exception {
    List<String> command = new ArrayList<>(PeerCommand.of(Program.class));
    command.add(how);
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
      assertThat(process.exitValue()).as("printed: %s", printed).isEqualTo(7);
    } finally {
      process.destroyForcibly();
    }
  }

  /** What the process runs. */
  static final class Program {
    private Program() {}

    public static void main(String[] arguments) throws InterruptedException {
      Cuda cuda = Cuda.open(CudaOptions.simulated());
      if (arguments[0].equals("hook")) {
        Runtime.getRuntime().addShutdownHook(new Thread(cuda::close));
      }
      Load load = Load.on(cuda);
      while (load.rounds() == 0) {
        cuda.device(0).synchronize();
      }
      System.exit(7);
    }
  }
}
