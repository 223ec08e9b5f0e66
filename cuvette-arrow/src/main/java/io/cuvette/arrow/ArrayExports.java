package io.cuvette.arrow;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.cuvette.Buffer;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.ForeignLoan;
import io.cuvette.ManagedBuffer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes arrays that others have of this process, and ends them. The release callback is one
 * function for all: it runs on threads of others, gives back the loans of an array and of those of
 * its children that are in their place still, and neither waits nor allocates.
 */
final class ArrayExports {
  private static final long NONE = 0;

  private static final class Callback {
    static final MemorySegment EVERYTHING = NativeMemory.calls().memory(0, Long.MAX_VALUE);
    static final ExportedNodes NODES = new ExportedNodes();
    static final long ADDRESS = NativeMemory.calls().callback(Callback::released);

    /** An array that somebody releases, which may have been moved; its number says which it is. */
    private static void released(long address) {
      if (address == 0) {
        return;
      }
      long number = EVERYTHING.get(JAVA_LONG_UNALIGNED, address + ArrayStructure.PRIVATE_DATA);
      ArrayStructure.array(address).setRelease(NONE);
      ExportedNode node = NODES.take(number);
      if (node != null) {
        end(node);
      }
    }

    private static void end(ExportedNode node) {
      for (ExportedNode child : node.children) {
        if (child.structure.release() != NONE && NODES.take(child.number) != null) {
          child.structure.setRelease(NONE);
          end(child);
        }
      }
      node.end();
    }
  }

  private ArrayExports() {}

  static void export(DeviceVector vector, ArrowDeviceArray out, CudaStream stream) {
    List<ForeignLoan> loans = new ArrayList<>();
    ExportedWhole whole = null;
    boolean isOut = false;
    try {
      ExportedNode root = lend(vector, loans);
      whole = new ExportedWhole(root.count(), loans.isEmpty() ? null : recorded(stream));
      write(vector, root, whole, out);
      isOut = true;
    } finally {
      if (!isOut) {
        loans.forEach(ForeignLoan::giveBack);
        if (whole != null) {
          whole.end();
        }
      }
    }
  }

  private static CudaEvent recorded(CudaStream stream) {
    CudaEvent event = stream.device().createEvent(EventOptions.ORDER_ONLY);
    try {
      event.record(stream);
      return event;
    } catch (RuntimeException | Error e) {
      Ends.closeAfter(e, List.of(event));
      throw e;
    }
  }

  /** Borrows all buffers of a column and of those below it. */
  private static ExportedNode lend(DeviceVector vector, List<ForeignLoan> all) {
    List<ForeignLoan> own = new ArrayList<>();
    for (Buffer buffer : vector.buffers()) {
      if (buffer.byteSize() > 0) {
        ForeignLoan loan = ForeignLoan.of(buffer);
        all.add(loan);
        own.add(loan);
      }
    }
    List<ExportedNode> children = new ArrayList<>();
    for (DeviceVector child : vector.children()) {
      children.add(lend(child, all));
    }
    return new ExportedNode(own.toArray(ForeignLoan[]::new), children.toArray(ExportedNode[]::new));
  }

  private static void write(
      DeviceVector vector, ExportedNode root, ExportedWhole whole, ArrowDeviceArray out) {
    MemorySegment cell = whole.allocate(Long.BYTES);
    cell.set(JAVA_LONG, 0, whole.eventHandle);
    out.fill(() -> {
      write(vector, root, whole, out.structure());
      out.structure()
          .writeDevice(
              vector.device().id(), type(vector), whole.eventHandle == 0 ? 0 : cell.address());
      root.structure.writeEnd(root.number, Callback.ADDRESS);
    });
  }

  /** Writes all but the end of an array; those below it whole. */
  private static void write(
      DeviceVector vector, ExportedNode node, ExportedWhole whole, ArrayStructure structure) {
    node.whole = whole;
    node.structure = structure;
    Callback.NODES.add(node);
    MemorySegment children = whole.allocate((long) node.children.length * Long.BYTES);
    for (int i = 0; i < node.children.length; i++) {
      ExportedNode child = node.children[i];
      write(
          vector.children().get(i),
          child,
          whole,
          new ArrayStructure(whole.allocate(ArrayStructure.ARRAY_BYTES)));
      child.structure.writeEnd(child.number, Callback.ADDRESS);
      children.setAtIndex(JAVA_LONG, i, child.structure.memory().address());
    }
    boolean isNested = Columns.isNested(vector.field());
    MemorySegment buffers = whole.allocate(isNested ? Long.BYTES : 2 * Long.BYTES);
    buffers.set(JAVA_LONG, 0, vector.validity().map(Buffer::address).orElse(0L));
    if (!isNested) {
      buffers.set(JAVA_LONG, Long.BYTES, vector.data().address());
    }
    structure.write(vector, buffers, children);
  }

  /** The kind of memory: managed if all is. */
  private static int type(DeviceVector vector) {
    return isManaged(vector) ? ArrayStructure.CUDA_MANAGED : ArrayStructure.CUDA;
  }

  private static boolean isManaged(DeviceVector vector) {
    return vector.buffers().stream().allMatch(ManagedBuffer.class::isInstance)
        && vector.children().stream().allMatch(ArrayExports::isManaged);
  }
}
