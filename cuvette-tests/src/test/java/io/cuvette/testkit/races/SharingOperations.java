package io.cuvette.testkit.races;

import io.cuvette.AllocationHandle;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.DriverPoolResource;
import io.cuvette.PageHandles;
import io.cuvette.PinnedMemoryResource;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.UUID;
import java.util.function.Consumer;

/** Operations that share memory and events between processes. Stateless. */
final class SharingOperations {
  private SharingOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addHandles(all);
    addPlain(all);
    addPages(all);
    addDevice(all);
    addPinned(all);
    return all;
  }

  private static void addHandles(List<Operation> all) {
    all.add(
        Operation.simulated(
            "DriverPoolResource.allocationHandle()",
            stage -> {
              var options = DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
              DeviceMemoryResource resource =
                  stage.ended(Closer.POOL, new DeviceMemoryResource(stage.device, options));
              return resource::allocationHandle;
            }));
    all.add(handle("descriptor()", AllocationHandle::descriptor));
    all.add(handle("duplicate()", handle -> handle.duplicate().close()));
    all.add(handle("close()", AllocationHandle::close));
  }

  private static Operation handle(String method, Consumer<AllocationHandle> body) {
    return Operation.simulated(
        "AllocationHandle." + method,
        stage -> {
          AllocationHandle handle = theirs(stage);
          return () -> body.accept(handle);
        });
  }

  private static AllocationHandle theirs(Stage stage) {
    return stage.ended(Closer.SHARED, Exporter.ONE.device.allocationHandle().duplicate());
  }

  private static void addPages(List<Operation> all) {
    all.add(
        Operation.simulated(
            "CudaDevice.importBuffer(PageHandles, CudaStream)",
            stage -> {
              PageHandles handles = stage.ended(Closer.SHARED, Exporter.ONE.pages());
              CudaStream stream = stage.stream();
              return () -> stage.device.importBuffer(handles, stream).close();
            }));
    all.add(
        Operation.simulated(
            "PageHandles.close()",
            stage -> {
              PageHandles handles = stage.ended(Closer.SHARED, Exporter.ONE.pages());
              return handles::close;
            }));
  }

  private static void addPlain(List<Operation> all) {
    var descriptor = "CudaDevice.importBuffer(BufferDescriptor";
    all.add(
        Operation.simulated(
            descriptor + ")",
            stage -> {
              var plain = Exporter.ONE.plain.descriptor();
              return () -> stage.device.importBuffer(plain).close();
            }));
    all.add(
        Operation.simulated(
            descriptor + ", CudaStream)",
            stage -> {
              var plain = Exporter.ONE.plain.descriptor();
              CudaStream stream = stage.stream();
              return () -> stage.device.importBuffer(plain, stream).close();
            }));
    all.add(
        Operation.simulated(
            "CudaDevice.importEvent(EventDescriptor)",
            stage -> {
              var event = Exporter.ONE.event.descriptor();
              return () -> stage.device.importEvent(event).close();
            }));
  }

  private static void addDevice(List<Operation> all) {
    all.add(
        Operation.simulated(
            "DeviceMemoryResource.fromAllocationHandle(CudaDevice, AllocationHandle)",
            stage -> {
              AllocationHandle handle = theirs(stage);
              return () -> DeviceMemoryResource.fromAllocationHandle(stage.device, handle).close();
            }));
    all.add(
        Operation.simulated(
            "DeviceMemoryResource.fromAllocationHandle(CudaDevice, int)",
            stage -> {
              int descriptor = Exporter.ONE.device.allocationHandle().descriptor();
              return () ->
                  DeviceMemoryResource.fromAllocationHandle(stage.device, descriptor).close();
            }));
    all.add(
        mapped(
            "fromRegistry(Cuda, UUID)",
            (s, r) -> DeviceMemoryResource.fromRegistry(s.cuda, id(r))));
    all.add(
        mapped(
            "fromRegistry(CudaDevice, UUID)",
            (s, r) -> DeviceMemoryResource.fromRegistry(s.device, id(r))));
    all.add(mapped("register(UUID)", (_, resource) -> resource.register(id(resource))));
    var descriptor = Exporter.ONE.deviceBuffer.descriptor();
    all.add(mapped("importBuffer(BufferDescriptor)", (_, r) -> r.importBuffer(descriptor).close()));
    all.add(
        Operation.simulated(
            "DeviceMemoryResource.importBuffer(BufferDescriptor, CudaStream)",
            stage -> {
              DeviceMemoryResource resource = mapped(stage);
              CudaStream stream = stage.stream();
              return () -> resource.importBuffer(descriptor, stream).close();
            }));
  }

  /** What is done with a pool that is mapped. */
  interface WithMapped<R> {
    void run(Stage stage, R resource);
  }

  private static Operation mapped(String method, WithMapped<DeviceMemoryResource> body) {
    return Operation.simulated(
        "DeviceMemoryResource." + method,
        stage -> {
          DeviceMemoryResource resource = mapped(stage);
          return () -> registered(resource, () -> body.run(stage, resource));
        });
  }

  private static DeviceMemoryResource mapped(Stage stage) {
    AllocationHandle handle = Exporter.ONE.device.allocationHandle();
    DeviceMemoryResource resource =
        stage.ended(Closer.POOL, DeviceMemoryResource.fromAllocationHandle(stage.device, handle));
    return resource.register(id(resource));
  }

  private static UUID id(DriverPoolResource resource) {
    return resource.uuid().orElseThrow();
  }

  /** What was closed is in the registry no more, which says so in its way. */
  private static void registered(DriverPoolResource resource, Runnable body) {
    try {
      body.run();
    } catch (NoSuchElementException e) {
      throw new IllegalStateException("closed: " + resource, e);
    }
  }

  private static void addPinned(List<Operation> all) {
    all.add(
        Operation.simulated(
            "PinnedMemoryResource.fromAllocationHandle(Cuda, AllocationHandle)",
            stage -> {
              AllocationHandle handle =
                  stage.ended(Closer.SHARED, Exporter.ONE.pinned.allocationHandle().duplicate());
              return () -> PinnedMemoryResource.fromAllocationHandle(stage.cuda, handle).close();
            }));
    all.add(
        Operation.simulated(
            "PinnedMemoryResource.fromAllocationHandle(Cuda, int)",
            stage -> {
              int descriptor = Exporter.ONE.pinned.allocationHandle().descriptor();
              return () ->
                  PinnedMemoryResource.fromAllocationHandle(stage.cuda, descriptor).close();
            }));
    all.add(
        pinned(
            "fromRegistry(Cuda, UUID)",
            (s, r) -> PinnedMemoryResource.fromRegistry(s.cuda, id(r))));
    all.add(pinned("register(UUID)", (_, resource) -> resource.register(id(resource))));
    var descriptor = Exporter.ONE.pinnedBuffer.descriptor();
    all.add(pinned("importBuffer(BufferDescriptor)", (_, r) -> r.importBuffer(descriptor).close()));
    all.add(
        Operation.simulated(
            "PinnedMemoryResource.importBuffer(BufferDescriptor, CudaStream)",
            stage -> {
              PinnedMemoryResource resource = pinned(stage);
              CudaStream stream = stage.stream();
              return () -> resource.importBuffer(descriptor, stream).close();
            }));
  }

  private static Operation pinned(String method, WithMapped<PinnedMemoryResource> body) {
    return Operation.simulated(
        "PinnedMemoryResource." + method,
        stage -> {
          PinnedMemoryResource resource = pinned(stage);
          return () -> registered(resource, () -> body.run(stage, resource));
        });
  }

  private static PinnedMemoryResource pinned(Stage stage) {
    AllocationHandle handle = Exporter.ONE.pinned.allocationHandle();
    PinnedMemoryResource resource =
        stage.ended(Closer.POOL, PinnedMemoryResource.fromAllocationHandle(stage.cuda, handle));
    return resource.register(id(resource));
  }
}
