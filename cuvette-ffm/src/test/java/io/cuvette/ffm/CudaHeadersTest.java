package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.CaptureMode;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemAllocationType;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.MemPoolAttribute;
import io.cuvette.driver.MemRangeAttribute;
import io.cuvette.driver.MemoryType;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.driver.StreamHandle;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.LaunchMemory;
import io.cuvette.ffm.library.Versions;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NodeLayouts;
import io.cuvette.ffm.part.FfmGraphs;
import io.cuvette.ffm.part.FfmIpc;
import java.io.IOException;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.StructLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is written down of cuda.h is what it says; skipped without a C compiler or the header. */
class CudaHeadersTest {
  /** What the seam has a name for, and the name in the header. */
  private static final Object[] SEAM = {
    "CU_MEM_ALLOCATION_TYPE_PINNED",
    MemAllocationType.PINNED,
    "CU_MEM_ALLOCATION_TYPE_MANAGED",
    MemAllocationType.MANAGED,
    "CU_MEM_LOCATION_TYPE_INVALID",
    MemLocationType.NONE,
    "CU_MEM_LOCATION_TYPE_DEVICE",
    MemLocationType.DEVICE,
    "CU_MEM_LOCATION_TYPE_HOST",
    MemLocationType.HOST,
    "CU_MEM_LOCATION_TYPE_HOST_NUMA",
    MemLocationType.HOST_NUMA,
    "CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT",
    MemLocationType.HOST_NUMA_CURRENT,
    "CU_DEVICE_CPU",
    MemLocationType.HOST_AS_DEVICE,
    "CU_MEM_ACCESS_FLAGS_PROT_NONE",
    MemAccessFlags.NONE,
    "CU_MEM_ACCESS_FLAGS_PROT_READ",
    MemAccessFlags.READ,
    "CU_MEM_ACCESS_FLAGS_PROT_READWRITE",
    MemAccessFlags.READ_WRITE,
    "CU_MEM_HANDLE_TYPE_NONE",
    MemHandleType.NONE,
    "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
    MemHandleType.FILE_DESCRIPTOR,
    "CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES",
    MemPoolAttribute.REUSE_FOLLOW_EVENT_DEPENDENCIES,
    "CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC",
    MemPoolAttribute.REUSE_ALLOW_OPPORTUNISTIC,
    "CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES",
    MemPoolAttribute.REUSE_ALLOW_INTERNAL_DEPENDENCIES,
    "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD",
    MemPoolAttribute.RELEASE_THRESHOLD,
    "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT",
    MemPoolAttribute.RESERVED_MEM_CURRENT,
    "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH",
    MemPoolAttribute.RESERVED_MEM_HIGH,
    "CU_MEMPOOL_ATTR_USED_MEM_CURRENT",
    MemPoolAttribute.USED_MEM_CURRENT,
    "CU_MEMPOOL_ATTR_USED_MEM_HIGH",
    MemPoolAttribute.USED_MEM_HIGH,
    "CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY",
    MemRangeAttribute.READ_MOSTLY,
    "CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION",
    MemRangeAttribute.PREFERRED_LOCATION,
    "CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY",
    MemRangeAttribute.ACCESSED_BY,
    "CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION",
    MemRangeAttribute.LAST_PREFETCH_LOCATION,
    "CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE",
    MemRangeAttribute.PREFERRED_LOCATION_TYPE,
    "CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE",
    MemRangeAttribute.LAST_PREFETCH_LOCATION_TYPE,
    "CU_MEMORYTYPE_HOST",
    MemoryType.HOST,
    "CU_MEMORYTYPE_DEVICE",
    MemoryType.DEVICE,
    "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
    PointerAttribute.MEMORY_TYPE,
    "CU_POINTER_ATTRIBUTE_IS_MANAGED",
    PointerAttribute.IS_MANAGED,
    "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
    PointerAttribute.DEVICE_ORDINAL,
    "CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE",
    PointerAttribute.IS_LEGACY_IPC_CAPABLE,
    "CU_POINTER_ATTRIBUTE_RANGE_START_ADDR",
    PointerAttribute.RANGE_START,
    "CU_POINTER_ATTRIBUTE_RANGE_SIZE",
    PointerAttribute.RANGE_SIZE,
    "CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE",
    PointerAttribute.MEMPOOL_HANDLE,
    "(size_t)CU_STREAM_LEGACY",
    StreamHandle.LEGACY,
    "(size_t)CU_STREAM_PER_THREAD",
    StreamHandle.PER_THREAD,
  };

