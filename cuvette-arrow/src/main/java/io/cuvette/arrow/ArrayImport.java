package io.cuvette.arrow;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cuvette.Buffer;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.arrow.vector.types.pojo.Field;
import org.jspecify.annotations.Nullable;

/** Makes columns of the memory of other libraries. */
final class ArrayImport {
  private final CudaDevice device;
  private final Owner owner = new Owner();
  private final List<AutoCloseable> adopted = new ArrayList<>();

  private ArrayImport(CudaDevice device) {
    this.device = device;
  }

  /** Takes an array over; nothing has changed if it is refused. */
  static DeviceVector take(ArrowDeviceArray array, Field field, CudaStream stream) {
    Columns.check(field);
    DeviceVector.checkStream(stream.device(), stream);
    ArrayStructure seen = array.snapshot();
    if (seen.release() == 0) {
      throw array.isGone();
    }
    DeviceTypes.check(seen, stream);
    ArrayContent content = ArrayContent.read("array", seen, field, 0);
    long event = event(seen.syncEvent());
    content.check(stream.device());
    return new ArrayImport(stream.device()).take(array, seen, content, event, stream);
  }

  /** The handle that an address leads to; 0 if nothing is to be waited for. */
  private static long event(long address) {
    if (address == 0) {
      return 0;
    }
    long handle =
        address % Long.BYTES == 0 ? NativeMemory.calls().memory(address, 8).get(JAVA_LONG, 0) : 0;
    if (handle == 0) {
      throw new IllegalArgumentException(
          "sync_event: 0x%x (expected: null, or the address of a CUevent)".formatted(address));
    }
    return handle;
  }

  private DeviceVector take(
      ArrowDeviceArray array,
      ArrayStructure seen,
      ArrayContent content,
      long event,
      CudaStream stream) {
    try {
      DeviceVector vector = column(content);
      if (event != 0) {
        stream.waitFor(event);
      }
      Moved moved = array.move(seen);
      if (moved == null) {
        throw array.isGone();
      }
      owner.begin(moved);
      return vector;
    } catch (RuntimeException | Error e) {
      Ends.closeAfter(e, adopted); // which releases nothing
      throw e;
    }
  }

  private DeviceVector column(ArrayContent content) {
    Buffer validity = adopt(content.validity());
    Buffer data = adopt(content.data());
    List<DeviceVector> children = new ArrayList<>();
    content.children().forEach(child -> children.add(column(child)));
    return new DeviceVector(device, content.field(), content.range(), validity, data, children);
  }

  private @Nullable Buffer adopt(ArrayContent.@Nullable Memory memory) {
    if (memory == null) {
      return null;
    }
    if (memory.bytes() == 0) {
      return device.wrap(0, 0, null);
    }
    owner.parts.incrementAndGet();
    Buffer buffer = device.adopt(memory.address(), memory.bytes(), owner);
    adopted.add(buffer);
    return buffer;
  }

  /** Who releases the array after the last of its buffers, if it was taken over. */
  private static final class Owner implements Runnable {
    /** One is the import itself, until it is done: what fails before releases nothing. */
    final AtomicInteger parts = new AtomicInteger(1);

    private volatile @Nullable Moved moved;

    void begin(Moved array) {
      moved = array;
      run();
    }

    @Override
    public void run() {
      if (parts.decrementAndGet() == 0) {
        Objects.requireNonNull(moved).release();
      }
    }
  }
}
