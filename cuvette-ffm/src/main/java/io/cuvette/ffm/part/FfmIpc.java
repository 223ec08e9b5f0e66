package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.IPC_HANDLE;

import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.MemHandleType;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.DriverFunction;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.library.Libcuda;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Calls that share memory and events with other processes; those about pools need no context.
 * Thread-safe.
 */
public final class FfmIpc extends Part implements IpcCalls {
  public static final DriverFunction POOL_EXPORT =
      optional("cuMemPoolExportToShareableHandle(pool=%#x)", 11020, OUT, POINTER, INT, SIZE);

  /** The descriptor is the pointer. */
  public static final DriverFunction POOL_IMPORT =
      optional("cuMemPoolImportFromShareableHandle(descriptor=%d)", 11020, OUT, POINTER, INT, SIZE);

  public static final MethodHandle POINTER_EXPORT =
      Libcuda.function("cuMemPoolExportPointer", 11020, SEGMENT, POINTER);
  public static final MethodHandle POINTER_IMPORT =
      Libcuda.function("cuMemPoolImportPointer", 11020, POINTER, POINTER, SEGMENT);
  public static final MethodHandle GET_MEMORY =
      Libcuda.function("cuIpcGetMemHandle", 4010, SEGMENT, POINTER);
  public static final MethodHandle OPEN_MEMORY =
      Libcuda.function("cuIpcOpenMemHandle", 11000, POINTER, IPC_HANDLE, INT);
  public static final DriverFunction CLOSE_MEMORY =
      optional("cuIpcCloseMemHandle(address=%#x, device=%d)", 4010, POINTER);
  public static final MethodHandle GET_EVENT =
      Libcuda.function("cuIpcGetEventHandle", 4010, SEGMENT, POINTER);
  public static final MethodHandle OPEN_EVENT =
      Libcuda.function("cuIpcOpenEventHandle", 4010, POINTER, IPC_HANDLE);

  /** CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, the one way the driver knows. */
  public static final int LAZY_PEER_ACCESS = 1;

  /** The part of the driver whose calls start here. */
  public FfmIpc(Entry entry) {
    super(entry);
  }

  @Override
  public int memPoolExportToShareableHandle(long pool) {
    return (int) POOL_EXPORT.call(pool, MemHandleType.FILE_DESCRIPTOR, 0, enter());
  }

  @Override
  public long memPoolImportFromShareableHandle(int descriptor) {
    PoolEnds.HERE.beginMaking();
    try {
      return POOL_IMPORT.call(descriptor, MemHandleType.FILE_DESCRIPTOR, 0, enter());
    } finally {
      PoolEnds.HERE.endMaking();
    }
  }

  @Override
  public byte[] memPoolExportPointer(long address) {
    MemorySegment handle = room();
    Call.of("cuMemPoolExportPointer(address=%#x)", address)
        .run(_ -> (int) POINTER_EXPORT.invokeExact(handle, address), enter());
    return handle.toArray(ValueLayout.JAVA_BYTE);
  }

  @Override
  public long memPoolImportPointer(long pool, byte[] handle) {
    MemorySegment data = structure(handle);
    return Call.of("cuMemPoolImportPointer(pool=%#x)", pool)
        .run(frame -> (int) POINTER_IMPORT.invokeExact(frame.out, pool, data), enter());
  }

  @Override
  public byte[] ipcGetMemHandle(int device, long address) {
    MemorySegment handle = room();
    Call.of("cuIpcGetMemHandle(address=%#x, device=%d)", address, device)
        .run(_ -> (int) GET_MEMORY.invokeExact(handle, address), enter(device));
    return handle.toArray(ValueLayout.JAVA_BYTE);
  }

  @Override
  public long ipcOpenMemHandle(int device, byte[] handle) {
    MemorySegment structure = structure(handle);
    return Call.of("cuIpcOpenMemHandle(device=%d)", device)
        .run(
            frame -> (int) OPEN_MEMORY.invokeExact(frame.out, structure, LAZY_PEER_ACCESS),
            enter(device));
  }

  @Override
  public void ipcCloseMemHandle(int device, long address) {
    CLOSE_MEMORY.free(address, device, entry.enterToFree(device));
  }

  @Override
  public byte[] ipcGetEventHandle(int device, long event) {
    MemorySegment handle = room();
    Call.of("cuIpcGetEventHandle(event=%#x, device=%d)", event, device)
        .run(_ -> (int) GET_EVENT.invokeExact(handle, event), enter(device));
    return handle.toArray(ValueLayout.JAVA_BYTE);
  }

  @Override
  public long ipcOpenEventHandle(int device, byte[] handle) {
    MemorySegment structure = structure(handle);
    return Call.of("cuIpcOpenEventHandle(device=%d)", device)
        .run(frame -> (int) OPEN_EVENT.invokeExact(frame.out, structure), enter(device));
  }

  /** Room for the driver to write a handle into. */
  private static MemorySegment room() {
    return Arena.ofAuto().allocate(IPC_HANDLE.byteSize(), Long.BYTES);
  }

  /** A handle to pass, of as many bytes as the driver reads. */
  private static MemorySegment structure(byte[] handle) {
    if (handle.length != HANDLE_BYTES) {
      throw new IllegalArgumentException(
          "handle: %d bytes (expected: %d)".formatted(handle.length, HANDLE_BYTES));
    }
    return room().copyFrom(MemorySegment.ofArray(handle));
  }
}