  /** The header that has everything compared here. */
  private static final int COMPLETE = 13_000;

  @TempDir private Path folder;

  private Map<String, Long> values(Map<String, ?> expected) throws Exception {
    StringBuilder text = new StringBuilder("#include <cuda.h>\n#include <stddef.h>\n");
    text.append("#include <stdio.h>\nint main(void) {\n");
    for (String expression : expected.keySet()) {
      text.append("printf(\"%lld\\n\", (long long)(").append(expression).append("));\n");
    }
    List<Long> values = printed(text.append("}\n").toString());
    Map<String, Long> result = new LinkedHashMap<>();
    int line = 0;
    for (String expression : expected.keySet()) {
      result.put(expression, values.get(line++));
    }
    return result;
  }

  private List<Long> printed(String program) throws IOException, InterruptedException {
    Path source = Files.writeString(folder.resolve("values.c"), program);
    Path binary =
        CCompiler.compile(source, folder.resolve("values"), "-I" + CCompiler.cudaHeaders());
    return CCompiler.run(List.of(binary.toString())).lines().map(Long::parseLong).toList();
  }

  private void assumeCompleteHeader() throws Exception {
    long version = values(Map.of("CUDA_VERSION", 0)).get("CUDA_VERSION");
    assumeTrue(version >= COMPLETE, "cuda.h is of CUDA " + Versions.text((int) version));
  }

  @Test
  void layouts_areThoseOfTheHeader() throws Exception {
    Map<String, Long> expected = new LinkedHashMap<>();
    expected.put("sizeof(CUmemLocation)", Layouts.LOCATION.byteSize());
    expected.put("_Alignof(CUmemLocation)", Layouts.LOCATION.byteAlignment());
    expected.put("offsetof(CUmemLocation, type)", offset(Layouts.LOCATION, "type"));
    expected.put("offsetof(CUmemLocation, id)", offset(Layouts.LOCATION, "id"));
    for (String handle :
        List.of("CUdeviceptr", "CUcontext", "CUstream", "CUevent", "CUgraph", "CUmemoryPool")) {
      expected.put("sizeof(" + handle + ")", Layouts.POINTER.byteSize());
    }
    for (String number : List.of("CUresult", "CUdevice", "CUlimit", "CUmem_advise", "float")) {
      expected.put("sizeof(" + number + ")", Layouts.INT.byteSize());
    }
    expected.put("sizeof(size_t)", Layouts.SIZE.byteSize());
    expected.put("sizeof(CUuuid)", CallFrame.RESULT_BYTES);
    assertThat(values(expected)).isEqualTo(expected);
  }

  @Test
  void layoutsOfPools_areThoseOfTheHeader() throws Exception {
    assumeCompleteHeader(); // the size a pool may reach came with CUDA 12.2
    Map<String, Long> expected = new LinkedHashMap<>();
    expected.put("sizeof(CUmemPoolProps)", Layouts.POOL.byteSize());
    expected.put("_Alignof(CUmemPoolProps)", Layouts.POOL.byteAlignment());
    for (MemoryLayout member : Layouts.POOL.memberLayouts()) {
      String name = member.name().orElseThrow();
      expected.put("offsetof(CUmemPoolProps, " + name + ")", offset(Layouts.POOL, name));
      expected.put("sizeof(((CUmemPoolProps *)0)->" + name + ")", member.byteSize());
    }
    expected.put("sizeof(CUmemAccessDesc)", Layouts.ACCESS.byteSize());
    expected.put("_Alignof(CUmemAccessDesc)", Layouts.ACCESS.byteAlignment());
    expected.put("offsetof(CUmemAccessDesc, location)", offset(Layouts.ACCESS, "location"));
    expected.put("offsetof(CUmemAccessDesc, flags)", offset(Layouts.ACCESS, "flags"));
    for (String handle : List.of("CUmemPoolPtrExportData", "CUipcMemHandle", "CUipcEventHandle")) {
      expected.put("sizeof(" + handle + ")", Layouts.IPC_HANDLE.byteSize());
      expected.put("_Alignof(" + handle + ")", Layouts.IPC_HANDLE.byteAlignment());
    }
    assertThat(values(expected)).isEqualTo(expected);
  }

