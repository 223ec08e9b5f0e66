package io.cuvette.internal.hostcopy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.concurrent.CompletableFuture;
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
}
