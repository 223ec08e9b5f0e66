package io.cuvette.examples;

import io.cuvette.Cuda;
import java.util.List;
import java.util.Optional;

/**
 * An example program. Immutable.
 *
 * @param name what it is called on the command line
 * @param summary what it shows
 * @param program the program
 */
public record Example(String name, String summary, Program program) {

  /** What an example runs. */
  @FunctionalInterface
  public interface Program {

    /**
     * Runs the program and frees everything it allocated.
     *
     * @throws WrongResultException if a result is wrong
     */
    void run(Cuda cuda, Output out);
  }

  /** All examples. */
  public static final List<Example> ALL =
      List.of(
          new Example("memory-pool", "from 400 bytes to 512 and back to 0", MemoryPoolExample::run),
          new Example("limits", "limits in bytes and as a fraction", LimitsExample::run),
          new Example("devices", "devices, and which is current", DevicesExample::run),
          new Example(
              "custom-allocator",
              "your own: a lambda, managed memory, C functions, none",
              CustomAllocatorExample::run),
          new Example(
              "async-pool", "stream-ordered memory from the driver's pools", AsyncPoolExample::run),
          new Example("pinned", "page-locked host memory and its pool", PinnedExample::run),
          new Example(
              "pinned-resource",
              "pools of page-locked memory, also on a NUMA node",
              PinnedResourceExample::run),
          new Example("ipc", "device memory shared with a second JVM", IpcExample::run),
          new Example(
              "managed", "one address for host and devices, with advice", ManagedExample::run),
          new Example(
              "growable", "a cache that grows by the token at one address", GrowableExample::run),
          new Example("arrays", "arrays, views, and one text for both sides", ArraysExample::run),
          new Example(
              "transfers",
              "data of Java to the device and back, also row by row",
              TransfersExample::run),
          new Example(
              "dlpack", "arrays handed to other libraries and back, uncopied", DlpackExample::run),
          new Example(
              "concurrent-streams",
              "random matrices and products on two streams",
              ConcurrentStreamsExample::run),
          new Example(
              "memory-optimization",
              "a hundred products in the memory of two",
              MemoryOptimizationExample::run),
          new Example("streams", "work on several streams, in order", StreamsExample::run),
          new Example("event-timing", "how long products and copies take", EventTimingExample::run),
          new Example("events", "order and time with events", EventsExample::run),
          new Example("kernel", "a kernel from its code to its results", KernelExample::run),
          new Example("graph", "work captured once and launched often", GraphExample::run),
          new Example(
              "graph-memory", "one graph a batch size, all in one memory", GraphMemoryExample::run),
          new Example(
              "memory-info", "where the memory is, and giving it back", MemoryInfoExample::run),
          new Example("profile", "marks, ranges and names for profilers", ProfileExample::run));

  /** The example of a name, if there is one. */
  public static Optional<Example> find(String name) {
    return ALL.stream().filter(example -> example.name.equals(name)).findFirst();
  }
}
