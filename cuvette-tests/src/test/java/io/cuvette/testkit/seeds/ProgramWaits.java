package io.cuvette.testkit.seeds;

import io.cuvette.driver.CudaDriver;
import io.cuvette.testkit.seeds.CellBlock.Cell;
import io.cuvette.testkit.seeds.CellBlock.Use;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Waits, by all ways that there are, for what a program is not yet behind. Not thread-safe. */
final class ProgramWaits {
  private static final int MOST_MARKS = 4;

  /** An event, and what is done once it is. */
  record Mark(long event, Map<ProgramStream, Integer> clock) {}

  private final CudaDriver driver;
  private final ProgramOrder order;
  private final SplittableRandom random;

  /** Memory that nothing else uses. */
  private final long scratch;

  private final List<Mark> marks = new ArrayList<>();

  /** The thread that makes the calls. */
  int thread;

  ProgramWaits(CudaDriver driver, ProgramOrder order, SplittableRandom random) {
    this.driver = driver;
    this.order = order;
    this.random = random;
    this.scratch = driver.memory().memAlloc(0, 64);
  }

  void close() {
    marks.forEach(mark -> driver.events().eventDestroy(0, mark.event));
    driver.memory().memFree(0, scratch);
  }

  /** Whether this thread can: the stream is there, and not that of another thread. */
  boolean canUse(ProgramStream stream) {
    return order.streams.contains(stream) && (stream.thread < 0 || stream.thread == thread);
  }

  /** One that this thread can use. */
  ProgramStream anyStream() {
    List<ProgramStream> usable = order.streams.stream().filter(this::canUse).toList();
    return usable.get(random.nextInt(usable.size()));
  }

  /** Sees to it that a stream uses cells behind all that is in the way. */
  void order(Map<Cell, Use> uses, ProgramStream stream) throws Exception {
    for (Map.Entry<Cell, Use> use : uses.entrySet()) {
      for (Map.Entry<ProgramStream, Integer> each :
          use.getKey().before(use.getValue()).entrySet()) {
        order(each.getKey(), each.getValue(), stream);
      }
    }
  }

  void order(ProgramStream first, int number, ProgramStream second) throws Exception {
    if (order.isBefore(first, number, second)) {
      return;
    }
    List<Mark> fitting = fitting(first, number);
    if (!fitting.isEmpty() && random.nextBoolean()) {
      follow(second, fitting.get(random.nextInt(fitting.size())));
    } else if (!canUse(first)) {
      await(first, number);
    } else {
      switch (random.nextInt(8)) {
        case 0, 1, 2 -> {
          Mark mark = record(first);
          follow(second, mark);
          keep(mark);
        }
        case 3 -> orderByDefaultStream(first, number, second);
        case 4 -> {
          ProgramStream third = anyStream();
          Mark mark = record(first);
          follow(third, mark);
          Mark next = record(mark.event, third);
          follow(second, next);
          keep(next);
        }
        default -> await(first, number);
      }
    }
  }

  private List<Mark> fitting(ProgramStream stream, int number) {
    return marks.stream().filter(mark -> order.isIn(mark.clock, stream, number)).toList();
  }

  private void orderByDefaultStream(ProgramStream first, int number, ProgramStream second)
      throws Exception {
    if (first.isBlocking && second.isBlocking) {
      driver.transfers().memsetD8Async(0, scratch, (byte) 0, 64, order.legacy.handle);
      int _ = order.queued(order.legacy);
    } else {
      await(first, number);
    }
  }

  Mark record(ProgramStream stream) {
    return record(driver.events().eventCreate(0, random.nextInt(4)), stream);
  }

  Mark record(long event, ProgramStream stream) {
    driver.events().eventRecord(0, event, stream.handle);
    int _ = order.queued(stream);
    return new Mark(event, stream.reached());
  }

  void follow(ProgramStream stream, Mark mark) {
    driver.streams().streamWaitEvent(0, stream.handle, mark.event);
    stream.follow(mark.clock);
  }

  /** Keeps an event for later, or destroys it although somebody may wait for it. */
  void keep(Mark mark) {
    marks.add(mark);
    if (marks.size() > random.nextInt(MOST_MARKS)) {
      driver.events().eventDestroy(0, marks.remove(random.nextInt(marks.size())).event);
    }
  }

  /** Has the host wait for what is in the way of its own use of cells. */
  void await(Map<Cell, Use> uses) throws Exception {
    for (Map.Entry<Cell, Use> use : uses.entrySet()) {
      for (Map.Entry<ProgramStream, Integer> each :
          use.getKey().before(use.getValue()).entrySet()) {
        await(each.getKey(), each.getValue());
      }
    }
  }

  private void await(ProgramStream stream, int number) throws Exception {
    if (order.isDone(stream, number)) {
      return;
    }
    List<Mark> fitting = fitting(stream, number);
    if (!fitting.isEmpty() && random.nextBoolean()) {
      await(fitting.get(random.nextInt(fitting.size())));
    } else if (!canUse(stream)) {
      synchronizeDevice();
    } else {
      switch (random.nextInt(5)) {
        case 0 -> synchronizeDevice();
        case 1 -> {
          Map<ProgramStream, Integer> clock = order.awaited(stream);
          while (!driver.streams().streamQuery(0, stream.handle)) {
            Thread.onSpinWait();
          }
          order.done(clock);
        }
        case 2 -> {
          Mark mark = record(stream);
          await(mark);
          keep(mark);
        }
        case 3 -> {
          CompletableFuture<Void> reached = new CompletableFuture<>();
          driver.streams().launchHostFunc(0, stream.handle, () -> reached.complete(null));
          int _ = order.queued(stream);
          reached.get(60, TimeUnit.SECONDS);
          order.done(stream.before);
          order.done(Map.of(stream, stream.queued - 1));
        }
        default -> synchronize(stream);
      }
    }
  }

  void synchronize(ProgramStream stream) {
    Map<ProgramStream, Integer> clock = order.awaited(stream);
    driver.streams().streamSynchronize(0, stream.handle);
    order.done(clock);
  }

  void synchronizeDevice() {
    driver.devices().ctxSynchronize(0);
    order.allDone();
  }

  void await(Mark mark) {
    if (random.nextBoolean()) {
      driver.events().eventSynchronize(0, mark.event);
    } else {
      while (!driver.events().eventQuery(0, mark.event)) {
        Thread.onSpinWait();
      }
    }
    order.done(mark.clock);
  }
}
