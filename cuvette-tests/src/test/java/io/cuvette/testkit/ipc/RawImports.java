package io.cuvette.testkit.ipc;

import io.cuvette.AllocationHandle;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.support.HeldBySystem;
import io.cuvette.testkit.support.Peer;
import io.cuvette.testkit.support.PeerProgram;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Pipe;
import java.nio.channels.Selector;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

/**
 * Asks the driver itself, without the library's checks, what a hostile peer would have the library
 * ask: one suspect in each run, since the driver may end the process. Each step is printed before
 * it is done, so that the last one is what did.
 */
public final class RawImports implements PeerProgram {
  private static final int OFFSET_AT = 24;
  private static final int SIZE_AT = 32;
  private static final int PLAIN_OFFSET_AT = 28;
  private static final int PLAIN_NUMBER_AT = 40;
  private static final int[] ATTRIBUTES = {2, 11, 12, 17};
  private static final int ROUNDS = 1000;

  private final StringBuffer steps = new StringBuffer();
  private CudaDriver driver;
  private long pool;
  private byte[] pooled;
  private byte[] plain;

  @Override
  public void run(Peer peer) throws Exception {
    driver = peer.cuda().driver();
    Suspect suspect = Suspect.valueOf(peer.hear());
    pooled = HexFormat.of().parseHex(peer.hear());
    plain = HexFormat.of().parseHex(peer.hear());
    try (AllocationHandle handle = peer.channel().receiveAllocationHandle(Duration.ofSeconds(40))) {
      pool = driver.sharing().memPoolImportFromShareableHandle(handle.descriptor());
      suspect.steps.run(this);
    }
    peer.say("survived:" + steps);
    peer.hear();
  }

  private interface Steps {
    void run(RawImports raw) throws Exception;
  }

  /** What may end a process. */
  enum Suspect {
    OVERLAPPING_IMPORT_FREED_FIRST(raw -> {
      long right = raw.pointer(OFFSET_AT, 0);
      raw.free(raw.pointer(OFFSET_AT, 512));
      raw.free(right);
      raw.destroy();
    }),
    OVERLAPPING_IMPORT_FREED_LAST(raw -> {
      long right = raw.pointer(OFFSET_AT, 0);
      long shifted = raw.pointer(OFFSET_AT, 512);
      raw.free(right);
      raw.free(shifted);
      raw.destroy();
    }),
    OVERLAPPING_IMPORT_LEFT_IN_A_DESTROYED_POOL(raw -> {
      long right = raw.pointer(OFFSET_AT, 0);
      raw.pointer(OFFSET_AT, 512);
      raw.free(right);
      raw.destroy();
    }),
    IMPORT_AT_AN_ODD_ADDRESS(raw -> {
      raw.free(raw.pointer(OFFSET_AT, 1));
      raw.destroy();
    }),
    IMPORT_OF_WHAT_IS_NOT_ALLOCATED(raw -> {
      raw.free(raw.pointer(OFFSET_AT, 16 << 20));
      raw.destroy();
    }),
    SAME_MEMORY_WITH_SIZE_0(raw -> raw.sizes(0)),
    SAME_MEMORY_WITH_A_SMALLER_SIZE(raw -> raw.sizes(1)),
    SAME_MEMORY_WITH_64_MIB(raw -> raw.sizes(1L << 26)),
    SAME_MEMORY_WITH_2_GIB(raw -> raw.sizes(1L << 31)),
    SAME_MEMORY_WITH_256_GIB(raw -> raw.sizes(1L << 38)),
    OFFSET_OF_256_GIB(raw -> raw.pointer(OFFSET_AT, 1L << 38)),
    FREED_TWICE(raw -> {
      long right = raw.pointer(OFFSET_AT, 0);
      raw.pointer(OFFSET_AT, 0);
      raw.free(right);
      raw.free(right);
      raw.destroy();
    }),
    FREED_WHEN_THE_POOL_IS_DESTROYED(raw -> {
      long right = raw.pointer(OFFSET_AT, 0);
      raw.destroy();
      raw.free(right);
    }),
    ASKED_ABOUT_WHILE_IT_IS_FREED(RawImports::askWhileItIsFreed),
    PLAIN_MEMORY_AT_16_MIB(raw -> {
      long right = raw.opened(PLAIN_OFFSET_AT, 0);
      raw.closed(raw.opened(PLAIN_OFFSET_AT, 16 << 20));
      raw.closed(right);
    }),
    PLAIN_MEMORY_AT_16_MIB_ALONE(raw -> raw.closed(raw.opened(PLAIN_OFFSET_AT, 16 << 20))),
    PLAIN_MEMORY_WITH_ANOTHER_NUMBER(raw -> {
      long right = raw.opened(PLAIN_OFFSET_AT, 0);
      raw.closed(raw.opened(PLAIN_NUMBER_AT, 1));
      raw.closed(right);
    }),
    PLAIN_MEMORY_CLOSED_TWICE(raw -> {
      long right = raw.opened(PLAIN_OFFSET_AT, 0);
      raw.closed(right);
      raw.closed(right);
    }),
    DESCRIPTORS_THAT_ARE_NO_POOL(RawImports::importOthers);

