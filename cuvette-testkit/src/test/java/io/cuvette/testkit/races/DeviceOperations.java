package io.cuvette.testkit.races;

import io.cuvette.CudaDevice;
import io.cuvette.CudaProfiler;
import io.cuvette.DeviceAttribute;
import io.cuvette.EventOptions;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Operations of {@code CudaDevice}. Stateless. */
final class DeviceOperations {
  private static final int STACK_SIZE = 0;

  private DeviceOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addQuestions(all);
    addMakers(all);
    addForeign(all);
    addPeers(all);
    all.add(profiler("start()", CudaProfiler::start));
    all.add(profiler("stop()", CudaProfiler::stop));
    all.add(profiler("profile()", profiler -> profiler.profile().close()));
    return all;
  }

  private static void addQuestions(List<Operation> all) {
    all.add(device("name()", CudaDevice::name));
    all.add(device("uuid()", CudaDevice::uuid));
    all.add(device("pciBusId()", CudaDevice::pciBusId));
    all.add(device("computeCapability()", CudaDevice::computeCapability));
    all.add(
        device(
            "attribute(DeviceAttribute)", d -> d.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)));
    all.add(device("attribute(int)", device -> device.attribute(75)));
    all.add(device("attributes()", CudaDevice::attributes));
    all.add(device("memoryInfo()", CudaDevice::memoryInfo));
    all.add(device("totalBytes()", CudaDevice::totalBytes));
    all.add(device("priorityRange()", CudaDevice::priorityRange));
    all.add(device("limit(int)", device -> device.limit(STACK_SIZE)));
    all.add(device("setLimit(int, long)", device -> device.setLimit(STACK_SIZE, 1024)));
    all.add(device("synchronize()", CudaDevice::synchronize));
    all.add(
        device(
            "use()",
            device -> {
              try (Scope _ = device.use()) {
                device.cuda().currentDevice();
              }
            }));
    all.add(device("makeCurrent()", CudaDevice::makeCurrent));
    all.add(
        Operation.of(
            "Scope.close()",
            stage -> {
              CudaDevice device = stage.device;
              return () -> device.use().close();
            }));
  }

  private static void addMakers(List<Operation> all) {
    all.add(device("nullStream()", CudaDevice::nullStream));
    all.add(device("legacyStream()", CudaDevice::legacyStream));
    all.add(device("perThreadStream()", CudaDevice::perThreadStream));
    all.add(device("createStream()", device -> device.createStream().close()));
    all.add(
        device(
            "createStream(StreamOptions)",
            device -> device.createStream(StreamOptions.NON_BLOCKING).close()));
    all.add(device("createEvent()", device -> device.createEvent().close()));
    all.add(
        device(
            "createEvent(EventOptions)",
            device -> device.createEvent(EventOptions.ORDER_ONLY).close()));
  }

  private static void addForeign(List<Operation> all) {
    all.add(device("wrapStream(long, Object)", device -> device.wrapStream(1, null).close()));
    all.add(
        Operation.of(
            "CudaDevice.wrap(long, long, Object)",
            stage -> {
              long address = stage.foreign();
              return () -> stage.device.wrap(address, Stage.BYTES, null).close();
            }));
    all.add(
        Operation.of(
            "CudaDevice.adopt(long, long, Runnable)",
            stage -> {
              long address = stage.foreign();
              return () -> stage.device.adopt(address, Stage.BYTES, () -> {}).close();
            }));
  }

  private static void addPeers(List<Operation> all) {
    all.add(device("canAccess(CudaDevice)", device -> device.canAccess(device)));
    all.add(withPeer("enablePeerAccess(CudaDevice)", CudaDevice::enablePeerAccess));
    all.add(withPeer("disablePeerAccess(CudaDevice)", CudaDevice::disablePeerAccess));
  }

  private static Operation profiler(String method, Consumer<CudaProfiler> body) {
    return Operation.of(
        "CudaProfiler." + method,
        stage -> {
          CudaProfiler profiler = stage.device.profiler();
          return () -> body.accept(profiler);
        });
  }

  /** What two devices do; with one there is nothing to race. */
  interface WithPeer {
    void run(CudaDevice device, CudaDevice peer);
  }

  private static Operation withPeer(String method, WithPeer body) {
    return Operation.of(
        "CudaDevice." + method,
        stage -> {
          AtomicReference<@Nullable CudaDevice> peer = new AtomicReference<>();
          for (CudaDevice other : stage.cuda.devices()) {
            if (!other.equals(stage.device) && stage.device.canAccess(other)) {
              peer.set(other);
            }
          }
          CudaDevice found = peer.get();
          return found == null ? stage.device::memoryInfo : () -> body.run(stage.device, found);
        });
  }

  private static Operation device(String method, Consumer<CudaDevice> body) {
    return Operation.of(
        "CudaDevice." + method,
        stage -> {
          CudaDevice device = stage.device;
          return () -> body.accept(device);
        });
  }
}
