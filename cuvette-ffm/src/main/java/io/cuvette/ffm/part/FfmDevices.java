package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;
import static io.cuvette.ffm.link.Layouts.SIZE;

import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.call.Startup;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.library.RuntimeLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.util.OptionalInt;
import java.util.UUID;

/** Calls about devices and their contexts. Thread-safe. */
public final class FfmDevices extends Part implements DeviceCalls {
  public static final MethodHandle GET_NAME =
      Libcuda.required("cuDeviceGetName", 2000, SEGMENT, INT, INT);
  public static final MethodHandle GET_UUID =
      Libcuda.required("cuDeviceGetUuid", 11040, SEGMENT, INT);
  public static final MethodHandle TOTAL_MEM =
      Libcuda.required("cuDeviceTotalMem", 3020, POINTER, INT);
  public static final MethodHandle GET_ATTRIBUTE =
      Libcuda.required("cuDeviceGetAttribute", 2000, POINTER, INT, INT);
  public static final MethodHandle GET_PCI_BUS_ID =
      Libcuda.function("cuDeviceGetPCIBusId", 4010, SEGMENT, INT, INT);
  public static final MethodHandle GET_BY_PCI_BUS_ID =
      Libcuda.function("cuDeviceGetByPCIBusId", 4010, POINTER, SEGMENT);
  public static final MethodHandle CAN_ACCESS_PEER =
      Libcuda.function("cuDeviceCanAccessPeer", 4000, POINTER, INT, INT);
  public static final MethodHandle ENABLE_PEER_ACCESS =
      Libcuda.function("cuCtxEnablePeerAccess", 4000, POINTER, INT);
  public static final MethodHandle DISABLE_PEER_ACCESS =
      Libcuda.function("cuCtxDisablePeerAccess", 4000, POINTER);

  /** Since CUDA 13 a context can be waited for without being current. */
  private static final boolean SYNCHRONIZES_ANY = Libcuda.has("cuCtxSynchronize", 13000);

  public static final MethodHandle SYNCHRONIZE_ANY =
      Libcuda.function("cuCtxSynchronize", 13000, POINTER);
  public static final MethodHandle SYNCHRONIZE_CURRENT = Libcuda.required("cuCtxSynchronize", 2000);
  public static final MethodHandle GET_STREAM_PRIORITY_RANGE =
      Libcuda.required("cuCtxGetStreamPriorityRange", 5050, POINTER, POINTER);
  public static final MethodHandle GET_LIMIT =
      Libcuda.function("cuCtxGetLimit", 3010, POINTER, INT);
  public static final MethodHandle SET_LIMIT = Libcuda.function("cuCtxSetLimit", 3010, INT, SIZE);
  public static final MethodHandle GET_INFO =
      Libcuda.required("cuMemGetInfo", 3020, POINTER, POINTER);

  /** As many bytes as the runtime has for a name; enough. */
  private static final int NAME_BYTES = 256;

  /** More than dddddddd:bb:dd.f and its end. */
  private static final int PCI_BYTES = 32;

  /** The part of the driver whose calls start here. */
  public FfmDevices(Entry entry) {
    super(entry);
  }

  @Override
  public int driverGetVersion() {
    entry.checkOpen();
    return Startup.version();
  }

  @Override
  public OptionalInt runtimeGetVersion() {
    return RuntimeLibrary.version();
  }

  @Override
  public int deviceGetCount() {
    entry.checkOpen();
    return contexts().size();
  }

  @Override
  public String deviceGetName(int device) {
    int handle = contexts().handle(device);
    MemorySegment text = Arena.ofAuto().allocate(NAME_BYTES);
    Call.of("cuDeviceGetName(device=%d)", device)
        .run(_ -> (int) GET_NAME.invokeExact(text, NAME_BYTES, handle), enter());
    return text.getString(0);
  }

  @Override
  public UUID deviceGetUuid(int device) {
    int handle = contexts().handle(device);
    MemorySegment uuid = Arena.ofAuto().allocate(2 * Long.BYTES);
    Call.of("cuDeviceGetUuid(device=%d)", device)
        .run(_ -> (int) GET_UUID.invokeExact(uuid, handle), enter());
    ByteBuffer bytes = uuid.asByteBuffer(); // the highest byte first
    return new UUID(bytes.getLong(), bytes.getLong());
  }

  @Override
  public long deviceTotalMem(int device) {
    int handle = contexts().handle(device);
    return Call.of("cuDeviceTotalMem(device=%d)", device)
        .run(frame -> (int) TOTAL_MEM.invokeExact(frame.out, handle), enter());
  }

