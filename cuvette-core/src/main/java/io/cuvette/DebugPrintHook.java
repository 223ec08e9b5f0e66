package io.cuvette;

import io.cuvette.internal.base.BargingLock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Objects;

/**
 * Writes one line of JSON after each event of a {@link MemoryPool}, with CuPy's field names:
 *
 * <pre>{@code
 * {"hook":"alloc","device_id":0,"mem_size":512,"mem_ptr":140000000000}
 * {"hook":"malloc","device_id":0,"size":1,"mem_size":512,"mem_ptr":140000000000,"pmem_id":"0x1f"}
 * {"hook":"free","device_id":0,"mem_size":512,"mem_ptr":140000000000,"pmem_id":"0x1f"}
 * }</pre>
 *
 * <p>Thread-safe: lines are written whole.
 */
public final class DebugPrintHook implements MemoryHook {
  private final Appendable out;
  private final BargingLock lock = new BargingLock();

  /**
   * A hook that writes to {@code out}; it neither flushes nor closes it.
   *
   * @param out the destination of the text
   */
  public DebugPrintHook(Appendable out) {
    Objects.requireNonNull(out, "out");
    this.out = out;
  }

  @Override
  public void allocPostprocess(Growth growth) {
    Objects.requireNonNull(growth, "growth");
    print(
        "{\"hook\":\"alloc\",\"device_id\":%d,\"mem_size\":%d,\"mem_ptr\":%d}"
            .formatted(growth.device().id(), growth.blockBytes(), growth.address()));
  }

  @Override
  public void mallocPostprocess(Block block) {
    Objects.requireNonNull(block, "block");
    print(
        "{\"hook\":\"malloc\",\"device_id\":%d,\"size\":%d,\"mem_size\":%d,\"mem_ptr\":%d,\"pmem_id\":\"0x%x\"}"
            .formatted(
                block.device().id(),
                block.requestedBytes(),
                block.blockBytes(),
                block.address(),
                block.blockId()));
  }

  @Override
  public void freePostprocess(Block block) {
    Objects.requireNonNull(block, "block");
    print(
        "{\"hook\":\"free\",\"device_id\":%d,\"mem_size\":%d,\"mem_ptr\":%d,\"pmem_id\":\"0x%x\"}"
            .formatted(block.device().id(), block.blockBytes(), block.address(), block.blockId()));
  }

  private void print(String line) {
    lock.lock();
    try {
      out.append(line).append('\n');
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } finally {
      lock.unlock();
    }
  }
}
