package io.cuvette.examples;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Each example releases what it acquired before its Cuda is closed: objects, memory, handles, the
 * accounts of the pools, threads and descriptors.
 */
@Isolated
class ExamplesTidyTest {
  @CudaTest(devices = 2, simulatedOnly = true)
  void examples_leaveNothingBehind(Subject subject) throws Exception {
    List<Example> examples = new ArrayList<>(ExamplesUnderFaultsTest.EXAMPLES);
    examples.add(Example.find("dlpack").orElseThrow());
    for (Example example : examples) {
      Cuda cuda = subject.open(options -> options);
      example.program().run(cuda, ExamplesUnderFaultsTest.SILENT);
    }
  }
}
