package io.cuvette.sim.internal.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.SimulatedPace;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What runs at the calls of a driver, and between them: nothing once it is closed. */
class SchedulerCallsTest {
  private final SimDevice device = new SimDevice(0, 1, 0, 1024);

  /** What was queued never runs, whichever call ends then. */
  @ParameterizedTest
  @EnumSource
  void schedulerThatIsClosed_runsNothingAtTheEndOfACall(SimulatedPace pace) {
    AtomicInteger ran = new AtomicInteger();
    SimScheduler paced =
        new SimScheduler(SimulatedOptions.DEFAULTS.withPace(pace), List.of(device), _ -> {});
    paced.lock.lock();
    try {
      paced.submit(SimOp.work(device.legacy(), ran::incrementAndGet, 0, 0));
      paced.close();
      for (int call = 0; call < 20; call++) {
        paced.toldBusy();
        paced.endCall();
      }
    } finally {
      paced.lock.unlock();
    }
    assertThat(ran).hasValue(0);
  }

  private static Set<Thread> unattended() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("cuvette-sim-unattended"))
        .collect(Collectors.toCollection(HashSet::new));
  }

  /** It rests a while before it would, which is when the scheduler is closed. */
  @Test
  @Timeout(60)
  void threadThatWouldRunWhatIsLeft_endsWithoutThat_onceTheSchedulerIsClosed()
      throws InterruptedException {
    boolean wasInTime = false;
    while (!wasInTime) {
      wasInTime = isClosedBeforeItRuns();
    }
  }

  private boolean isClosedBeforeItRuns() throws InterruptedException {
    AtomicInteger ran = new AtomicInteger();
    SimScheduler lazy =
        new SimScheduler(
            SimulatedOptions.DEFAULTS.withPace(SimulatedPace.LAZY), List.of(device), _ -> {});
    Set<Thread> started;
    lazy.lock.lock();
    try {
      Set<Thread> others = unattended();
      SimStream stream = new SimStream(device, 9, SimStream.NON_BLOCKING, 0);
      lazy.submit(SimOp.work(stream, ran::incrementAndGet, 0, 0));
      lazy.endCall();
      started = unattended();
      started.removeAll(others);
    } finally {
      lazy.lock.unlock();
    }
    assertThat(started).hasSize(1);
    Thread thread = started.iterator().next();
    while (thread.isAlive() && thread.getState() != Thread.State.TIMED_WAITING) {
      Thread.onSpinWait();
    }
    int before;
    lazy.lock.lock();
    try {
      before = ran.get();
      lazy.close();
    } finally {
      lazy.lock.unlock();
    }
    thread.join();
    assertThat(ran).hasValue(before);
    return before == 0;
  }

  /** As all calls of a GPU's driver: until whoever filled a shared queue has room there. */
  @Test
  @Timeout(60)
  void callThatBegins_waitsForWhoWaitsForRoom() throws InterruptedException {
    SimScheduler shared =
        new SimScheduler(SimulatedOptions.parse("pace=lazy,queues=1"), List.of(device), _ -> {});
    SimStream stream = new SimStream(new SimDevice(3, 7, 0, 2), 8, SimStream.NON_BLOCKING, 0);
    AtomicBoolean begins = new AtomicBoolean();
    AtomicInteger looks = new AtomicInteger();
    BooleanSupplier come = () -> begins.get() && looks.incrementAndGet() > 3;
    Thread filling =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              shared.lock.lock();
              try {
                shared.submit(SimOp.waitingOutside(stream, come, () -> {}, 0));
                for (int i = 0; i < 3; i++) {
                  shared.submit(SimOp.point(stream, 0));
                }
                shared.endCall();
              } finally {
                shared.lock.unlock();
              }
            });
    shared.lock.lock();
    try {
      while (stream.queue.waiting == 0) {
        shared.lock.unlock();
        Thread.sleep(1);
        shared.lock.lock();
      }
      begins.set(true);
      shared.beginCall();
      assertThat(stream.queue.waiting).isZero();
      assertThat(stream.queue.isOverfull()).isFalse();
      shared.close();
    } finally {
      shared.lock.unlock();
    }
    filling.join();
  }

  /** Of streams that are ready, any may be the next. */
  @Test
  void eachOfTheStreams_isFirstUnderSomeSeed() {
    Set<Integer> firsts = new HashSet<>();
    for (int seed = 0; seed < 60; seed++) {
      SimScheduler seeded =
          new SimScheduler(SimulatedOptions.DEFAULTS.withSeed(seed), List.of(device), _ -> {});
      List<Integer> ran = new ArrayList<>();
      seeded.lock.lock();
      try {
        for (int i = 0; i < 3; i++) {
          int number = i;
          SimStream stream = new SimStream(device, 30 + i, SimStream.NON_BLOCKING, 0);
          seeded.submit(SimOp.work(stream, () -> ran.add(number), 0, 0));
        }
        assertThat(seeded.runReady(3)).isEqualTo(3);
        seeded.close();
      } finally {
        seeded.lock.unlock();
      }
      assertThat(ran).containsExactlyInAnyOrder(0, 1, 2);
      firsts.add(ran.getFirst());
    }
    assertThat(firsts).containsExactlyInAnyOrder(0, 1, 2);
  }
}
