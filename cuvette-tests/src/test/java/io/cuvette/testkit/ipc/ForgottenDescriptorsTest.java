package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AllocationHandle;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.support.Forgetting;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Endpoints and handles that a program forgets give their descriptors back. */
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class ForgottenDescriptorsTest {
  private static final Duration LONG = Duration.ofSeconds(40);
  private static final int ROUNDS = 10;

  @TempDir Path directory;

  private final DescriptorCalls calls = DescriptorCalls.find().orElseThrow();

  @Test
  void channelsAndListeners_areClosedByTheCollector() throws InterruptedException {
    long before = OpenFiles.count();
    List<Object> inUse = new ArrayList<>();
    for (int round = 0; round < ROUNDS; round++) {
      IpcListener listener = IpcListener.open(directory.resolve("at" + round));
      inUse.add(listener);
      inUse.add(IpcChannel.connect(listener.path(), LONG));
      inUse.add(listener.accept(LONG));
    }
    assertThat(OpenFiles.count()).isGreaterThan(before);
    inUse.clear();
    assertThat(collected(before)).isLessThanOrEqualTo(before);
  }

  @Test
  void handlesThatCame_areClosedByTheCollector() throws InterruptedException {
    long before = OpenFiles.count();
    try (IpcListener listener = IpcListener.open(directory.resolve("at"));
        IpcChannel sender = IpcChannel.connect(listener.path(), LONG);
        IpcChannel receiver = listener.accept(LONG);
        AllocationHandle handle = AllocationHandle.of(calls.memoryFile("memory", 4096))) {
      long open = OpenFiles.count();
      for (int round = 0; round < ROUNDS; round++) {
        sender.send(handle);
        receiver.receiveAllocationHandle(LONG).duplicate();
      }
      assertThat(collected(open)).isLessThanOrEqualTo(open);
    }
    assertThat(OpenFiles.count()).isLessThanOrEqualTo(before);
  }

  /** The number may be in use by then. */
  @Test
  void handleWhoseNumberIsKnown_staysOpen() throws InterruptedException {
    int brought = calls.memoryFile("memory", 4096);
    int asked = AllocationHandle.of(brought).duplicate().descriptor();
    Forgetting.collect();
    assertThat(calls.isMemoryFile(brought)).isTrue();
    assertThat(calls.isMemoryFile(asked)).isTrue();
    calls.close(brought);
    calls.close(asked);
  }

  @Test
  void endpointInUse_isNotForgotten() {
    try (IpcListener listener = IpcListener.open(directory.resolve("at"));
        IpcChannel sender = IpcChannel.connect(listener.path(), LONG);
        IpcChannel receiver = listener.accept(LONG)) {
      System.gc();
      System.gc();
      IpcChannel.connect(listener.path(), LONG).close();
      sender.send(new byte[] {7});
      assertThat(receiver.receiveMessage(LONG).bytes()).containsExactly(7);
    }
  }

  /** What is open once no more is than wanted, or after many collections. */
  private static long collected(long wanted) throws InterruptedException {
    boolean _ = Forgetting.collectUntil(() -> OpenFiles.count() <= wanted);
    return OpenFiles.count();
  }
}
