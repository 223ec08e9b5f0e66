package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Page-locked memory that is freed while a thread of the program is in a call with it. */
@Timeout(60)
class HostMemoryInUseTest {
  /** Far more than the system takes at once of one who writes into a pipe. */
  private static final int BYTES = 4 << 20;

  private static void read(Pipe.SourceChannel from, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      assertThat(from.read(bytes)).isPositive();
    }
  }

  /** The bytes are there as long as that lasts, and gone with a later call of the driver. */
  @Test
  void memoryThatAThreadWrites_staysUntilThatIsDone() throws Exception {
    try (SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      Pipe pipe = Pipe.open();
      MemorySegment memory = driver.memory().memHostAlloc(0, BYTES, 0).fill((byte) 7);
      ByteBuffer written = memory.asByteBuffer();
      FutureTask<Integer> writing = new FutureTask<>(() -> pipe.sink().write(written));
      Thread thread = Thread.ofPlatform().start(writing);
      ByteBuffer bytes = ByteBuffer.allocate(BYTES);
      read(pipe.source(), bytes.slice(0, 1)); // the thread is inside
      driver.memory().memFreeHost(0, memory.address());
      assertThat(memory.scope().isAlive()).isTrue();
      MemorySegment other = driver.memory().memHostAlloc(0, BYTES, 0).fill((byte) 8);
      assertThat(memory.scope().isAlive()).as("the thread has not left").isTrue();
      read(pipe.source(), bytes.slice(1, BYTES - 1));
      assertThat(writing.get(60, TimeUnit.SECONDS)).isEqualTo(BYTES);
      thread.join();
      assertThat(MemorySegment.ofBuffer(bytes).toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
      driver.memory().memFreeHost(0, other.address());
      driver.memory().memFreeHost(0, driver.memory().memHostAlloc(0, 1, 0).address());
      assertThat(memory.scope().isAlive()).isFalse();
      pipe.sink().close();
      pipe.source().close();
    }
  }
}
