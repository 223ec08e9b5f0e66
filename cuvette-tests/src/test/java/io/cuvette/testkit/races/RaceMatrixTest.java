package io.cuvette.testkit.races;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.testkit.support.PeerCommand;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Every public operation beside everything that can end what it uses: it completes, or one
 * IllegalStateException says that something is closed, and nothing is left.
 */
@Timeout(value = 30, unit = TimeUnit.MINUTES)
class RaceMatrixTest {
  /** Some 10,000 in all; what is rare takes a thousand a cell. */
  private static final int ROUNDS = Integer.getInteger("cuvette.races.rounds", 5);

  /** Who asks for rounds gets them; else a cell whose rounds take long has fewer there. */
  private static final int SECONDS_ON_A_GPU =
      Integer.getInteger(
          "cuvette.races.seconds",
          System.getProperties().containsKey("cuvette.races.rounds") ? 0 : 90);

  @Test
  void onTheSimulator() throws Exception {
    assumeTrue(!System.getProperty("cuvette.device", "sim").equals("gpu"), "GPU alone");
    run("sim:devices=2", Integer.getInteger("cuvette.races.seconds", 0));
  }

  /** No chance in it: what one side does inside the other's calls, before each of them. */
  @Test
  void stoppedBeforeEachCall() throws Exception {
    assumeTrue(!System.getProperty("cuvette.device", "sim").equals("gpu"), "simulator alone");
    Matrix matrix = Matrix.of("sim:devices=2");
    matrix.step();
    assertThat(matrix.failed()).as(() -> text(matrix.failed())).isEmpty();
  }

  @Test
  void onTheGpu() throws Exception {
    boolean found =
        ServiceLoader.load(CudaDriverProvider.class).stream()
            .map(ServiceLoader.Provider::get)
            .anyMatch(provider -> provider.name().equals("gpu") && provider.isAvailable());
    assumeTrue(found, "no GPU");
    run("gpu", SECONDS_ON_A_GPU);
  }

  private static void run(String device, int seconds) throws Exception {
    List<String> command = PeerCommand.of(RaceMatrixMain.class);
    // compiled from the first call on: the collector takes what lies in other frames as used
    command.add(1, "-Xcomp");
    command.addAll(List.of(device, Integer.toString(ROUNDS), Integer.toString(seconds)));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes());
    print(output);
    assertThat(process.waitFor()).as(output).isZero();
  }

  @Test
  void everyPublicMethod_isInTheMatrix() throws Exception {
    Set<String> covered =
        Operations.all().stream().map(Operation::method).collect(Collectors.toSet());
    Set<String> missing = new TreeSet<>(PublicApi.names());
    missing.removeIf(name -> covered.contains(name) || Operations.isNone(name));
    assertThat(missing)
        .as("a row in one of the *Operations, or a line in Operations.ANSWERS")
        .isEmpty();
  }

  /** The rows are those of methods that exist. */
  @Test
  void everyRow_isAPublicMethod() throws Exception {
    Set<String> rows =
        Operations.all().stream()
            .map(Operation::method)
            .collect(Collectors.toCollection(TreeSet::new));
    rows.removeAll(PublicApi.names());
    assertThat(rows).isEmpty();
  }

  /** The checked-in table shows the matrix as it is, but for the numbers. */
  @Test
  void document_hasTheRowsOfTheMatrix() throws Exception {
    Path document = Path.of(System.getProperty("cuvette.root", ""), "docs/races.md");
    assumeTrue(Files.exists(document), "not in the repository");
    assumeTrue(!System.getProperties().containsKey("cuvette.races"), "a part of the matrix");
    List<String> lines = Files.readAllLines(document);
    Set<String> operations =
        Operations.all().stream().map(Operation::toString).collect(Collectors.toSet());
    Stream<String> ofSimulator =
        lines.stream()
            .dropWhile(line -> !line.startsWith("## Simulated device"))
            .skip(1)
            .takeWhile(line -> !line.startsWith("## "));
    assertThat(rows(ofSimulator)).isEqualTo(operations);
    assertThat(operations).as("rows of GPUs").containsAll(rows(lines.stream()));
  }

  private static Set<String> rows(Stream<String> lines) {
    return lines
        .filter(line -> line.startsWith("| `"))
        .map(line -> line.split("`")[1])
        .collect(Collectors.toSet());
  }

  private static void print(String table) {
    if (Boolean.getBoolean("cuvette.races.print")) {
      System.out.print(table);
    }
  }

  private static String text(List<Cell> failed) {
    StringWriter text = new StringWriter();
    PrintWriter out = new PrintWriter(text);
    for (Cell cell : failed) {
      out.println(cell);
      cell.outcomes.failures().forEach(failure -> failure.printStackTrace(out));
    }
    return text.toString();
  }
}
