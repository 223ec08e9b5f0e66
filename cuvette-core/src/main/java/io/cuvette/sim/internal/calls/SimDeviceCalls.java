package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PriorityRange;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.SimAttributes;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.DeviceMemory;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.List;
import java.util.OptionalInt;
import java.util.UUID;

/** The calls about devices. Thread-safe. */
public final class SimDeviceCalls implements DeviceCalls {
  public static final PriorityRange PRIORITIES = new PriorityRange(0, -5);

  private final SimMachine machine;

  /** Of the contexts, by device. */
  private final List<SimLimits> limits;

  public SimDeviceCalls(SimMachine machine) {
    this.machine = machine;
    this.limits = machine.devices().stream().map(_ -> new SimLimits()).toList();
  }

  @Override
  public int driverGetVersion() {
    return machine.call(() -> machine.options.driverVersion(), () -> "cuDriverGetVersion()");
  }

  @Override
  public OptionalInt runtimeGetVersion() {
    // There is no runtime library; the simulated one is as new as the driver.
    return machine.call(
        () -> OptionalInt.of(machine.options.driverVersion()), () -> "cudaRuntimeGetVersion()");
  }

  @Override
  public int deviceGetCount() {
    return machine.call(() -> machine.options.devices(), () -> "cuDeviceGetCount()");
  }

  @Override
  public String deviceGetName(int device) {
    return machine.call(
        () -> {
          machine.device(device);
          return "Simulated H200 (NVIDIA H200 figures)";
        },
        () -> "cuDeviceGetName(device=" + device + ")");
  }

  @Override
  public UUID deviceGetUuid(int device) {
    return machine.call(
        () -> machine.device(device).uuid(), () -> "cuDeviceGetUuid(device=" + device + ")");
  }

  @Override
  public long deviceTotalMem(int device) {
    return machine.callLong(
        () -> machine.memory(machine.device(device)).totalBytes(),
        () -> "cuDeviceTotalMem(device=" + device + ")");
  }

  @Override
  public int deviceGetAttribute(int attribute, int device) {
    return machine.call(
        () -> SimAttributes.get(attribute, machine.device(device), machine),
        () -> "cuDeviceGetAttribute(attribute=%d, device=%d)".formatted(attribute, device));
  }

  @Override
  public String deviceGetPciBusId(int device) {
    return machine.call(
        () -> SimAttributes.pciBusId(machine.device(device).index),
        () -> "cuDeviceGetPCIBusId(device=" + device + ")");
  }

  @Override
  public int deviceGetByPciBusId(String pciBusId) {
    return machine.call(
        () -> machine.device(SimAttributes.deviceAt(pciBusId)).index,
        () -> "cuDeviceGetByPCIBusId(pciBusId='" + pciBusId + "')");
  }

  @Override
  public boolean deviceCanAccessPeer(int device, int peer) {
    return machine.call(
        () -> canAccess(machine.device(device), machine.device(peer)),
        () -> "cuDeviceCanAccessPeer(device=%d, peer=%d)".formatted(device, peer));
  }

  private boolean canAccess(SimDevice device, SimDevice peer) {
    return machine.peers.allows(device.index, peer.index);
  }

  @Override
  public void ctxEnablePeerAccess(int device, int peer) {
    machine.run(
        () -> peers(device, peer).enablePeer(machine.device(peer)),
        () -> "cuCtxEnablePeerAccess(device=%d, peer=%d)".formatted(device, peer));
  }

  @Override
  public void ctxDisablePeerAccess(int device, int peer) {
    machine.run(
        () -> machine.working(device).disablePeer(machine.device(peer)),
        () -> "cuCtxDisablePeerAccess(device=%d, peer=%d)".formatted(device, peer));
  }

  private SimDevice peers(int device, int peer) {
    SimDevice one = machine.working(device);
    SimDevice other = machine.device(peer);
    if (one == other) {
      throw new SimRefusal(CudaStatus.INVALID_DEVICE, "peer: " + peer + " is the device itself");
    }
    if (!canAccess(one, other)) {
      throw new SimRefusal(
          CudaStatus.PEER_ACCESS_UNSUPPORTED, "from device " + device + " to " + peer);
    }
    return one;
  }

  @Override
  public void ctxSynchronize(int device) {
    machine.run(
        () -> {
          SimDevice waited = machine.working(device);
          machine.captures.checkDevice(waited);
          machine.drain(waited);
          machine.pools.releaseExcess();
          waited.checkWorks();
        },
        () -> "cuCtxSynchronize(device=" + device + ")");
  }

  @Override
  public PriorityRange ctxGetStreamPriorityRange(int device) {
    return machine.call(
        () -> {
          machine.working(device);
          return PRIORITIES;
        },
        () -> "cuCtxGetStreamPriorityRange(device=" + device + ")");
  }

  private SimLimits limits(int device) {
    return limits.get(machine.working(device).index);
  }

  @Override
  public long ctxGetLimit(int device, int limit) {
    return machine.callLong(
        () -> limits(device).get(limit),
        () -> "cuCtxGetLimit(device=%d, limit=%d)".formatted(device, limit));
  }

  @Override
  public void ctxSetLimit(int device, int limit, long value) {
    machine.run(
        () -> limits(device).set(limit, value),
        () -> "cuCtxSetLimit(device=%d, limit=%d, value=%d)".formatted(device, limit, value));
  }

  /** Nobody profiles a simulated device. */
  @Override
  public void profilerStart(int device) {
    machine.run(() -> machine.working(device), () -> "cuProfilerStart(device=" + device + ")");
  }

  @Override
  public void profilerStop(int device) {
    machine.run(() -> machine.working(device), () -> "cuProfilerStop(device=" + device + ")");
  }

  @Override
  public MemoryInfo memGetInfo(int device) {
    return machine.call(
        () -> {
          DeviceMemory memory = machine.memory(machine.working(device));
          return new MemoryInfo(memory.freeBytes(), memory.totalBytes());
        },
        () -> "cuMemGetInfo(device=" + device + ")");
  }
}
