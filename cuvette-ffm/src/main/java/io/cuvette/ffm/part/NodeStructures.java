package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SIZE;
import static io.cuvette.ffm.link.NodeLayouts.at;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.ffm.call.Contexts;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import io.cuvette.ffm.link.NodeLayouts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What nodes of graphs do, as C structures and back. Stateless. */
final class NodeStructures {
  private NodeStructures() {}

  /**
   * A CUDA_KERNEL_NODE_PARAMS.
   *
   * @param function whether the handle is one of a context, CUfunction, and not CUkernel
   */
  static MemorySegment kernel(GraphNodeParams.Kernel params, long context, boolean function) {
    MemorySegment made = empty(NodeLayouts.KERNEL.byteSize());
    LaunchShape shape = params.shape();
    made.set(POINTER, at(NodeLayouts.KERNEL, function ? "func" : "kern"), params.kernel());
    int[] extents = {
      shape.gridX(),
      shape.gridY(),
      shape.gridZ(),
      shape.blockX(),
      shape.blockY(),
      shape.blockZ(),
      shape.dynamicSharedBytes()
    };
    long first = at(NodeLayouts.KERNEL, "gridDimX");
    for (int i = 0; i < extents.length; i++) {
      made.set(INT, first + (long) i * Integer.BYTES, extents[i]);
    }
    made.set(
        POINTER, at(NodeLayouts.KERNEL, "kernelParams"), params.parameters().table().address());
    made.set(POINTER, at(NodeLayouts.KERNEL, "ctx"), context);
    return made;
  }

  /** The configuration in a CUDA_KERNEL_NODE_PARAMS, with what its attributes say. */
  static LaunchShape shape(MemorySegment kernel, int[] clusters, boolean isCooperative) {
    long first = at(NodeLayouts.KERNEL, "gridDimX");
    int[] extents = kernel.asSlice(first, 7L * Integer.BYTES).toArray(INT);
    return new LaunchShape(
        extents[0],
        extents[1],
        extents[2],
        extents[3],
        extents[4],
        extents[5],
        clusters[0],
        clusters[1],
        clusters[2],
        extents[6],
        isCooperative,
        false);
  }

  /** A CUDA_MEMCPY3D of one row between any memory. */
  static MemorySegment copy(GraphNodeParams.Copy params) {
    return copy(
        new BoxCopy(
            new BoxCopy.Side(params.target(), 0, 0),
            new BoxCopy.Side(params.source(), 0, 0),
            params.bytes(),
            1,
            1));
  }

  /** A CUDA_MEMCPY3D between any memory. */
  static MemorySegment copy(BoxCopy params) {
    MemorySegment made = empty(NodeLayouts.COPY.byteSize());
    side(made, "src", params.source());
    side(made, "dst", params.target());
    made.set(SIZE, at(NodeLayouts.COPY, "WidthInBytes"), params.width());
    made.set(SIZE, at(NodeLayouts.COPY, "Height"), params.height());
    made.set(SIZE, at(NodeLayouts.COPY, "Depth"), params.depth());
    return made;
  }

  private static void side(MemorySegment made, String name, BoxCopy.Side side) {
    made.set(INT, at(NodeLayouts.COPY, name + "MemoryType"), NodeLayouts.UNIFIED_MEMORY);
    made.set(POINTER, at(NodeLayouts.COPY, name + "Device"), side.address());
    made.set(SIZE, at(NodeLayouts.COPY, name + "Pitch"), side.pitch());
    made.set(SIZE, at(NodeLayouts.COPY, name + "Height"), side.rows());
  }

  static GraphNodeParams copy(MemorySegment made) {
    long rows = made.get(SIZE, at(NodeLayouts.COPY, "Height"));
    long layers = made.get(SIZE, at(NodeLayouts.COPY, "Depth"));
    if (rows != 1 || layers != 1 || isArray(made, "src") || isArray(made, "dst")) {
      return new GraphNodeParams.Other(GraphNodeType.MEMCPY);
    }
    return new GraphNodeParams.Copy(
        address(made, "dst"),
        address(made, "src"),
        made.get(SIZE, at(NodeLayouts.COPY, "WidthInBytes")));
  }