    private final Steps steps;

    Suspect(Steps steps) {
      this.steps = steps;
    }
  }

  private void sizes(long size) {
    long right = pointer(OFFSET_AT, 0);
    byte[] altered = pooled.clone();
    ByteBuffer.wrap(altered).order(ByteOrder.nativeOrder()).putLong(SIZE_AT, size);
    long again = pointer(altered);
    free(right);
    if (again != right) {
      free(again);
    }
    free(pointer(altered)); // alone
    destroy();
  }

  private long pointer(int at, long more) {
    byte[] altered = pooled.clone();
    ByteBuffer words = ByteBuffer.wrap(altered).order(ByteOrder.nativeOrder());
    words.putLong(at, words.getLong(at) + more);
    return pointer(altered);
  }

  private long pointer(byte[] handle) {
    return used("memPoolImportPointer", () -> driver.sharing().memPoolImportPointer(pool, handle));
  }

  private long opened(int at, int more) {
    byte[] altered = plain.clone();
    ByteBuffer words = ByteBuffer.wrap(altered).order(ByteOrder.nativeOrder());
    words.putInt(at, words.getInt(at) + more);
    return used("ipcOpenMemHandle", () -> driver.sharing().ipcOpenMemHandle(0, altered));
  }

  /** What the library asks about memory that was imported; 0 if it was not. */
  private long used(String call, LongSupplier importing) {
    long address = step(call, importing);
    if (address != 0) {
      for (int attribute : ATTRIBUTES) {
        step(
            "attribute %d of 0x%x".formatted(attribute, address),
            () -> driver.memory().pointerGetAttribute(0, attribute, address));
      }
    }
    return address;
  }

  private void free(long address) {
    step(
        "memFreeAsync 0x%x".formatted(address),
        () -> {
          driver.ordered().memFreeAsync(0, address, 0);
          driver.streams().streamSynchronize(0, 0);
          return 0;
        });
  }

  private void closed(long address) {
    step(
        "ipcCloseMemHandle 0x%x".formatted(address),
        () -> {
          driver.sharing().ipcCloseMemHandle(0, address);
          return 0;
        });
  }

  private void destroy() {
    step(
        "memPoolDestroy",
        () -> {
          driver.pools().memPoolDestroy(pool);
          return 0;
        });
  }

  private void askWhileItIsFreed() throws InterruptedException {
    long address = pointer(OFFSET_AT, 0);
    AtomicBoolean over = new AtomicBoolean();
    Thread asking =
        new Thread(() -> {
          for (int i = 0; !over.get(); i++) {
            try {
              driver.memory().pointerGetAttribute(0, ATTRIBUTES[i % ATTRIBUTES.length], address);
            } catch (CudaException e) {
              continue; // it is freed
            }
          }
        });
    asking.start();
    try {
      step(
          "%d frees while another thread asks".formatted(ROUNDS),
          () -> {
            for (int i = 0; i < ROUNDS; i++) {
              driver.ordered().memFreeAsync(0, address, 0);
              driver.streams().streamSynchronize(0, 0);
              driver.sharing().memPoolImportPointer(pool, pooled);
            }
            return 0;
          });
    } finally {
      over.set(true);
      asking.join();
    }
    free(address);
    destroy();
  }

  private void importOthers() throws IOException {
    Pipe pipe = Pipe.open();
    try (Selector selector = Selector.open();
        var source = pipe.source();
        var sink = pipe.sink()) {
      steps.append(" with %s, %s and %s;".formatted(selector, source, sink));
      for (int descriptor : HeldBySystem.numbers()) {
        Path link = Path.of("/proc/self/fd/" + descriptor);
        step(
            "import %s".formatted(HeldBySystem.kindOf(link)),
            () -> driver.sharing().memPoolImportFromShareableHandle(descriptor));
      }
    }
  }

  private long step(String what, LongSupplier work) {
    System.err.println("step: " + what);
    try {
      long result = work.getAsLong();
      steps.append(" %s gives 0x%x;".formatted(what, result));
      return result;
    } catch (RuntimeException e) {
      steps.append(" %s fails: %s;".formatted(what, e.getMessage()));
      return 0;
    }
  }
}
