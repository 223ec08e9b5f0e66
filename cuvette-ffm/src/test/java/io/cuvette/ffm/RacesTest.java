package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Whatever ends beside whatever uses it, the JVM lives and nothing is left: on the stand-in for the
 * driver library, and on a GPU if there is one.
 */
@Timeout(value = 600, unit = TimeUnit.SECONDS)
class RacesTest {
  private static final String ROUNDS = "20";
  private static final int JVMS = 4;

  @TempDir private static Path folder;

  private static final Map<String, Future<ForkedJvm.Result>> RUNS = new ConcurrentHashMap<>();
  private static ExecutorService starter;

  @BeforeAll
  static void start() {
    starter = Executors.newFixedThreadPool(JVMS);
  }

  @AfterAll
  static void end() {
    starter.shutdownNow();
  }

  @ParameterizedTest
  @EnumSource
  void onTheStandin(RaceProgram program) throws Exception {
    Path library = standin();
    check(program, "stand-in", List.of("-Dcuvette.libcuda=" + library));
  }

  @ParameterizedTest
  @EnumSource
  void onTheGpu(RaceProgram program) throws Exception {
    assumeTrue(new FfmDriverProvider().isAvailable(), "no GPU");
    check(program, "gpu", List.of());
  }

  private static Path standin() throws IOException, InterruptedException {
    Path library = folder.resolve("libcuda.so.1");
    return Files.exists(library) ? library : Standin.compile(folder);
  }

  /** All JVMs are started by the first test, and run while the tests wait one by one. */
  private static void check(RaceProgram program, String device, List<String> options)
      throws Exception {
    for (int i = 0; i < JVMS; i++) {
      int group = i;
      RUNS.computeIfAbsent(device + i, key -> starter.submit(() -> run(group, key, options)));
    }
    ForkedJvm.Result result = result(device + program.ordinal() % JVMS);
    assertThat(result.exitCode()).as("%s", result.output()).isZero();
    assertThat(result.output().lines()).as("%s", result.output()).contains("survived " + program);
  }

  private static ForkedJvm.Result result(String key) throws Exception {
    try {
      return RUNS.get(key).get();
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause());
    }
  }

  /** Every so many programs are one JVM's: those behind one that crashes do not survive either. */
  private static ForkedJvm.Result run(int group, String key, List<String> options)
      throws IOException, InterruptedException {
    Path errors = folder.resolve(key + ".log");
    List<String> all = new ArrayList<>(options);
    all.add("-Xmx256m");
    all.add("-XX:-CreateCoredumpOnCrash");
    all.add("-XX:ErrorFile=" + errors);
    List<String> arguments = new ArrayList<>(List.of(ROUNDS));
    for (int i = group; i < RaceProgram.values().length; i += JVMS) {
      arguments.add(RaceProgram.values()[i].name());
    }
    ForkedJvm.Result result =
        ForkedJvm.run(RaceMain.class, arguments, Map.of(), all.toArray(String[]::new));
    String crash = Files.exists(errors) ? Files.readString(errors) : "";
    return new ForkedJvm.Result(result.exitCode(), result.output() + crash);
  }
}
