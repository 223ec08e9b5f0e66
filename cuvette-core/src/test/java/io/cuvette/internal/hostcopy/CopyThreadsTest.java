package io.cuvette.internal.hostcopy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.internal.base.Await;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class CopyThreadsTest {
  /** They are the process's, and would keep what the first who needs help had. */
  @Test
  void threadsThatHelp_inheritNothing() throws Exception {
    InheritableThreadLocal<String> local = new InheritableThreadLocal<>();
    CompletableFuture<@Nullable String> seen = new CompletableFuture<>();
    local.set("the caller's");
    try {
      assumeTrue(CopyThreads.start(() -> seen.complete(local.get())), "others are copying");
      assertThat(seen.get(30, TimeUnit.SECONDS)).isNull();
    } finally {
      local.remove();
    }
  }

  /** Else who asked would count on one thread less than there is, and not wait for it. */
  @Test
  void threadThatWorks_wasSaidToStart_andOneThatDoesNotWasNot() throws InterruptedException {
    for (int i = 0; i < 20; i++) {
      CountDownLatch runs = new CountDownLatch(1);
      boolean started = CopyThreads.start(runs::countDown);
      assertThat(runs.await(started ? 30_000 : 5, TimeUnit.MILLISECONDS)).isEqualTo(started);
    }
  }

  /** One that has just ended its work may take a moment until it is free. */
  @Test
  void workThatNoThreadIsFreeFor_isRefused() {
    CountDownLatch goOn = new CountDownLatch(1);
    try {
      for (int busy = 0; busy < CopyThreads.MOST; ) {
        if (CopyThreads.start(() -> Await.until(() -> goOn.getCount() == 0))) {
          busy++;
        } else {
          Thread.onSpinWait();
        }
      }
      assertThat(CopyThreads.start(() -> {})).isFalse();
    } finally {
      goOn.countDown();
    }
  }
}
