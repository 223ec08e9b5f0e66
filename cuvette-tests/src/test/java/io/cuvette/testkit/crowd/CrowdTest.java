package io.cuvette.testkit.crowd;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.instrument.Faults;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Random programs of several threads, whose objects live short. {@code -Dcuvette.seeds=1000} runs
 * as many of each kind, and {@code cuvette.crowd.steps} is how many steps a thread does.
 */
class CrowdTest {
  private static final int FAULTS = 5;
  private static final int FIRST_CALL = 200;
  private static final int LAST_CALL = 3000;

  private static List<CrowdStep> steps(List<List<CrowdStep>> kinds) {
    List<CrowdStep> all = new ArrayList<>();
    kinds.forEach(all::addAll);
    return all;
  }

  private static List<CrowdStep> ordered() {
    return steps(List.of(KeptSteps.all(), KeptSteps.all(), HandleSteps.calm()));
  }

  private static List<CrowdStep> wild() {
    return steps(
        List.of(
            KeptSteps.all(),
            SharedSteps.all(),
            HandleSteps.calm(),
            HandleSteps.wild(),
            ExchangeSteps.all(),
            GraphSteps.all()));
  }

  @CudaTest(seeds = 2, simulatedOnly = true)
  void threadsThatKeepOrder_findTheirBytes_andLeaveNothing(Subject subject) throws Exception {
    run(subject, ordered(), Refusals.SHORTAGE);
  }

  @CudaTest(seeds = 3, simulatedOnly = true, sanitized = false)
  void threadsWithoutOrder_areRefused_butLoseAndLeaveNothing(Subject subject) throws Exception {
    run(subject, wild(), Refusals.OF_OTHERS);
  }

  @CudaTest(seeds = 2, simulatedOnly = true, sanitized = false, tidy = false)
  void cudaThatClosesBelowThreads_refusesThem_andLeavesNothing(Subject subject) throws Exception {
    Cuda cuda = subject.cuda();
    Crowd crowd = new Crowd(cuda, subject.seed(), wild(), Refusals.OF_OTHERS);
    crowd.start();
    cuda.close();
    crowd.join();
    assertThat(subject.simulator().report().isEmpty())
        .as("left: %s", subject.simulator(cuda).report())
        .isTrue();
  }

  @CudaTest(seeds = 2, simulatedOnly = true, sanitized = false, tidy = false)
  void callsThatFail_areHeardOf_andLeaveNothing(Subject subject) throws Exception {
    List<Faults> faults = new ArrayList<>();
    SplittableRandom random = subject.random();
    Cuda cuda =
        subject.open(options ->
            options.withDecorator(driver -> {
              for (int i = 0; i < FAULTS; i++) {
                Faults fault = Faults.at(driver, random.nextLong(FIRST_CALL, LAST_CALL));
                faults.add(fault);
                driver = fault.driver();
              }
              return driver;
            }));
    Crowd crowd = new Crowd(cuda, subject.seed(), wild(), Refusals.INJECTED);
    crowd.start();
    crowd.join();
    assertThat(faults).anyMatch(Faults::fired);
    closeWithout(faults, cuda);
    faults.forEach(Faults::freeRefused);
    assertThat(subject.simulator(cuda).report().isEmpty())
        .as("left: %s", subject.simulator(cuda).report())
        .isTrue();
  }

  private static void closeWithout(List<Faults> faults, Cuda cuda) {
    Runnable close = cuda::close;
    for (Faults fault : faults) {
      Runnable inner = close;
      close = () -> fault.withoutFaults(inner);
    }
    close.run();
  }

  private static void run(Subject subject, List<CrowdStep> steps, Refusals refusals)
      throws Exception {
    Crowd crowd = new Crowd(subject.cuda(), subject.seed(), steps, refusals);
    crowd.start();
    crowd.join();
    crowd.end();
  }
}
