package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Loans.Loan;
import io.cuvette.internal.block.Memory;
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
}
