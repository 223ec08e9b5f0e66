package io.cuvette.ffm.part;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.Entry;
import io.cuvette.ffm.call.LaunchMemory;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.NativeAccess;
import io.cuvette.ffm.link.NodeLayouts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Parameters and attributes of kernel nodes. A node that somebody else made may have a function of
 * a context (CUfunction) where ours have a kernel of a library (CUkernel). Thread-safe.
 */
final class KernelNodes extends Part {
  static final MethodHandle GET =
      Libcuda.function("cuGraphKernelNodeGetParams", 12000, POINTER, SEGMENT);
  static final MethodHandle GET_ATTRIBUTE =
      Libcuda.function("cuGraphKernelNodeGetAttribute", 11000, POINTER, INT, SEGMENT);
  static final MethodHandle SET_ATTRIBUTE =
      Libcuda.function("cuGraphKernelNodeSetAttribute", 11000, POINTER, INT, SEGMENT);
  static final MethodHandle KERNEL_PARAMETER =
      Libcuda.function("cuKernelGetParamInfo", 12040, POINTER, SIZE, SEGMENT, SEGMENT);
  static final MethodHandle FUNCTION_PARAMETER =
      Libcuda.function("cuFuncGetParamInfo", 12040, POINTER, SIZE, SEGMENT, SEGMENT);

  /** Whether the driver tells the sizes of parameters. */
  private static final boolean TELLS_SIZES =
      Libcuda.has("cuKernelGetParamInfo", 12040) && Libcuda.has("cuFuncGetParamInfo", 12040);

  /** For the largest vectors that a parameter may be. */
  private static final long ALIGNMENT = 16;

  /** Handles that nodes gave which are functions of a context. */
  private static final Set<Long> FUNCTIONS = ConcurrentHashMap.newKeySet();

  KernelNodes(Entry entry) {
    super(entry);
  }

  /** A CUDA_KERNEL_NODE_PARAMS, if a node can have what is wanted. */
  MemorySegment structure(int device, GraphNodeParams.Kernel params) {
    if (params.shape().programmaticStreamSerialization()) {
      throw new CudaException(
          CudaStatus.NOT_SUPPORTED,
          "cuGraphAddKernelNode(%s)".formatted(params.shape()),
          "programmatic stream serialization (expected: none, as a node has no stream)");
    }
    return NodeStructures.kernel(
        params, entry.context(device), FUNCTIONS.contains(params.kernel()));
  }

  /** What a kernel node does. */
  GraphNodeParams get(long node) {
    MemorySegment made = Arena.ofAuto().allocate(NodeLayouts.KERNEL);
    Call.of("cuGraphKernelNodeGetParams(node=%#x)", node)
        .run(_ -> (int) GET.invokeExact(node, made), entry.enterAny());
    long kernel = made.get(POINTER, NodeLayouts.at(NodeLayouts.KERNEL, "kern"));
    boolean isFunction = kernel == 0;
    if (isFunction) {
      kernel = made.get(POINTER, NodeLayouts.at(NodeLayouts.KERNEL, "func"));
      FUNCTIONS.add(kernel);
    }
    long table = made.get(POINTER, NodeLayouts.at(NodeLayouts.KERNEL, "kernelParams"));
    return new GraphNodeParams.Kernel(
        kernel,
        NodeStructures.shape(made, clusters(node), isCooperative(node)),
        values(table, table == 0 ? List.of() : places(kernel, isFunction)));
  }

  /** The configuration of a kernel node. */
  LaunchShape shape(long node) {
    MemorySegment made = Arena.ofAuto().allocate(NodeLayouts.KERNEL);
    Call.of("cuGraphKernelNodeGetParams(node=%#x)", node)
        .run(_ -> (int) GET.invokeExact(node, made), entry.enterAny());
    return NodeStructures.shape(made, clusters(node), isCooperative(node));
  }

  /** Whether two configurations differ in what is an attribute of a node. */
  static boolean differ(LaunchShape one, LaunchShape other) {
    return one.clusterX() != other.clusterX()
        || one.clusterY() != other.clusterY()
        || one.clusterZ() != other.clusterZ()
        || one.cooperative() != other.cooperative();
  }

