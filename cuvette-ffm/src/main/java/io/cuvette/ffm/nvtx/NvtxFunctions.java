package io.cuvette.ffm.nvtx;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SEGMENT;

import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;

/**
 * The functions of one library, bound once. One that it lacks does nothing and returns 0, as where
 * no tool is attached. Immutable.
 */
final class NvtxFunctions {
  final MethodHandle domainCreate;
  final MethodHandle domainNameCategory;
  final MethodHandle domainRegisterString;
  final MethodHandle domainMark;
  final MethodHandle domainRangePush;
  final MethodHandle domainRangePop;
  final MethodHandle domainRangeStart;
  final MethodHandle domainRangeEnd;
  final MethodHandle nameDevice;
  final MethodHandle nameStream;
  final MethodHandle memHeapRegister;
  final MethodHandle memHeapUnregister;
  final MethodHandle memRegionsRegister;
  final MethodHandle memRegionsUnregister;

  private final NvtxLibrary library;

  NvtxFunctions(NvtxLibrary library) {
    this.library = library;
    domainCreate = returning("nvtxDomainCreateA", POINTER, SEGMENT);
    domainNameCategory = of("nvtxDomainNameCategoryA", POINTER, INT, SEGMENT);
    domainRegisterString = returning("nvtxDomainRegisterStringA", POINTER, POINTER, SEGMENT);
    domainMark = of("nvtxDomainMarkEx", POINTER, SEGMENT);
    domainRangePush = returning("nvtxDomainRangePushEx", INT, POINTER, SEGMENT);
    domainRangePop = returning("nvtxDomainRangePop", INT, POINTER);
    domainRangeStart = returning("nvtxDomainRangeStartEx", POINTER, POINTER, SEGMENT);
    domainRangeEnd = of("nvtxDomainRangeEnd", POINTER, POINTER);
    nameDevice = of("nvtxNameCuDeviceA", INT, SEGMENT);
    nameStream = of("nvtxNameCuStreamA", POINTER, SEGMENT);
    memHeapRegister = returning("nvtxMemHeapRegister", POINTER, POINTER, SEGMENT);
    memHeapUnregister = of("nvtxMemHeapUnregister", POINTER, POINTER);
    memRegionsRegister = of("nvtxMemRegionsRegister", POINTER, SEGMENT);
    memRegionsUnregister = of("nvtxMemRegionsUnregister", POINTER, SEGMENT);
  }

  private MethodHandle of(String name, MemoryLayout... parameters) {
    return bind(name, FunctionDescriptor.ofVoid(parameters));
  }

  private MethodHandle returning(String name, MemoryLayout result, MemoryLayout... parameters) {
    return bind(name, FunctionDescriptor.of(result, parameters));
  }

  private MethodHandle bind(String name, FunctionDescriptor type) {
    long address = library.find(name);
    return address == 0
        ? MethodHandles.empty(type.toMethodType())
        : NativeAccess.function(MemorySegment.ofAddress(address), type);
  }
}
