package io.cuvette.testkit.seeds;

import io.cuvette.testkit.seeds.ThreadsStep.Kind;
import io.cuvette.testkit.seeds.ThreadsStep.Lane;
import java.util.Objects;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/** The ways by which one step of a plan comes behind another. Not thread-safe. */
final class ThreadsWays {
  private final ThreadsPlan plan;
  private final ThreadsOrder order;
  private final SplittableRandom random;

  ThreadsWays(ThreadsPlan plan, ThreadsOrder order) {
    this.plan = plan;
    this.order = order;
    this.random = plan.random;
  }

  /** Has what a thread does next, on a stream or itself, come behind an earlier step. */
  void order(ThreadsStep before, int thread, @Nullable Lane lane) {
    boolean takeTurns = lane != null && order.takeTurns(before.lane, lane);
    boolean isKnown = order.isKnownAt(before, plan.last(before.thread));
    if (isKnown || (takeTurns && before.isQueued())) {
      handOver(before.thread, thread);
      return;
    }
    Lane used = Objects.requireNonNull(before.lane);
    int by = before.thread;
    if (used.canBeUsedBy(thread) && random.nextBoolean()) {
      if (!order.isCalledBefore(before, plan.last(thread))) {
        handOver(by, thread);
      }
      by = thread;
    }
    boolean canTurn = lane != null && lane.isBlocking() && used.isBlocking();
    int way = random.nextInt(lane == null ? 8 : 14);
    switch (way) {
      case 0, 1 -> {
        if (way == 0 && plan.hasTellingFunctions) {
          tellByFunction(by, thread, used);
        } else {
          tellByWord(by, thread, used);
        }
      }
      case 2, 3 -> awaitEvent(by, thread, used);
      default -> {
        if (lane == null || way < 8) {
          awaitStream(by, thread, used);
        } else if (way == 8) {
          followWord(by, thread, used, lane);
        } else if (way < 11 && canTurn) {
          handOver(by, thread);
          Lane legacy = plan.lanes.getFirst();
          ThreadsStep _ =
              plan.append(thread, Kind.TURN, legacy, run -> run.turn(legacy)).thatCanBeWrong();
        } else {
          followEvent(by, thread, used, lane);
        }
      }
    }
  }

  /** Another thread goes on when this one is here. */
  void handOver(int from, int to) {
    if (from != to) {
      int latch = plan.latches++;
      ThreadsStep here =
          plan.append(from, Kind.PLAIN, null, run -> run.latches.get(latch).countDown());
      ThreadsStep _ =
          plan.append(to, Kind.HOST_FOR_STEP, null, run -> run.await(latch))
              .waitingFor(here)
              .thatCanBeWrong();
    }
  }

  private void tellByFunction(int by, int thread, Lane used) {
    int latch = plan.latches++;
    ThreadsStep function = plan.append(by, Kind.PLAIN, used, run -> run.countDownOn(latch, used));
    ThreadsStep _ =
        plan.append(thread, Kind.HOST_FOR_WORK, null, run -> run.await(latch))
            .waitingFor(function)
            .thatCanBeWrong();
  }

  private void tellByWord(int by, int thread, Lane used) {
    int word = plan.words++;
    ThreadsStep kernel = plan.append(by, Kind.PLAIN, used, run -> run.tell(word, used));
    ThreadsStep _ =
        plan.append(thread, Kind.HOST_FOR_WORK, null, run -> run.awaitTold(word))
            .waitingFor(kernel)
            .thatCanBeWrong();
  }

  private void awaitEvent(int by, int thread, Lane used) {
    ThreadsStep record = plan.record(by, used);
    int waiter = random.nextBoolean() ? by : thread;
    handOver(by, waiter);
    boolean queries = random.nextBoolean();
    int[] event = new int[1];
    ThreadsStep wait =
        plan.append(waiter, Kind.HOST_FOR_EVENT, null, run -> run.awaitEvent(event[0], queries));
    event[0] = plan.waits(wait.thatCanBeWrong(), record);
    handOver(waiter, thread);
  }

  void awaitStream(int by, int thread, Lane used) {
    Lane awaited = plan.waitsForDevice && random.nextBoolean() ? null : used;
    boolean queries = random.nextBoolean();
    ThreadsStep _ =
        plan.append(by, Kind.HOST_FOR_STREAM, awaited, run -> run.awaitStream(awaited, queries))
            .thatCanBeWrong();
    handOver(by, thread);
  }

  private void followWord(int by, int thread, Lane used, Lane lane) {
    int word = plan.words++;
    boolean isKernel = random.nextBoolean();
    ThreadsStep write = plan.append(by, Kind.PLAIN, used, run -> run.set(word, isKernel, used));
    handOver(by, thread);
    ThreadsStep _ =
        plan.append(thread, Kind.STREAM_FOR_WORD, lane, run -> run.followWord(word, lane))
            .waitingFor(write)
            .thatCanBeWrong();
  }

  private void followEvent(int by, int thread, Lane used, Lane lane) {
    ThreadsStep record = plan.record(by, used);
    handOver(by, thread);
    int[] event = new int[1];
    ThreadsStep wait =
        plan.append(thread, Kind.STREAM_FOR_EVENT, lane, run -> run.followEvent(event[0], lane));
    event[0] = plan.waits(wait.thatCanBeWrong(), record);
  }
}
