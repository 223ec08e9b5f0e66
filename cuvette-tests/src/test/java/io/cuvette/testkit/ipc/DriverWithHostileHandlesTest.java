package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.DriverPoolResource;
import io.cuvette.MemoryResource;
import io.cuvette.driver.CudaDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.ipc.RawImports.Suspect;
import io.cuvette.testkit.support.PeerJvm;
import io.cuvette.testkit.support.Peers;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * What the driver itself makes of a hostile peer's handles, without the library before it: which of
 * the suspects end a process. That is no failure of the library, which must not ask these; the test
 * is skipped then, and says which they are.
 */
@ExtendWith(Peers.Extension.class)
class DriverWithHostileHandlesTest {
  private static final int SIZE = 1 << 20;
  private static final int AT_ONCE = 5;

  @CudaTest
  void suspects_areAskedInAProcessOfTheirOwn(Subject subject, Peers peers) throws Exception {
    Map<Suspect, String> ended = new TreeMap<>();
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        Buffer pooled = pool.allocate(SIZE);
        Buffer plain = MemoryResource.direct().allocate(3 * SIZE, subject.cuda().currentStream());
        ExecutorService threads = Executors.newFixedThreadPool(AT_ONCE)) {
      CudaDriver driver = subject.cuda().driver();
      String ofPooled =
          HexFormat.of().formatHex(driver.sharing().memPoolExportPointer(pooled.address()));
      String ofPlain =
          HexFormat.of().formatHex(driver.sharing().ipcGetMemHandle(0, plain.address()));
      Map<Suspect, Future<String>> asked = new TreeMap<>();
      for (Suspect suspect : suspects(subject)) {
        asked.put(
            suspect,
            threads.submit(() -> ask(peers.start(subject), pool, suspect, ofPooled, ofPlain)));
      }
      for (Map.Entry<Suspect, Future<String>> each : asked.entrySet()) {
        String outcome = outcome(each.getValue());
        if (!outcome.startsWith("survived")) {
          ended.put(each.getKey(), outcome);
        }
        if (!subject.cuda().isSimulated()) {
          System.out.println(each.getKey() + " " + outcome);
        }
      }
    }
    if (subject.cuda().isSimulated()) {
      assertThat(ended).isEmpty();
    }
    Assumptions.assumeTrue(
        ended.isEmpty(), () -> "the driver ends a process that asks it: " + ended);
  }

  /** A few on the simulator, which ends no process. */
  private static Suspect[] suspects(Subject subject) {
    return subject.cuda().isSimulated()
        ? new Suspect[] {Suspect.FREED_TWICE, Suspect.PLAIN_MEMORY_CLOSED_TWICE}
        : Suspect.values();
  }

  private static String outcome(Future<String> asked) throws InterruptedException {
    try {
      return asked.get();
    } catch (ExecutionException e) {
      return e.getCause().toString();
    }
  }

  private static String ask(
      PeerJvm jvm, DriverPoolResource pool, Suspect suspect, String pooled, String plain) {
    try {
      jvm.run(RawImports.class);
      jvm.say(suspect);
      jvm.say(pooled);
      jvm.say(plain);
      jvm.channel().send(pool.allocationHandle());
      return jvm.hear();
    } finally {
      jvm.kill(); // whatever it has left
    }
  }
}
