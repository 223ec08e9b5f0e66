package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class SerialExecutorTest {

  @Test
  void taskThatThrows_doesNotKeepTheNextOnesBack() throws InterruptedException {
    SerialExecutor executor = new SerialExecutor();
    CountDownLatch next = new CountDownLatch(1);
    executor.execute(() -> {
      throw new StackOverflowError("thrown on purpose");
    });
    executor.execute(next::countDown);
    assertThat(next.await(10, TimeUnit.SECONDS)).isTrue();
  }
}