  /** 1 in each direction where there are no clusters, for which the driver may have 0. */
  private int[] clusters(long node) {
    MemorySegment value = attribute(node, LaunchMemory.CLUSTER_DIMENSION);
    int[] clusters = value.asSlice(0, 3L * Integer.BYTES).toArray(INT);
    for (int i = 0; i < clusters.length; i++) {
      clusters[i] = Math.max(1, clusters[i]);
    }
    return clusters;
  }

  private boolean isCooperative(long node) {
    return attribute(node, LaunchMemory.COOPERATIVE).get(INT, 0) != 0;
  }

  int priority(long node) {
    return attribute(node, NodeLayouts.PRIORITY).get(INT, 0);
  }

  private MemorySegment attribute(long node, int attribute) {
    MemorySegment value = room();
    Call.of("cuGraphKernelNodeGetAttribute(node=%#x, attribute=%d)", node, attribute)
        .run(_ -> (int) GET_ATTRIBUTE.invokeExact(node, attribute, value), entry.enterAny());
    return value;
  }

  /** A CUlaunchAttributeValue. */
  private static MemorySegment room() {
    return Arena.ofAuto().allocate(NodeLayouts.ATTRIBUTE_VALUE_BYTES, POINTER.byteAlignment());
  }

  /** Gives a node the clusters and the cooperation of a configuration. */
  void setAttributes(int device, long node, LaunchShape shape) {
    set(
        device,
        node,
        LaunchMemory.CLUSTER_DIMENSION,
        shape.clusterX(),
        shape.clusterY(),
        shape.clusterZ());
    set(device, node, LaunchMemory.COOPERATIVE, shape.cooperative() ? 1 : 0);
  }

  void setPriority(long node, int priority) {
    MemorySegment value = room();
    value.set(INT, 0, priority);
    Call.of("cuGraphKernelNodeSetAttribute(node=%#x, priority=%d)", node, priority)
        .run(
            _ -> (int) SET_ATTRIBUTE.invokeExact(node, NodeLayouts.PRIORITY, value),
            entry.enterAny());
  }

  private void set(int device, long node, int attribute, int... numbers) {
    MemorySegment value = room();
    for (int i = 0; i < numbers.length; i++) {
      value.setAtIndex(INT, i, numbers[i]);
    }
    Call.of(
            "cuGraphKernelNodeSetAttribute(node=%#x, attribute=%d, device=%d)",
            node, attribute, device)
        .run(_ -> (int) SET_ATTRIBUTE.invokeExact(node, attribute, value), enter(device));
  }

  /** Where the parameters of a kernel lie; none if the driver does not tell. */
  private List<KernelParameter> places(long kernel, boolean isFunction) {
    List<KernelParameter> places = new ArrayList<>();
    if (TELLS_SIZES) {
      KernelParameter next = place(kernel, isFunction, 0);
      while (next != null) {
        places.add(next);
        next = place(kernel, isFunction, places.size());
      }
    }
    return places;
  }

  /** The driver counts no parameters; it refuses what is behind the last one. */
  private @Nullable KernelParameter place(long kernel, boolean isFunction, long index) {
    MethodHandle function = isFunction ? FUNCTION_PARAMETER : KERNEL_PARAMETER;
    MemorySegment offset = Arena.ofAuto().allocate(SIZE);
    MemorySegment size = Arena.ofAuto().allocate(SIZE);
    try {
      Call.of("cuKernelGetParamInfo(kernel=%#x, index=%d)", kernel, index)
          .run(_ -> (int) function.invokeExact(kernel, index, offset, size), entry.enterAny());
    } catch (CudaException e) {
      if (e.status() == CudaStatus.INVALID_VALUE) {
        return null;
      }
      throw e;
    }
    return new KernelParameter(offset.get(SIZE, 0), size.get(SIZE, 0));
  }

  /** A copy of the values that a node has. */
  private static LaunchParameters values(long table, List<KernelParameter> places) {
    long end = 0;
    for (KernelParameter place : places) {
      end = Math.max(end, place.offset() + place.size());
    }
    MemorySegment values = Arena.ofAuto().allocate(end, ALIGNMENT);
    MemorySegment addresses = NativeAccess.memory(table, places.size() * POINTER.byteSize());
    for (int i = 0; i < places.size(); i++) {
      KernelParameter place = places.get(i);
      long value = addresses.getAtIndex(POINTER, i);
      values
          .asSlice(place.offset(), place.size())
          .copyFrom(NativeAccess.memory(value, place.size()));
    }
    return new LaunchParameters(values, places);
  }
}
