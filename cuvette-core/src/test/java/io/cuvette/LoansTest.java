package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.base.Await;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Loans.Loan;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.lifetime.ForeignUsers;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What pools hold of memory that upstream gave. */
class LoansTest {
  private static final int BYTES = 4096;

  /** A thread gives memory back while another tears the pool down, and the Cuda waits for both. */
  @Test
  @Timeout(60)
  void loanGivenBackTwice_isGivenBackOnce() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Buffer slab = MemoryResource.direct().allocate(2 * BYTES, cuda.currentStream());
      Memory part = BufferBase.base(slab.slice(0, BYTES)).memory();
      Loan first = Block.lend(part, BYTES);
      Loan second = Block.lend(BufferBase.base(slab.slice(BYTES, BYTES)).memory(), BYTES);
      assertThat(part.block().lenders()).isEqualTo(2);
      first.giveBack();
      first.giveBack();
      assertThat(part.block().lenders()).isEqualTo(1);
      slab.close();
      assertThat(cuda.openObjects()).as("what the second holds").isEmpty();
      second.giveBack();
      assertThat(part.block().lenders()).isZero();
      assertThat(part.block().holds()).isZero();
    }
  }

  /** What could not be lent is lent to nobody. */
  @Test
  void closedMemory_isRefusedForThat_howeverOften() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Buffer closed = MemoryResource.direct().allocate(BYTES, cuda.currentStream());
      Memory memory = BufferBase.base(closed).memory();
      closed.close();
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(() -> Block.lend(memory, BYTES))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageEndingWith("is closed");
      }
      assertThat(memory.block().lenders()).isZero();
    }
  }

  /** It has an address then that nobody may take away; what pools lend from has not. */
  @Test
  void memoryThatForeignCodeUses_isOutUntilAllOfItIsGivenBack() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL))) {
      Buffer buffer = MemoryResource.direct().allocate(BYTES, cuda.currentStream());
      Memory memory = BufferBase.base(buffer).memory();
      Block block = memory.block();
      assertThat(block.isOut()).isFalse();
      Loan ofAPool = Block.lend(memory, BYTES / 2);
      assertThat(block.isOut()).isFalse();
      Runnable first = Block.lend(memory);
      Runnable second = Block.lend(memory);
      assertThat(block.lenders()).isEqualTo(3);
      first.run();
      assertThat(block.isOut()).isTrue();
      buffer.close();
      assertThatThrownBy(() -> Block.lend(memory))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageEndingWith("is closed");
      assertThat(block.lenders()).isEqualTo(2);
      second.run();
      assertThat(block.isOut()).isFalse();
      assertThat(block.holds()).isEqualTo(1);
      ofAPool.giveBack();
      assertThat(block.lenders()).isZero();
      assertThat(block.holds()).isZero();
    }
  }

  /** Whoever frees what is cached finds what was given back before that. */
  @Test
  @Timeout(60)
  void memoryThatForeignCodeIsGivingBack_isAwaitedByWhoFreesWhatIsCached() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool pool = new MemoryPool(cuda)) {
      long left = BYTES;
      for (int i = 0; i < 20 && left > 0; i++) { // a machine may take longer than it waits
        left = heldAfterAReturn(cuda, pool);
      }
      assertThat(left).isZero();
    }
  }

  private static long heldAfterAReturn(Cuda cuda, MemoryPool pool) throws InterruptedException {
    ForeignUsers users = cuda.session().foreignUsers();
    Buffer out = pool.allocate(BYTES);
    users.enter();
    users.beginReturn();
    AtomicBoolean isOver = new AtomicBoolean();
    Thread freeing = Thread.currentThread();
    Thread returning =
        Thread.ofPlatform()
            .start(() -> {
              Await.until(() -> freeing.getState() == Thread.State.TIMED_WAITING || isOver.get());
              out.close();
              users.leaveReturned();
            });
    pool.freeAllBlocks();
    isOver.set(true);
    long left = pool.totalBytes();
    returning.join();
    return left;
  }
}