  private static boolean isArray(MemorySegment copy, String side) {
    return copy.get(INT, at(NodeLayouts.COPY, side + "MemoryType")) == NodeLayouts.ARRAY_MEMORY;
  }

  /** Where one side of a copy of one row starts. */
  private static long address(MemorySegment copy, String side) {
    int type = copy.get(INT, at(NodeLayouts.COPY, side + "MemoryType"));
    String base = type == NodeLayouts.HOST_MEMORY ? "Host" : "Device";
    long row =
        copy.get(SIZE, at(NodeLayouts.COPY, side + "Z"))
                * copy.get(SIZE, at(NodeLayouts.COPY, side + "Height"))
            + copy.get(SIZE, at(NodeLayouts.COPY, side + "Y"));
    return copy.get(POINTER, at(NodeLayouts.COPY, side + base))
        + row * copy.get(SIZE, at(NodeLayouts.COPY, side + "Pitch"))
        + copy.get(SIZE, at(NodeLayouts.COPY, side + "XInBytes"));
  }

  /** A CUDA_MEMSET_NODE_PARAMS of one row. */
  static MemorySegment fill(GraphNodeParams.Fill params) {
    int bits = Byte.SIZE * params.elementBytes();
    int mask = bits > 0 && bits < Integer.SIZE ? (1 << bits) - 1 : -1;
    MemorySegment made = empty(NodeLayouts.FILL.byteSize());
    made.set(POINTER, at(NodeLayouts.FILL, "dst"), params.target());
    made.set(INT, at(NodeLayouts.FILL, "value"), params.value() & mask);
    made.set(INT, at(NodeLayouts.FILL, "elementSize"), params.elementBytes());
    made.set(SIZE, at(NodeLayouts.FILL, "width"), params.count());
    made.set(SIZE, at(NodeLayouts.FILL, "height"), 1);
    return made;
  }

  static GraphNodeParams fill(MemorySegment made) {
    if (made.get(SIZE, at(NodeLayouts.FILL, "height")) != 1) {
      return new GraphNodeParams.Other(GraphNodeType.MEMSET);
    }
    return new GraphNodeParams.Fill(
        made.get(POINTER, at(NodeLayouts.FILL, "dst")),
        made.get(INT, at(NodeLayouts.FILL, "value")),
        made.get(INT, at(NodeLayouts.FILL, "elementSize")),
        made.get(SIZE, at(NodeLayouts.FILL, "width")));
  }

  /** A CUDA_HOST_NODE_PARAMS that runs a Java function. */
  static MemorySegment host(long number) {
    MemorySegment made = empty(NodeLayouts.HOST.byteSize());
    made.set(POINTER, at(NodeLayouts.HOST, "fn"), HostFunctions.ENTRY);
    made.set(POINTER, at(NodeLayouts.HOST, "userData"), number);
    return made;
  }

  /** The number of the Java function that a CUDA_HOST_NODE_PARAMS runs; 0 if it is none. */
  static long function(MemorySegment host) {
    boolean isJava = host.get(POINTER, at(NodeLayouts.HOST, "fn")) == HostFunctions.ENTRY;
    return isJava ? host.get(POINTER, at(NodeLayouts.HOST, "userData")) : 0;
  }

