package io.cuvette.ffm.part;

import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.DriverFunction;
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
  public static final DriverFunction TOTAL_MEM =
      required("cuDeviceTotalMem(device=%2$d)", 3020, OUT, INT);
  public static final DriverFunction GET_ATTRIBUTE =
      required("cuDeviceGetAttribute(attribute=%d, device=%3$d)", 2000, OUT, INT, INT);
  public static final MethodHandle GET_PCI_BUS_ID =
      Libcuda.function("cuDeviceGetPCIBusId", 4010, SEGMENT, INT, INT);
  public static final MethodHandle GET_BY_PCI_BUS_ID =
      Libcuda.function("cuDeviceGetByPCIBusId", 4010, POINTER, SEGMENT);
  public static final DriverFunction CAN_ACCESS_PEER =
      optional("cuDeviceCanAccessPeer(device=%3$d, peer=%4$d)", 4000, OUT, INT, INT);
  public static final DriverFunction ENABLE_PEER_ACCESS =
      optional("cuCtxEnablePeerAccess(device=%3$d, peer=%4$d)", 4000, POINTER, INT);
  public static final DriverFunction DISABLE_PEER_ACCESS =
      optional("cuCtxDisablePeerAccess(device=%2$d, peer=%3$d)", 4000, POINTER);

  /** Since CUDA 13 a context can be waited for without being current. */
  private static final boolean SYNCHRONIZES_ANY = Libcuda.has("cuCtxSynchronize", 13000);

  public static final DriverFunction SYNCHRONIZE_ANY =
      optional("cuCtxSynchronize(device=%2$d)", 13000, POINTER);
  public static final DriverFunction SYNCHRONIZE_CURRENT =
      required("cuCtxSynchronize(device=%d)", 2000);
  public static final MethodHandle GET_STREAM_PRIORITY_RANGE =
      Libcuda.required("cuCtxGetStreamPriorityRange", 5050, POINTER, POINTER);
  public static final DriverFunction GET_LIMIT =
      optional("cuCtxGetLimit(limit=%d, device=%d)", 3010, OUT, INT);
  public static final DriverFunction SET_LIMIT =
      optional("cuCtxSetLimit(limit=%d, value=%d, device=%d)", 3010, INT, SIZE);
  public static final DriverFunction PROFILER_START = optional("cuProfilerStart(device=%d)", 4000);
  public static final DriverFunction PROFILER_STOP = optional("cuProfilerStop(device=%d)", 4000);
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
    return TOTAL_MEM.call(contexts().handle(device), device, enter());
  }

  @Override
  public int deviceGetAttribute(int attribute, int device) {
    int handle = contexts().handle(device);
    return (int) GET_ATTRIBUTE.call(attribute, handle, device, enter());
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
    return (int) CAN_ACCESS_PEER.call(handle, peerHandle, device, peer, enter()) != 0;
  }

  @Override
  public void ctxEnablePeerAccess(int device, int peer) {
    ENABLE_PEER_ACCESS.call(entry.context(peer), 0, device, peer, enter(device));
  }

  @Override
  public void ctxDisablePeerAccess(int device, int peer) {
    DISABLE_PEER_ACCESS.call(entry.context(peer), device, peer, enter(device));
  }

  @Override
  public void ctxSynchronize(int device) {
    long wait = PoolEnds.HERE.beginWait();
    try {
      if (SYNCHRONIZES_ANY) {
        SYNCHRONIZE_ANY.call(entry.context(device), device, enter());
      } else {
        SYNCHRONIZE_CURRENT.call(device, enter(device));
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
    return GET_LIMIT.call(limit, device, enter(device));
  }

  @Override
  public void ctxSetLimit(int device, int limit, long value) {
    SET_LIMIT.call(limit, value, device, enter(device));
  }

  @Override
  public void profilerStart(int device) {
    PROFILER_START.call(device, enter(device));
  }

  @Override
  public void profilerStop(int device) {
    PROFILER_STOP.call(device, enter(device));
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
