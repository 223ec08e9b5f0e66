package io.cuvette.testkit.races;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.MemoryLocation;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PoolAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** Operations of the resources on top of the driver's pools. Stateless. */
final class ResourceOperations {
  private ResourceOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addConstructors(all);
    addPlain(all);
    addAllocations(all);
    addOthers(all);
    addAttributes(all);
    return all;
  }

  private static void addConstructors(List<Operation> all) {
    all.add(
        Operation.of(
            "new DeviceMemoryResource(CudaDevice)",
            s -> () -> new DeviceMemoryResource(s.device).close()));
    all.add(
        Operation.of(
            "new DeviceMemoryResource(CudaDevice, DeviceMemoryResourceOptions)",
            s ->
                () ->
                    new DeviceMemoryResource(s.device, DeviceMemoryResourceOptions.DEFAULTS)
                        .close()));
    all.add(
        Operation.simulated(
            "new ManagedMemoryResource(Cuda)",
            s -> () -> new ManagedMemoryResource(s.cuda).close()));
    all.add(
        Operation.simulated(
            "new ManagedMemoryResource(Cuda, ManagedMemoryResourceOptions)",
            s ->
                () ->
                    new ManagedMemoryResource(s.cuda, ManagedMemoryResourceOptions.DEFAULTS)
                        .close()));
    all.add(
        Operation.simulated(
            "ManagedMemoryResource.ofCurrent(Cuda, MemoryLocation)",
            s ->
                () ->
                    ManagedMemoryResource.ofCurrent(s.cuda, MemoryLocation.device(s.device))
                        .close()));
    all.add(
        Operation.simulated(
            "new PinnedMemoryResource(Cuda)", s -> () -> new PinnedMemoryResource(s.cuda).close()));
    all.add(
        Operation.simulated(
            "new PinnedMemoryResource(Cuda, PinnedMemoryResourceOptions)",
            s ->
                () ->
                    new PinnedMemoryResource(s.cuda, PinnedMemoryResourceOptions.DEFAULTS)
                        .close()));
  }

  private static void addPlain(List<Operation> all) {
    all.add(nativeFunctions());
    all.add(plain("direct", MemoryResource.direct()));
    all.add(plain("async", MemoryResource.async()));
    all.add(plain("managed", MemoryResource.managed()));
    all.add(
        Operation.of(
            "PinnedAllocator.allocate(long)",
            s -> () -> s.cuda.directPinned().allocate(Stage.BYTES).close()));
  }

  private static Operation nativeFunctions() {
    return Operation.simulated(
        "NativeFunctionResource.allocate(long, CudaStream)",
        stage -> {
          MemoryResource resource = stage.nativeFunctions();
          CudaStream stream = stage.stream();
          return () -> resource.allocate(Stage.BYTES, stream).close();
        });
  }

  private static Operation plain(String variant, MemoryResource resource) {
    return Operation.of(
        "MemoryResource.allocate(long, CudaStream)",
        variant,
        stage -> {
          CudaStream stream = stage.stream();
          return () -> resource.allocate(Stage.BYTES, stream).close();
        });
  }

  private static void addAllocations(List<Operation> all) {
    for (String type : List.of("DriverPoolResource", "DeviceMemoryResource")) {
      all.add(resource(type + ".allocate(long)", r -> r.allocate(Stage.BYTES).close()));
      all.add(
          onStream(
              type + ".allocate(long, CudaStream)", (r, s) -> r.allocate(Stage.BYTES, s).close()));
    }
    all.add(
        Operation.simulated(
            "ManagedMemoryResource.allocate(long)",
            stage -> {
              var resource = stage.ended(Closer.POOL, new ManagedMemoryResource(stage.cuda));
              return () -> resource.allocate(Stage.BYTES).close();
            }));
    all.add(
        Operation.simulated(
            "ManagedMemoryResource.allocate(long, CudaStream)",
            stage -> {
              var resource = stage.ended(Closer.POOL, new ManagedMemoryResource(stage.cuda));
              CudaStream stream = stage.stream();
              return () -> resource.allocate(Stage.BYTES, stream).close();
            }));
    all.add(
        Operation.simulated(
            "PinnedMemoryResource.allocate(long)",
            stage -> {
              var resource = stage.ended(Closer.POOL, new PinnedMemoryResource(stage.cuda));
              return () -> resource.allocate(Stage.BYTES).close();
            }));
    all.add(
        Operation.simulated(
            "PinnedMemoryResource.allocate(long, CudaStream)",
            stage -> {
              var resource = stage.ended(Closer.POOL, new PinnedMemoryResource(stage.cuda));
              CudaStream stream = stage.stream();
              return () -> resource.allocate(Stage.BYTES, stream).close();
            }));
  }

  private static void addOthers(List<Operation> all) {
    all.add(
        Operation.of(
            "DriverPoolResource.deallocate(Buffer)",
            stage -> {
              DeviceMemoryResource resource = stage.resource();
              Buffer buffer = stage.ended(Closer.BUFFER, resource.allocate(Stage.BYTES));
              return () -> resource.deallocate(buffer);
            }));
    all.add(
        Operation.of(
            "DriverPoolResource.deallocate(Buffer, CudaStream)",
            stage -> {
              DeviceMemoryResource resource = stage.resource();
              Buffer buffer = stage.ended(Closer.BUFFER, resource.allocate(Stage.BYTES));
              CudaStream stream = stage.stream();
              return () -> resource.deallocate(buffer, stream);
            }));
    all.add(
        Operation.of(
            "DriverPoolResource.deallocate(long, long)",
            stage -> {
              DeviceMemoryResource resource = stage.resource();
              Buffer buffer = stage.ended(Closer.BUFFER, resource.allocate(Stage.BYTES));
              return () ->
                  byAddress(buffer, () -> resource.deallocate(buffer.address(), Stage.BYTES));
            }));
    all.add(
        Operation.of(
            "DriverPoolResource.deallocate(long, long, CudaStream)",
            stage -> {
              DeviceMemoryResource resource = stage.resource();
              Buffer buffer = stage.ended(Closer.BUFFER, resource.allocate(Stage.BYTES));
              CudaStream stream = stage.stream();
              return () ->
                  byAddress(
                      buffer, () -> resource.deallocate(buffer.address(), Stage.BYTES, stream));
            }));
    all.add(resource("DriverPoolResource.handle()", DeviceMemoryResource::handle));
    all.add(resource("DriverPoolResource.trimTo(long)", resource -> resource.trimTo(0)));
    all.add(resource("DriverPoolResource.close()", DeviceMemoryResource::close));
    all.add(
        resource(
            "DeviceMemoryResource.peerAccessibleBy()",
            resource -> resource.peerAccessibleBy().size()));
    all.add(
        resource(
            "DeviceMemoryResource.setPeerAccessibleBy(Collection)",
            resource -> resource.setPeerAccessibleBy(Set.of())));
  }

  /** An address at which no buffer is open any more is a wrong argument. */
  private static void byAddress(Buffer buffer, Runnable deallocate) {
    try {
      deallocate.run();
    } catch (IllegalArgumentException e) {
      if (!buffer.isClosed()) {
        throw e;
      }
      throw new IllegalStateException("closed by somebody else", e);
    }
  }

  private static void addAttributes(List<Operation> all) {
    all.add(resource("DriverPoolResource.attributes()", DeviceMemoryResource::attributes));
    all.add(attribute("reuseFollowEventDependencies()", a -> a.reuseFollowEventDependencies()));
    all.add(
        attribute(
            "setReuseFollowEventDependencies(boolean)",
            a -> a.setReuseFollowEventDependencies(true)));
    all.add(attribute("reuseAllowOpportunistic()", PoolAttributes::reuseAllowOpportunistic));
    all.add(
        attribute("setReuseAllowOpportunistic(boolean)", a -> a.setReuseAllowOpportunistic(true)));
    all.add(
        attribute(
            "reuseAllowInternalDependencies()", PoolAttributes::reuseAllowInternalDependencies));
    all.add(
        attribute(
            "setReuseAllowInternalDependencies(boolean)",
            a -> a.setReuseAllowInternalDependencies(true)));
    all.add(attribute("releaseThreshold()", PoolAttributes::releaseThreshold));
    all.add(attribute("setReleaseThreshold(long)", a -> a.setReleaseThreshold(0)));
    all.add(attribute("reservedMemCurrent()", PoolAttributes::reservedMemCurrent));
    all.add(attribute("reservedMemHigh()", PoolAttributes::reservedMemHigh));
    all.add(attribute("resetReservedMemHigh()", PoolAttributes::resetReservedMemHigh));
    all.add(attribute("usedMemCurrent()", PoolAttributes::usedMemCurrent));
    all.add(attribute("usedMemHigh()", PoolAttributes::usedMemHigh));
    all.add(attribute("resetUsedMemHigh()", PoolAttributes::resetUsedMemHigh));
  }

  private static Operation attribute(String method, Consumer<PoolAttributes> body) {
    return Operation.of(
        "PoolAttributes." + method,
        stage -> {
          PoolAttributes attributes = stage.resource().attributes();
          return () -> body.accept(attributes);
        });
  }

  private static Operation resource(String method, Consumer<DeviceMemoryResource> body) {
    return Operation.of(
        method,
        stage -> {
          DeviceMemoryResource resource = stage.resource();
          return () -> body.accept(resource);
        });
  }

  private static Operation onStream(
      String method, BiConsumer<DeviceMemoryResource, CudaStream> body) {
    return Operation.of(
        method,
        stage -> {
          DeviceMemoryResource resource = stage.resource();
          CudaStream stream = stage.stream();
          return () -> body.accept(resource, stream);
        });
  }
}