  /** A CUDA_MEM_ALLOC_NODE_PARAMS, followed by who else has access. */
  static MemorySegment allocation(GraphNodeParams.Allocation params, Contexts contexts) {
    int owner = contexts.handle(params.device());
    int[] peers = params.peers().stream().mapToInt(contexts::handle).toArray();
    int[] access = new int[peers.length];
    Arrays.fill(access, MemAccessFlags.READ_WRITE);
    MemorySegment properties =
        PoolStructures.properties(
            new PoolProperties(MemAllocationType.PINNED, 0, MemLocationType.DEVICE, 0, 0), owner);
    MemorySegment accesses = PoolStructures.accesses(MemLocationType.DEVICE, peers, access);
    long end = NodeLayouts.ALLOCATION.byteSize();
    MemorySegment made = empty(end + accesses.byteSize());
    made.asSlice(0, properties.byteSize()).copyFrom(properties);
    made.asSlice(end).copyFrom(accesses);
    if (peers.length > 0) {
      made.set(POINTER, at(NodeLayouts.ALLOCATION, "accessDescs"), made.address() + end);
    }
    made.set(SIZE, at(NodeLayouts.ALLOCATION, "accessDescCount"), peers.length);
    made.set(SIZE, at(NodeLayouts.ALLOCATION, "bytesize"), params.bytes());
    return made;
  }

  /** What an allocation node gives, with a device given by its place in the list. */
  static GraphNodeParams allocation(MemorySegment made, Contexts contexts) {
    long location = at(NodeLayouts.ALLOCATION, "poolProps") + at(Layouts.POOL, "location");
    if (made.get(INT, location) != MemLocationType.DEVICE) {
      return new GraphNodeParams.Other(GraphNodeType.MEM_ALLOC);
    }
    return new GraphNodeParams.Allocation(
        contexts.ordinal(made.get(INT, location + Integer.BYTES)),
        made.get(SIZE, at(NodeLayouts.ALLOCATION, "bytesize")),
        peers(made, contexts),
        address(made));
  }

  /** The address that an allocation node has. */
  static long address(MemorySegment allocation) {
    return allocation.get(POINTER, at(NodeLayouts.ALLOCATION, "dptr"));
  }

  private static List<Integer> peers(MemorySegment allocation, Contexts contexts) {
    long count = allocation.get(SIZE, at(NodeLayouts.ALLOCATION, "accessDescCount"));
    long bytes = Layouts.ACCESS.byteSize();
    MemorySegment accesses =
        NativeAccess.memory(
            allocation.get(POINTER, at(NodeLayouts.ALLOCATION, "accessDescs")), count * bytes);
    List<Integer> peers = new ArrayList<>();
    for (long i = 0; i < count; i++) {
      if (accesses.get(INT, i * bytes) == MemLocationType.DEVICE) {
        peers.add(contexts.ordinal(accesses.get(INT, i * bytes + Integer.BYTES)));
      }
    }
    return peers;
  }

  /** A CUgraphNodeParams of a conditional node. */
  static MemorySegment conditional(GraphNodeParams.Conditional params, long context) {
    MemorySegment made = empty(NodeLayouts.CONDITIONAL.byteSize());
    made.set(INT, 0, NodeLayouts.CONDITIONAL_TYPE);
    made.set(SIZE, at(NodeLayouts.CONDITIONAL, "conditional.handle"), params.condition());
    int type =
        switch (params.conditionType()) {
          case IF -> 0;
          case WHILE -> 1;
          case SWITCH -> 2;
        };
    made.set(INT, at(NodeLayouts.CONDITIONAL, "conditional.type"), type);
    made.set(INT, at(NodeLayouts.CONDITIONAL, "conditional.size"), params.size());
    made.set(POINTER, at(NodeLayouts.CONDITIONAL, "conditional.ctx"), context);
    return made;
  }

  /** The graphs of a conditional node that was made. */
  static List<Long> bodies(MemorySegment conditional, int count) {
    long address = conditional.get(POINTER, at(NodeLayouts.CONDITIONAL, "conditional.phGraph_out"));
    long[] bodies =
        NativeAccess.memory(address, (long) count * POINTER.byteSize()).toArray(POINTER);
    return Arrays.stream(bodies).boxed().toList();
  }

  /** Handles, one after the other; NULL for none. */
  static MemorySegment handles(long[] handles) {
    return handles.length == 0 ? MemorySegment.NULL : Arena.ofAuto().allocateFrom(POINTER, handles);
  }

  private static MemorySegment empty(long bytes) {
    return Arena.ofAuto().allocate(bytes, POINTER.byteAlignment());
  }
}
