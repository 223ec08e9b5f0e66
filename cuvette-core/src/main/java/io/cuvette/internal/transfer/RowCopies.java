package io.cuvette.internal.transfer;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.TransferCalls;

/** Queues rows between addresses that the driver knows, in as few calls as it takes. Stateless. */
public final class RowCopies {
  private RowCopies() {}

  /**
   * One call, or one for each row if a pitch is too large for that.
   *
   * @throws CudaException if the driver reports an error; says which rows are queued
   */
  public static void queue(TransferCalls transfers, int device, BoxCopy copy, long stream) {
    if (copy.allRows() > 1 && copy.isForDriver()) {
      transfers.memcpy3DAsync(device, copy, stream);
      return;
    }
    for (long row = 0; row < copy.allRows(); row++) {
      long target = copy.target().addressOf(row, copy.height());
      long source = copy.source().addressOf(row, copy.height());
      try {
        transfers.memcpyAsync(device, target, source, copy.width(), stream);
      } catch (CudaException e) {
        throw copy.allRows() == 1 ? e : e.explained(queued(row, copy));
      }
    }
  }

  /** Which rows a copy has queued that queues one after the other. */
  public static String queued(long rows, BoxCopy copy) {
    return "copy of %d rows of %d bytes: the first %d are queued, no other"
        .formatted(copy.allRows(), copy.width(), rows);
  }
}
