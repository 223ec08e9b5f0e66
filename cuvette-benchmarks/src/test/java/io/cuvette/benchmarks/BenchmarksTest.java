package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collection;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** Each benchmark runs for a moment on the simulated device; what it measures is not looked at. */
@ExtendWith(OnSimulatedDevice.class)
class BenchmarksTest {
  @Test
  void everyBenchmark_runsOnTheSimulatedDevice() throws RunnerException {
    Collection<RunResult> results = new Runner(aMoment().build()).run();

    List<String> names =
        results.stream().map(result -> result.getParams().getBenchmark()).distinct().toList();
    assertThat(names)
        .map(name -> name.replaceFirst(".*\\.(\\w+)\\.\\w+$", "$1"))
        .contains(
            "PoolBenchmark",
            "PoolEngineBenchmark",
            "ThreadsBenchmark",
            "RemoteFreeBenchmark",
            "LaunchBenchmark",
            "GraphBenchmark",
            "RandomAllocationsBenchmark",
            "DriverCallBenchmark");
    assertThat(names).anyMatch(name -> name.endsWith("ownStream16"));
  }

  private static OptionsBuilder aMoment() {
    OptionsBuilder options = new OptionsBuilder();
    options
        .include("io\\.cuvette\\.benchmarks\\.")
        .param("count", "1000")
        .param("maxMiB", "1", "4096")
        .forks(0)
        .warmupIterations(0)
        .measurementIterations(1)
        .measurementTime(TimeValue.milliseconds(5))
        .verbosity(VerboseMode.SILENT)
        .shouldFailOnError(true);
    return options;
  }
}
