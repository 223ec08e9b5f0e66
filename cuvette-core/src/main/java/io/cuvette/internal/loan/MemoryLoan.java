package io.cuvette.internal.loan;

import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.lifetime.ForeignUsers;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.Streams;
import java.lang.ref.Reference;

/** What code outside of Java uses until it gives it back. Thread-safe. */
public final class MemoryLoan {
  private final ForeignReturns.Item item;
  private final String what;

  private MemoryLoan(ForeignReturns.Item item, String what) {
    this.item = item;
    this.what = what;
  }

  /**
   * A loan of the bytes of a buffer, which stays reachable. Its end, and that of the session, wait.
   *
   * @throws IllegalStateException if it, or the session, is closed
   */
  public static MemoryLoan of(Memory memory) {
    Session session = memory.on().session();
    ForeignUsers users = session.foreignUsers();
    users.enter();
    boolean isOut = false;
    try {
      memory.checkOpen();
      Runnable unhold = Block.lend(memory);
      try {
        memory.on().session().checkOpen(); // who closes it from now on sees the loan
        ForeignReturns.Item item =
            ForeignReturns.add(work(memory), users::beginReturn, () -> end(unhold, memory, users));
        isOut = true;
        return new MemoryLoan(item, "loan of " + memory);
      } finally {
        if (!isOut) {
          unhold.run();
        }
      }
    } finally {
      if (!isOut) {
        users.leave();
      }
    }
  }

  /** A loan of something else. */
  public static MemoryLoan of(Runnable end) {
    return new MemoryLoan(ForeignReturns.add(null, () -> {}, end), "loan");
  }

  private static void end(Runnable unhold, Memory memory, ForeignUsers users) {
    try {
      unhold.run();
    } finally {
      Reference.reachabilityFence(memory.face());
      users.leaveReturned();
    }
  }

  /** Work of streams that nobody here knows: all that the device has. Who ends the Cuda waits. */
  private static ForeignReturns.Work work(Memory memory) {
    Device device = memory.on();
    Streams streams = memory.order().state.streams;
    return new ForeignReturns.Work(
        device,
        () -> {
          if (!device.session().isClosed()) {
            device.session().gate().run(() -> streams.awaitAll(device));
          }
        });
  }

  public void giveBack() {
    item.giveBack();
  }

  public boolean isOver() {
    return item.isEnded();
  }

  @Override
  public String toString() {
    return what;
  }
}
