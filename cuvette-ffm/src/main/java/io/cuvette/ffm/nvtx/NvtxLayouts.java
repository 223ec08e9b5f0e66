package io.cuvette.ffm.nvtx;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;
import static io.cuvette.ffm.link.Layouts.SIZE;

import java.lang.foreign.MemoryLayout;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;

/** The structures of nvToolsExt.h and its extension for memory. Immutable. */
public final class NvtxLayouts {
  static final ValueLayout.OfShort SHORT = ValueLayout.JAVA_SHORT;

  /** NVTX_VERSION: what eventAttributes_t names as its version. */
  public static final short VERSION = 3;

  /** NVTX_COLOR_ARGB. */
  public static final int COLOR_ARGB = 1;

  /** NVTX_MESSAGE_TYPE_ASCII, by which tools mean UTF-8. */
  public static final int MESSAGE_ASCII = 1;

  /** NVTX_MESSAGE_TYPE_REGISTERED. */
  public static final int MESSAGE_REGISTERED = 3;

  /** NVTX_EXT_MODULEID_MEM. */
  public static final short MEMORY_MODULE = 1;

  /** NVTX_EXT_COMPATID_MEM. */
  public static final short MEMORY_VERSION = 0x0102;

  /** NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR. */
  public static final int SUB_ALLOCATOR = 1;

  /** NVTX_MEM_TYPE_VIRTUAL_ADDRESS. */
  public static final int VIRTUAL_ADDRESS = 1;

  /** NVTX_MEM_REGION_REF_TYPE_POINTER. */
  public static final int BY_ADDRESS = 1;

  /** nvtxEventAttributes_t. */
  public static final StructLayout EVENT =
      MemoryLayout.structLayout(
          SHORT.withName("version"),
          SHORT.withName("size"),
          INT.withName("category"),
          INT.withName("colorType"),
          INT.withName("color"),
          INT.withName("payloadType"),
          INT.withName("reserved0"),
          SIZE.withName("payload"),
          INT.withName("messageType"),
          MemoryLayout.paddingLayout(Integer.BYTES),
          POINTER.withName("message"));

  /** nvtxMemVirtualRangeDesc_t. */
  public static final StructLayout RANGE =
      MemoryLayout.structLayout(SIZE.withName("size"), POINTER.withName("ptr"));

  /** nvtxMemHeapDesc_t. */
  public static final StructLayout HEAP =
      MemoryLayout.structLayout(
          SHORT.withName("extCompatID"),
          SHORT.withName("structSize"),
          INT.withName("reserved0"),
          INT.withName("usage"),
          INT.withName("type"),
          SIZE.withName("typeSpecificDescSize"),
          POINTER.withName("typeSpecificDesc"),
          INT.withName("category"),
          INT.withName("messageType"),
          POINTER.withName("message"));

  /** nvtxMemRegionsRegisterBatch_t. */
  public static final StructLayout REGISTER =
      MemoryLayout.structLayout(
          SHORT.withName("extCompatID"),
          SHORT.withName("structSize"),
          INT.withName("regionType"),
          POINTER.withName("heap"),
          SIZE.withName("regionCount"),
          SIZE.withName("regionDescElementSize"),
          POINTER.withName("regionDescElements"),
          POINTER.withName("regionHandleElementsOut"));

  /** nvtxMemRegionsUnregisterBatch_t. */
  public static final StructLayout UNREGISTER =
      MemoryLayout.structLayout(
          SHORT.withName("extCompatID"),
          SHORT.withName("structSize"),
          INT.withName("refType"),
          SIZE.withName("refCount"),
          SIZE.withName("refElementSize"),
          POINTER.withName("refElements"));

  /** nvtxExtModuleSegment_t. */
  public static final StructLayout SEGMENT =
      MemoryLayout.structLayout(
          SIZE.withName("segmentId"),
          SIZE.withName("slotCount"),
          POINTER.withName("functionSlots"));

  /** nvtxExtModuleInfo_t. */
  public static final StructLayout MODULE =
      MemoryLayout.structLayout(
          SHORT.withName("nvtxVer"),
          SHORT.withName("structSize"),
          SHORT.withName("moduleId"),
          SHORT.withName("compatId"),
          SIZE.withName("segmentsCount"),
          POINTER.withName("segments"),
          POINTER.withName("getExportFunction"),
          POINTER.withName("extInfo"));

  private NvtxLayouts() {}
}
