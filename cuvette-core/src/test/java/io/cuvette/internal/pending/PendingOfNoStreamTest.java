package io.cuvette.internal.pending;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.EngineMemory;
import io.cuvette.StreamOptions;
import io.cuvette.internal.stream.BareMemory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Memory that belongs to no stream waits for those that used it alone. */
@Timeout(60)
class PendingOfNoStreamTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream of = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream user = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  private final List<BareMemory> given = new ArrayList<>();
  private final PendingFrees<BareMemory> pending = new PendingFrees<>(given::add);

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void memoryThatNobodyUsed_goesBackAtOnce() {
    BareMemory block = new BareMemory(null);
    pending.free(block, EngineMemory.streamOf(of));
    pending.free(block, null);
    assertThat(given).containsExactly(block, block);
    assertThat(pending.blocks()).isZero();
  }

  /** Others have the handle, so that the clock of the stream tells nothing. */
  @Test
  void memoryOfAStreamThatOthersKnow_goesBackAfterItsWork() {
    assertThat(user.handle()).isNotZero();
    BareMemory block = new BareMemory(null);
    block.use(EngineMemory.streamOf(user));
    pending.free(block, EngineMemory.streamOf(of));
    user.synchronize();
    pending.poll();
    assertThat(given).containsExactly(block);
    assertThat(pending.blocks()).isZero();
  }
}
