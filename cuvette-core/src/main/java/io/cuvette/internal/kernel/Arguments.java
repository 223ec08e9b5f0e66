package io.cuvette.internal.kernel;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.UsedMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of a kernel in native memory, and the launch with them: each buffer among them is
 * held, and known to be used by the stream, as in a copy. A launch needs no Java heap. Not
 * thread-safe while it is packed.
 */
final class Arguments {
  private static final Memory[] NONE = {};

  private final OpenKernel kernel;
  private @Nullable LaunchParameters parameters;

  /** The buffers among the arguments. */
  private Memory[] buffers = NONE;

  private int count;

  Arguments(OpenKernel kernel) {
    this.kernel = kernel;
    List<KernelParameter> places = kernel.places();
    if (places != null) {
      this.parameters = room(places);
    }
  }

  private static LaunchParameters room(List<KernelParameter> places) {
    long bytes = places.stream().mapToLong(place -> place.offset() + place.size()).max().orElse(0);
    MemorySegment values =
        bytes == 0 ? MemorySegment.NULL : Arena.ofAuto().allocate(bytes, 2 * Long.BYTES);
    return new LaunchParameters(values, places);
  }

  /** Checks the arguments and writes their values. */
  void pack(@Nullable Object[] given, ArgumentReader reader) {
    List<KernelParameter> known = kernel.places();
    @Nullable Object[] arguments = given;
    if (known == null) {
      arguments = given.clone(); // read twice
      parameters = room(ArgumentValues.places(arguments, reader));
    } else if (known.size() != arguments.length) {
      throw new IllegalArgumentException(
          "%d arguments (expected: %d, the parameters of %s of %s bytes)"
              .formatted(
                  arguments.length,
                  known.size(),
                  kernel,
                  known.stream().map(KernelParameter::size).toList()));
    }
    if (buffers.length < arguments.length) {
      buffers = new Memory[arguments.length];
    }
    LaunchParameters into = packed();
    for (int i = 0; i < arguments.length; i++) {
      Object argument = reader.read(arguments[i]); // once: the array is the caller's
      ArgumentValues.put(into.values(), into.places().get(i), i, argument);
      if (argument instanceof Memory memory) {
        if (memory.on().session() != kernel.session()) {
          throw new IllegalArgumentException(
              "argument %d: %s belongs to another Cuda".formatted(i, memory));
        }
        memory.checkOpen();
        buffers[count++] = memory;
      }
    }
  }

  private LaunchParameters packed() {
    LaunchParameters known = parameters;
    if (known == null) {
      throw new IllegalStateException("not packed");
    }
    return known;
  }

  /** Forgets the buffers of a launch. */
  void clear() {
    Arrays.fill(buffers, 0, count, null);
    count = 0;
  }

  /** The device on which they are launched, after what can be said without it. */
  Device deviceOf(OpenStream stream) {
    if (stream.on().session() != kernel.session()) {
      throw new IllegalArgumentException(
          "%s belongs to another Cuda than the stream, which is of %s"
              .formatted(kernel, stream.on()));
    }
    stream.checkOf(kernel.session());
    kernel.module.ending.checkOpen();
    return stream.on();
  }

  /** Launches; nobody packs anew meanwhile. */
  void launch(OpenStream stream, LaunchShape shape) {
    Device device = stream.on();
    checkAccess(device);
    kernel.module.ending.hold();
    try {
      hold(stream, shape, device);
    } finally {
      kernel.module.unhold();
    }
  }

  private void hold(OpenStream stream, LaunchShape shape, Device device) {
    int held = 0;
    try {
      while (held < count) {
        buffers[held].hold();
        held++;
      }
      CudaDriver driver = stream.holdToQueue();
      try {
        Capture before = stream.state.capture();
        use(stream.state, before);
        driver
            .kernels()
            .launchKernel(device.id(), stream.state.handle, kernel.handle, shape, packed());
        if (stream.state.isExposed()) {
          Capture after = stream.state.capture();
          if (!Objects.equals(before, after)) {
            use(stream.state, after); // a capture has begun before the launch, or ended
          }
        }
      } catch (CudaException e) {
        throw kernel.module.explained(e, device);
      } finally {
        stream.unhold();
      }
    } finally {
      while (held > 0) {
        buffers[--held].unhold();
      }
    }
  }

  /** Has a node of a graph launch with them; nobody packs anew meanwhile. */
  <T> T inGraph(Device device, Consumer<UsedMemory> use, Function<LaunchParameters, T> node) {
    checkAccess(device);
    kernel.module.ending.hold();
    int held = 0;
    try {
      while (held < count) {
        buffers[held].hold();
        held++;
      }
      use.accept(kernel.module.ending);
      for (int i = 0; i < count; i++) {
        use.accept(buffers[i].block());
      }
      return node.apply(packed());
    } catch (CudaException e) {
      throw kernel.module.explained(e, device);
    } finally {
      while (held > 0) {
        buffers[--held].unhold();
      }
      kernel.module.unhold();
    }
  }

  private void use(DriverStream stream, @Nullable Capture capture) {
    kernel.module.ending.useHeld(stream, capture);
    for (int i = 0; i < count; i++) {
      buffers[i].block().useHeld(stream, capture);
    }
  }

  private void checkAccess(Device device) {
    for (int i = 0; i < count; i++) {
      DeviceAccess.check(buffers[i], device, kernel);
    }
  }
}