  @Test
  void layoutOfAllocations_isThatOfTheHeader() throws Exception {
    Map<String, Long> expected = new LinkedHashMap<>();
    expected.put("sizeof(CUmemAllocationProp)", Layouts.ALLOCATION.byteSize());
    expected.put("_Alignof(CUmemAllocationProp)", Layouts.ALLOCATION.byteAlignment());
    for (MemoryLayout member : Layouts.ALLOCATION.memberLayouts()) {
      String name = member.name().orElseThrow();
      expected.put("offsetof(CUmemAllocationProp, " + name + ")", offset(Layouts.ALLOCATION, name));
      expected.put("sizeof(((CUmemAllocationProp *)0)->" + name + ")", member.byteSize());
    }
    expected.put("sizeof(CUmemGenericAllocationHandle)", Layouts.POINTER.byteSize());
    assertThat(values(expected)).isEqualTo(expected);
  }

  @Test
  void layoutOfLaunches_isThatOfTheHeader() throws Exception {
    Map<String, Long> expected = new LinkedHashMap<>();
    String[] numbers = {"gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ"};
    for (int i = 0; i < numbers.length; i++) {
      expected.put("offsetof(CUlaunchConfig, " + numbers[i] + ")", 4L * i);
    }
    expected.put("sizeof(((CUlaunchConfig *)0)->gridDimX)", 4L);
    expected.put("offsetof(CUlaunchConfig, sharedMemBytes)", LaunchMemory.SHARED);
    expected.put("offsetof(CUlaunchConfig, hStream)", LaunchMemory.STREAM);
    expected.put("offsetof(CUlaunchConfig, attrs)", LaunchMemory.ATTRIBUTES);
    expected.put("offsetof(CUlaunchConfig, numAttrs)", LaunchMemory.COUNT);
    expected.put("sizeof(((CUlaunchConfig *)0)->numAttrs)", 4L);
    expected.put("sizeof(CUlaunchConfig)", LaunchMemory.CONFIG_BYTES);
    expected.put("offsetof(CUlaunchAttribute, id)", 0L);
    expected.put("offsetof(CUlaunchAttribute, value)", LaunchMemory.VALUE);
    expected.put("sizeof(CUlaunchAttribute)", LaunchMemory.ATTRIBUTE_BYTES);
    for (String member : List.of("cooperative", "programmaticStreamSerializationAllowed")) {
      expected.put("offsetof(CUlaunchAttributeValue, " + member + ")", 0L);
      expected.put("sizeof(((CUlaunchAttributeValue *)0)->" + member + ")", 4L);
    }
    expected.put("offsetof(CUlaunchAttributeValue, clusterDim.x)", 0L);
    expected.put("offsetof(CUlaunchAttributeValue, clusterDim.y)", 4L);
    expected.put("offsetof(CUlaunchAttributeValue, clusterDim.z)", 8L);
    expected.put("CU_LAUNCH_ATTRIBUTE_COOPERATIVE", (long) LaunchMemory.COOPERATIVE);
    expected.put("CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", (long) LaunchMemory.CLUSTER_DIMENSION);
    expected.put(
        "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
        (long) LaunchMemory.PROGRAMMATIC_STREAM_SERIALIZATION);
    assertThat(values(expected)).isEqualTo(expected);
  }

  private static long offset(StructLayout structure, String member) {
    return structure.byteOffset(PathElement.groupElement(member));
  }

  @Test
  void constants_areThoseOfTheHeader() throws Exception {
    Map<String, Long> expected =
        Map.of(
            "CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS", (long) FfmIpc.LAZY_PEER_ACCESS,
            "CU_STREAM_CAPTURE_MODE_RELAXED", (long) Layouts.CAPTURE_RELAXED,
            "CU_USER_OBJECT_NO_DESTRUCTOR_SYNC", (long) FfmGraphs.NO_DESTRUCTOR_SYNC,
            "CU_GRAPH_USER_OBJECT_MOVE", (long) FfmGraphs.MOVE_USER_OBJECT);
    assertThat(values(expected)).isEqualTo(expected);
  }

