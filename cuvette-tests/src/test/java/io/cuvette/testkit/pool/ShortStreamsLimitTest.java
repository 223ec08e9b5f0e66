package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.AtOnce;
import java.util.List;
import org.junit.jupiter.api.Timeout;

/**
 * Streams that come and go with allocations under a limit: no error, and memory, events and heap
 * stay flat. The full run is {@code -Dcuvette.threads=8 -Dcuvette.streams=100000}.
 */
class ShortStreamsLimitTest {
  private static final int THREADS = Integer.getInteger("cuvette.threads", 8);
  private static final int STREAMS = Integer.getInteger("cuvette.streams", 100);

  /** What a thread has at a time, and what closed streams have that nobody looked at yet. */
  private static final int EVENTS_PER_THREAD = 40;

  private static final int BYTES = 1 << 20;
  private static final long HEAP_SLACK = 16 << 20;

  @CudaTest(sanitized = false)
  @Timeout(3600)
  void shortStreamsUnderALimit_failNever_andLeaveNothing(Subject subject)
      throws InterruptedException {
    ShortStreamsProgram.Counting[] driver = new ShortStreamsProgram.Counting[1];
    Cuda cuda =
        subject.open(options ->
            options.withDecorator(to -> driver[0] = new ShortStreamsProgram.Counting(to)));
    List<ShortStreamsProgram.Mark> marks =
        new ShortStreamsProgram(cuda, driver[0], THREADS, STREAMS).run();
    assertThat(marks).hasSizeGreaterThan(2);
    assertThat(marks)
        .allMatch(mark -> mark.events() <= THREADS * EVENTS_PER_THREAD)
        .allMatch(mark -> mark.openStreams() <= THREADS);
    long heap = marks.get(1).heapBytes(); // the first has what tests before have left
    assertThat(marks.subList(1, marks.size()))
        .allMatch(mark -> mark.heapBytes() <= heap + HEAP_SLACK);
  }

  /** Half of the buffers are closed after their stream: they wait for its work. */
  @CudaTest(sanitized = false)
  @Timeout(3600)
  void shortStreamsUnderTheLimitOfADriversPool_failNever(Cuda cuda, AsyncMemoryPool pool)
      throws InterruptedException {
    AtOnce threads = new AtOnce();
    pool.setLimit(MemoryLimit.ofBytes((long) THREADS * BYTES));
    threads.run(
        THREADS,
        _ -> {
          for (int i = 0; i < STREAMS; i++) {
            Buffer buffer;
            try (CudaStream stream = cuda.device(0).createStream()) {
              buffer = pool.allocate(BYTES, stream);
              buffer.fill((byte) 1, stream);
              if (i % 2 == 0) {
                buffer.close();
              }
            }
            buffer.close();
          }
        });
    threads.assertNoFailures();
    cuda.device(0).synchronize();
    assertThat(pool.liveBytes()).isZero();
  }
}