  @Override
  public int deviceGetAttribute(int attribute, int device) {
    int handle = contexts().handle(device);
    return (int)
        Call.of("cuDeviceGetAttribute(attribute=%d, device=%d)", attribute, device)
            .run(frame -> (int) GET_ATTRIBUTE.invokeExact(frame.out, attribute, handle), enter());
  }

  @Override
  public String deviceGetPciBusId(int device) {
    int handle = contexts().handle(device);
    MemorySegment text = Arena.ofAuto().allocate(PCI_BYTES);
    Call.of("cuDeviceGetPCIBusId(device=%d)", device)
        .run(_ -> (int) GET_PCI_BUS_ID.invokeExact(text, PCI_BYTES, handle), enter());
    return text.getString(0);
  }

  @Override
  public int deviceGetByPciBusId(String pciBusId) {
    Call call = Call.of("cuDeviceGetByPCIBusId(pciBusId=%s)", pciBusId);
    if (pciBusId.indexOf('\0') >= 0) { // C would read up to there
      throw call.failed(Call.INVALID_VALUE);
    }
    MemorySegment text = Arena.ofAuto().allocateFrom(pciBusId);
    long handle = call.run(frame -> (int) GET_BY_PCI_BUS_ID.invokeExact(frame.out, text), enter());
    return contexts().ordinal((int) handle);
  }

  @Override
  public boolean deviceCanAccessPeer(int device, int peer) {
    int handle = contexts().handle(device);
    int peerHandle = contexts().handle(peer);
    long result =
        Call.of("cuDeviceCanAccessPeer(device=%d, peer=%d)", device, peer)
            .run(
                frame -> (int) CAN_ACCESS_PEER.invokeExact(frame.out, handle, peerHandle), enter());
    return (int) result != 0;
  }

  @Override
  public void ctxEnablePeerAccess(int device, int peer) {
    long context = entry.context(peer);
    Call.of("cuCtxEnablePeerAccess(device=%d, peer=%d)", device, peer)
        .run(_ -> (int) ENABLE_PEER_ACCESS.invokeExact(context, 0), enter(device));
  }

  @Override
  public void ctxDisablePeerAccess(int device, int peer) {
    long context = entry.context(peer);
    Call.of("cuCtxDisablePeerAccess(device=%d, peer=%d)", device, peer)
        .run(_ -> (int) DISABLE_PEER_ACCESS.invokeExact(context), enter(device));
  }

  @Override
  public void ctxSynchronize(int device) {
    Call call = Call.of("cuCtxSynchronize(device=%d)", device);
    long wait = PoolEnds.HERE.beginWait();
    try {
      if (SYNCHRONIZES_ANY) {
        long context = entry.context(device);
        call.run(_ -> (int) SYNCHRONIZE_ANY.invokeExact(context), enter());
      } else {
        call.run(_ -> (int) SYNCHRONIZE_CURRENT.invokeExact(), enter(device));
      }
    } finally {
      PoolEnds.HERE.endWait(wait);
    }
  }

  @Override
  public PriorityRange ctxGetStreamPriorityRange(int device) {
    long result =
        Call.of("cuCtxGetStreamPriorityRange(device=%d)", device)
            .run(
                frame ->
                    (int)
                        GET_STREAM_PRIORITY_RANGE.invokeExact(frame.out, frame.out + Integer.BYTES),
                enter(device));
    return new PriorityRange((int) result, (int) (result >> Integer.SIZE));
  }

  @Override
  public long ctxGetLimit(int device, int limit) {
    return Call.of("cuCtxGetLimit(limit=%d, device=%d)", limit, device)
        .run(frame -> (int) GET_LIMIT.invokeExact(frame.out, limit), enter(device));
  }

  @Override
  public void ctxSetLimit(int device, int limit, long value) {
    Call.of("cuCtxSetLimit(limit=%d, value=%d, device=%d)", limit, value, device)
        .run(_ -> (int) SET_LIMIT.invokeExact(limit, value), enter(device));
  }

  @Override
  public MemoryInfo memGetInfo(int device) {
    CallFrame frame = enter(device);
    int status;
    try {
      status = (int) GET_INFO.invokeExact(frame.out, frame.out + Long.BYTES);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    long total = frame.second();
    long free = frame.leave();
    if (status != SUCCESS) {
      throw Call.of("cuMemGetInfo(device=%d)", device).failed(status);
    }
    return new MemoryInfo(free, total);
  }
}