  @Test
  void graphs_areThoseOfTheHeader() throws Exception {
    assumeCompleteHeader();
    Map<String, Long> expected = new LinkedHashMap<>();
    addMembers(expected, "CUDA_GRAPH_INSTANTIATE_PARAMS", Layouts.GRAPH_INSTANTIATION);
    addMembers(expected, "CUgraphExecUpdateResultInfo", Layouts.GRAPH_UPDATE);
    expected.put("sizeof(CUgraphEdgeData)", FfmGraphs.EDGE_BYTES);
    expected.put("sizeof(CUgraphConditionalHandle)", (long) Long.BYTES);
    expected.put("CU_GRAPH_COND_ASSIGN_DEFAULT", (long) FfmGraphs.ASSIGN_DEFAULT);
    for (GraphMemAttribute each : GraphMemAttribute.values()) {
      String name = each.name().replaceFirst("_", "_MEM_");
      expected.put("CU_GRAPH_MEM_ATTR_" + name, (long) each.code());
    }
    for (CaptureMode each : CaptureMode.values()) {
      expected.put("CU_STREAM_CAPTURE_MODE_" + each.name(), (long) each.code());
    }
    for (GraphNodeType each : GraphNodeType.values()) {
      expected.put("CU_GRAPH_NODE_TYPE_" + each.name(), (long) each.ordinal());
    }
    expected.put("CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH", 1L);
    expected.put("CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY", 8L);
    expected.put("CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE", 1L);
    assertThat(values(expected)).isEqualTo(expected);
  }

  @Test
  void nodes_areThoseOfTheHeader() throws Exception {
    assumeCompleteHeader();
    Map<String, Long> expected = new LinkedHashMap<>();
    addMembers(expected, "CUDA_KERNEL_NODE_PARAMS", NodeLayouts.KERNEL);
    addMembers(expected, "CUDA_MEMCPY3D", NodeLayouts.COPY);
    addMembers(expected, "CUDA_MEMSET_NODE_PARAMS", NodeLayouts.FILL);
    addMembers(expected, "CUDA_HOST_NODE_PARAMS", NodeLayouts.HOST);
    addMembers(expected, "CUDA_MEM_ALLOC_NODE_PARAMS", NodeLayouts.ALLOCATION);
    addMembers(expected, "CUgraphNodeParams", NodeLayouts.CONDITIONAL);
    expected.put("sizeof(CUlaunchAttributeValue)", NodeLayouts.ATTRIBUTE_VALUE_BYTES);
    expected.put("offsetof(CUlaunchAttributeValue, priority)", 0L);
    expected.put("CU_GRAPH_NODE_TYPE_CONDITIONAL", (long) NodeLayouts.CONDITIONAL_TYPE);
    expected.put("CU_LAUNCH_ATTRIBUTE_PRIORITY", (long) NodeLayouts.PRIORITY);
    expected.put("CU_MEMORYTYPE_HOST", (long) NodeLayouts.HOST_MEMORY);
    expected.put("CU_MEMORYTYPE_ARRAY", (long) NodeLayouts.ARRAY_MEMORY);
    expected.put("CU_MEMORYTYPE_UNIFIED", (long) NodeLayouts.UNIFIED_MEMORY);
    expected.put("CU_STREAM_SET_CAPTURE_DEPENDENCIES", (long) NodeLayouts.SET_DEPENDENCIES);
    for (GraphConditionType each : GraphConditionType.values()) {
      expected.put("CU_GRAPH_COND_TYPE_" + each.name(), (long) each.ordinal());
    }
    assertThat(values(expected)).isEqualTo(expected);
  }

  private static void addMembers(
      Map<String, Long> expected, String structure, StructLayout layout) {
    expected.put("sizeof(" + structure + ")", layout.byteSize());
    for (MemoryLayout member : layout.memberLayouts()) {
      member
          .name()
          .ifPresent(name ->
              expected.put("offsetof(%s, %s)".formatted(structure, name), offset(layout, name)));
    }
  }

  @Test
  void numbersOfTheSeam_areThoseOfTheHeader() throws Exception {
    assumeCompleteHeader();
    Map<String, Long> expected = new HashMap<>();
    for (int i = 0; i < SEAM.length; i += 2) {
      expected.put((String) SEAM[i], ((Number) SEAM[i + 1]).longValue());
    }
    assertThat(values(expected)).isEqualTo(expected);
  }

  @Test
  void statuses_areThoseOfTheHeader() throws Exception {
    assumeCompleteHeader();
    Map<String, Long> expected =
        Arrays.stream(CudaStatus.values())
            .collect(Collectors.toMap(CudaStatus::cudaName, status -> (long) status.code()));
    assertThat(values(expected)).isEqualTo(expected);
  }

  /** The libraries that other tests call have the signatures of the header, so they prove ours. */
  @Test
  void signatures_areThoseOfTheHeader() throws Exception {
    assumeCompleteHeader();
    String[] options = {
      "-shared",
      "-fPIC",
      "-DHEADERS",
      "-Werror=incompatible-pointer-types",
      "-I" + CCompiler.cudaHeaders()
    };
    CCompiler.compile(StubLibrary.source(folder), folder.resolve("checked.so"), options);
    Standin.compile(folder, options);
  }
}
