package io.cuvette.testkit.seeds;

import io.cuvette.testkit.seeds.ThreadsOps.Op;
import io.cuvette.testkit.seeds.ThreadsStep.Kind;
import io.cuvette.testkit.seeds.ThreadsStep.Lane;
import java.util.ArrayList;
import java.util.List;

/**
 * Work that the host holds up until it knows of other work that it is done. Nobody else uses the
 * stream, and its thread goes on when the stream does: nothing that another thread waits for
 * meanwhile can be behind it. Not thread-safe.
 */
final class ThreadsGates {
  private final ThreadsPlan plan;

  /** Of each thread a stream that does not wait for the default stream. */
  final List<Lane> lanes = new ArrayList<>();

  private boolean isFirst = true;

  ThreadsGates(ThreadsPlan plan) {
    this.plan = plan;
    for (int i = 0; i < plan.threads; i++) {
      lanes.add(new Lane(plan.lanes.size() + i, false, false, i));
    }
  }

  /** Adds one, but only one function: the driver may run several one after the other. */
  void add() {
    if (plan.hasTellingFunctions || isFirst) {
      isFirst = false;
      add(plan.hasTellingFunctions);
    }
  }

  /** One thread queues work behind a gate, and another does what comes before, and opens it. */
  private void add(boolean isWord) {
    int holder = plan.random.nextInt(plan.threads);
    int opener = (holder + 1 + plan.random.nextInt(plan.threads - 1)) % plan.threads;
    Lane lane = lanes.get(holder);
    Op held = plan.ops.any(plan.live);
    int cell = held.uses().keySet().stream().sorted().toList().getFirst();
    plan.makeWay(holder, lane, held.uses());
    int gate = isWord ? plan.words++ : plan.latches++;
    ThreadsStep closed =
        plan.append(
            holder,
            Kind.STREAM_FOR_STEP,
            lane,
            run -> {
              if (isWord) {
                run.holdByWord(gate, lane);
              } else {
                run.holdByFunction(gate, lane);
              }
            });
    ThreadsStep work =
        plan.append(
            plan.next(
                holder,
                Kind.PLAIN,
                lane,
                held.uses(),
                run -> held.queue().on(run, run.stream(lane))));
    Lane other = plan.lane(opener);
    ThreadsStep _ = plan.queue(opener, other, plan.ops.fill(cell));
    new ThreadsWays(plan, plan.order).awaitStream(opener, opener, other);
    closed.waitingFor(
        plan.append(
            opener,
            Kind.PLAIN,
            null,
            run -> {
              if (isWord) {
                run.open(gate);
              } else {
                run.latches.get(gate).countDown();
              }
            }));
    int latch = plan.latches++;
    ThreadsStep opened =
        plan.append(opener, Kind.PLAIN, null, run -> run.latches.get(latch).countDown());
    ThreadsStep _ =
        plan.append(holder, Kind.HOST_FOR_STEP, null, run -> run.await(latch)).waitingFor(opened);
    new ThreadsWays(plan, plan.order).awaitStream(holder, holder, lane);
    plan.used(work);
    held.effect().run();
  }
}
