package io.cuvette.testkit;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * What a run had in this process when it was over: threads of the library that it started, and
 * descriptors that were not open before it. A thread may need a moment to end; a descriptor may be
 * somebody else's, or one that the process opens once. Immutable.
 *
 * @param threads the threads
 * @param files the open files by descriptor
 */
record LeftInProcess(List<Thread> threads, Map<String, String> files) {
  static final LeftInProcess NOTHING = new LeftInProcess(List.of(), Map.of());

  /** Names of threads that work for all of the process, and so for other runs of this moment. */
  private static final List<String> SHARED = List.of("cuvette-copies", "cuvette-returns");

  private static final Duration POLL = Duration.ofMillis(5);

  /** What is there now: threads of a group, and files since they were looked at last. */
  static LeftInProcess of(ThreadGroup group, OpenFiles files) {
    Thread[] alive = new Thread[group.activeCount() + 8];
    int count = group.enumerate(alive);
    List<Thread> own = Arrays.stream(alive, 0, count).filter(LeftInProcess::isOwn).toList();
    return new LeftInProcess(own, files.sinceLast());
  }

  private static boolean isOwn(Thread thread) {
    return ProcessWatch.isOurs(thread) && SHARED.stream().noneMatch(thread.getName()::startsWith);
  }

  LeftInProcess withoutFiles() {
    return new LeftInProcess(threads, Map.of());
  }

  boolean isThere() {
    return threads.stream().anyMatch(Thread::isAlive) || hasOpenFiles();
  }

  boolean hasOpenFiles() {
    return files.entrySet().stream()
        .anyMatch(each -> ProcessWatch.target(each.getKey()).equals(each.getValue()));
  }

  /** Whether one of the files is open as long as that. */
  boolean keepsFiles(Duration patience) throws InterruptedException {
    long start = System.nanoTime();
    while (hasOpenFiles()) {
      if (System.nanoTime() - start >= patience.toNanos()) {
        return true;
      }
      LockSupport.parkNanos(POLL.toNanos());
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
    }
    return false;
  }

  /** Those that live as long as that. */
  List<String> threadsThatStay(Duration patience) throws InterruptedException {
    List<String> stay = new ArrayList<>();
    for (Thread thread : threads) {
      if (!thread.join(patience)) {
        stay.add(thread.getName());
      }
    }
    return stay;
  }
}
