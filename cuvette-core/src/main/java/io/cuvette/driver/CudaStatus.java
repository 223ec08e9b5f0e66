package io.cuvette.driver;

import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** The results a driver call can have, with NVIDIA's names and numbers (CUresult). Immutable. */
public enum CudaStatus {
  /** CUresult 0: no error. */
  SUCCESS(0, "no error"),
  /** CUresult 1: an argument is out of its range. */
  INVALID_VALUE(1, "an argument is out of its range"),
  /** CUresult 2: out of memory. */
  OUT_OF_MEMORY(2, "out of memory"),
  /** CUresult 3: the driver is not initialized. */
  NOT_INITIALIZED(3, "the driver is not initialized"),
  /** CUresult 4: the driver is shutting down. */
  DEINITIALIZED(4, "the driver is shutting down"),
  /** CUresult 5: profiler disabled. */
  PROFILER_DISABLED(5, "profiler disabled"),
  /** CUresult 6: profiler not initialized. */
  PROFILER_NOT_INITIALIZED(6, "profiler not initialized"),
  /** CUresult 7: profiler already started. */
  PROFILER_ALREADY_STARTED(7, "profiler already started"),
  /** CUresult 8: profiler already stopped. */
  PROFILER_ALREADY_STOPPED(8, "profiler already stopped"),
  /** CUresult 34: the library is a stub of the toolkit, not the driver. */
  STUB_LIBRARY(34, "the library is a stub of the toolkit, not the driver"),
  /** CUresult 36: the call needs a newer driver. */
  CALL_REQUIRES_NEWER_DRIVER(36, "the call needs a newer driver"),
  /** CUresult 46: device unavailable. */
  DEVICE_UNAVAILABLE(46, "device unavailable"),
  /** CUresult 100: no CUDA device. */
  NO_DEVICE(100, "no CUDA device"),
  /** CUresult 101: no such device. */
  INVALID_DEVICE(101, "no such device"),
  /** CUresult 102: device not licensed. */
  DEVICE_NOT_LICENSED(102, "device not licensed"),
  /** CUresult 200: invalid image. */
  INVALID_IMAGE(200, "invalid image"),
  /** CUresult 201: no usable context. */
  INVALID_CONTEXT(201, "no usable context"),
  /** CUresult 202: context already current. */
  CONTEXT_ALREADY_CURRENT(202, "context already current"),
  /** CUresult 205: map failed. */
  MAP_FAILED(205, "map failed"),
  /** CUresult 206: unmap failed. */
  UNMAP_FAILED(206, "unmap failed"),
  /** CUresult 207: array is mapped. */
  ARRAY_IS_MAPPED(207, "array is mapped"),
  /** CUresult 208: already mapped. */
  ALREADY_MAPPED(208, "already mapped"),
  /** CUresult 209: no binary for GPU. */
  NO_BINARY_FOR_GPU(209, "no binary for GPU"),
  /** CUresult 210: already acquired. */
  ALREADY_ACQUIRED(210, "already acquired"),
  /** CUresult 211: not mapped. */
  NOT_MAPPED(211, "not mapped"),
  /** CUresult 212: not mapped as array. */
  NOT_MAPPED_AS_ARRAY(212, "not mapped as array"),
  /** CUresult 213: not mapped as pointer. */
  NOT_MAPPED_AS_POINTER(213, "not mapped as pointer"),
  /** CUresult 214: ECC uncorrectable. */
  ECC_UNCORRECTABLE(214, "ECC uncorrectable"),
  /** CUresult 215: unsupported limit. */
  UNSUPPORTED_LIMIT(215, "unsupported limit"),
  /** CUresult 216: context already in use. */
  CONTEXT_ALREADY_IN_USE(216, "context already in use"),
  /** CUresult 217: the devices cannot access each other. */
  PEER_ACCESS_UNSUPPORTED(217, "the devices cannot access each other"),
  /** CUresult 218: invalid PTX. */
  INVALID_PTX(218, "invalid PTX"),
  /** CUresult 219: invalid graphics context. */
  INVALID_GRAPHICS_CONTEXT(219, "invalid graphics context"),
  /** CUresult 220: NVLink uncorrectable. */
  NVLINK_UNCORRECTABLE(220, "NVLink uncorrectable"),
  /** CUresult 221: JIT compiler not found. */
  JIT_COMPILER_NOT_FOUND(221, "JIT compiler not found"),
  /** CUresult 222: unsupported PTX version. */
  UNSUPPORTED_PTX_VERSION(222, "unsupported PTX version"),
  /** CUresult 223: JIT compilation disabled. */
  JIT_COMPILATION_DISABLED(223, "JIT compilation disabled"),
  /** CUresult 224: unsupported exec affinity. */
  UNSUPPORTED_EXEC_AFFINITY(224, "unsupported exec affinity"),
  /** CUresult 225: unsupported devside sync. */
  UNSUPPORTED_DEVSIDE_SYNC(225, "unsupported devside sync"),
  /** CUresult 226: contained. */
  CONTAINED(226, "contained"),
  /** CUresult 300: invalid source. */
  INVALID_SOURCE(300, "invalid source"),
  /** CUresult 301: file not found. */
  FILE_NOT_FOUND(301, "file not found"),
  /** CUresult 302: a symbol is missing in a shared library. */
  SHARED_OBJECT_SYMBOL_NOT_FOUND(302, "a symbol is missing in a shared library"),
  /** CUresult 303: a shared library failed to load. */
  SHARED_OBJECT_INIT_FAILED(303, "a shared library failed to load"),
  /** CUresult 304: a call of the operating system failed. */
  OPERATING_SYSTEM(304, "a call of the operating system failed"),
  /** CUresult 400: the handle is not valid. */
  INVALID_HANDLE(400, "the handle is not valid"),
  /** CUresult 401: the object is not in the state this needs. */
  ILLEGAL_STATE(401, "the object is not in the state this needs"),
  /** CUresult 402: lossy query. */
  LOSSY_QUERY(402, "lossy query"),
  /** CUresult 500: not found. */
  NOT_FOUND(500, "not found"),
  /** CUresult 600: work is still running. */
  NOT_READY(600, "work is still running"),
  /** CUresult 700: the device accessed memory that is not there; the context is lost. */
  ILLEGAL_ADDRESS(700, "the device accessed memory that is not there; the context is lost"),
  /** CUresult 701: launch out of resources. */
  LAUNCH_OUT_OF_RESOURCES(701, "launch out of resources"),
  /** CUresult 702: launch timeout. */
  LAUNCH_TIMEOUT(702, "launch timeout"),
  /** CUresult 703: launch incompatible texturing. */
  LAUNCH_INCOMPATIBLE_TEXTURING(703, "launch incompatible texturing"),
  /** CUresult 704: peer access is enabled already. */
  PEER_ACCESS_ALREADY_ENABLED(704, "peer access is enabled already"),
  /** CUresult 705: peer access is not enabled. */
  PEER_ACCESS_NOT_ENABLED(705, "peer access is not enabled"),
  /** CUresult 708: primary context active. */
  PRIMARY_CONTEXT_ACTIVE(708, "primary context active"),
  /** CUresult 709: the context is gone. */
  CONTEXT_IS_DESTROYED(709, "the context is gone"),
  /** CUresult 710: assert. */
  ASSERT(710, "assert"),
  /** CUresult 711: too many peers. */
  TOO_MANY_PEERS(711, "too many peers"),
  /** CUresult 712: the host memory is registered already. */
  HOST_MEMORY_ALREADY_REGISTERED(712, "the host memory is registered already"),
  /** CUresult 713: the host memory is not registered. */
  HOST_MEMORY_NOT_REGISTERED(713, "the host memory is not registered"),
  /** CUresult 714: hardware stack error. */
  HARDWARE_STACK_ERROR(714, "hardware stack error"),
  /** CUresult 715: illegal instruction. */
  ILLEGAL_INSTRUCTION(715, "illegal instruction"),
  /** CUresult 716: misaligned address. */
  MISALIGNED_ADDRESS(716, "misaligned address"),
  /** CUresult 717: invalid address space. */
  INVALID_ADDRESS_SPACE(717, "invalid address space"),
  /** CUresult 718: invalid program counter. */
  INVALID_PC(718, "invalid program counter"),
  /** CUresult 719: a kernel failed; the context is lost. */
  LAUNCH_FAILED(719, "a kernel failed; the context is lost"),
  /** CUresult 720: cooperative launch too large. */
  COOPERATIVE_LAUNCH_TOO_LARGE(720, "cooperative launch too large"),
  /** CUresult 721: tensor memory leak. */
  TENSOR_MEMORY_LEAK(721, "tensor memory leak"),
  /** CUresult 800: not permitted. */
  NOT_PERMITTED(800, "not permitted"),
  /** CUresult 801: not supported here. */
  NOT_SUPPORTED(801, "not supported here"),
  /** CUresult 802: system not ready. */
  SYSTEM_NOT_READY(802, "system not ready"),
  /** CUresult 803: the driver does not fit. */
  SYSTEM_DRIVER_MISMATCH(803, "the driver does not fit"),
  /** CUresult 804: compat not supported on device. */
  COMPAT_NOT_SUPPORTED_ON_DEVICE(804, "compat not supported on device"),
  /** CUresult 805: MPS connection failed. */
  MPS_CONNECTION_FAILED(805, "MPS connection failed"),
  /** CUresult 806: MPS RPC failure. */
  MPS_RPC_FAILURE(806, "MPS RPC failure"),
  /** CUresult 807: MPS server not ready. */
  MPS_SERVER_NOT_READY(807, "MPS server not ready"),
  /** CUresult 808: MPS max clients reached. */
  MPS_MAX_CLIENTS_REACHED(808, "MPS max clients reached"),
  /** CUresult 809: MPS max connections reached. */
  MPS_MAX_CONNECTIONS_REACHED(809, "MPS max connections reached"),
  /** CUresult 810: MPS client terminated. */
  MPS_CLIENT_TERMINATED(810, "MPS client terminated"),
  /** CUresult 811: CDP not supported. */
  CDP_NOT_SUPPORTED(811, "CDP not supported"),
  /** CUresult 812: CDP version mismatch. */
  CDP_VERSION_MISMATCH(812, "CDP version mismatch"),
  /** CUresult 900: not allowed while a stream is capturing. */
  STREAM_CAPTURE_UNSUPPORTED(900, "not allowed while a stream is capturing"),
  /** CUresult 901: an earlier error made the capture invalid. */
  STREAM_CAPTURE_INVALIDATED(901, "an earlier error made the capture invalid"),
  /** CUresult 902: stream capture merge. */
  STREAM_CAPTURE_MERGE(902, "stream capture merge"),
  /** CUresult 903: the capture began on another stream. */
  STREAM_CAPTURE_UNMATCHED(903, "the capture began on another stream"),
  /** CUresult 904: a forked stream was not joined to the capture. */
  STREAM_CAPTURE_UNJOINED(904, "a forked stream was not joined to the capture"),
  /** CUresult 905: stream capture isolation. */
  STREAM_CAPTURE_ISOLATION(905, "stream capture isolation"),
  /** CUresult 906: the call would depend on a capturing stream. */
  STREAM_CAPTURE_IMPLICIT(906, "the call would depend on a capturing stream"),
  /** CUresult 907: the event belongs to a capture. */
  CAPTURED_EVENT(907, "the event belongs to a capture"),
  /** CUresult 908: the capture began on another thread. */
  STREAM_CAPTURE_WRONG_THREAD(908, "the capture began on another thread"),
  /** CUresult 909: timeout. */
  TIMEOUT(909, "timeout"),
  /** CUresult 910: graph exec update failure. */
  GRAPH_EXEC_UPDATE_FAILURE(910, "graph exec update failure"),
  /** CUresult 911: external device. */
  EXTERNAL_DEVICE(911, "external device"),
  /** CUresult 912: invalid cluster size. */
  INVALID_CLUSTER_SIZE(912, "invalid cluster size"),
  /** CUresult 913: function not loaded. */
  FUNCTION_NOT_LOADED(913, "function not loaded"),
  /** CUresult 914: invalid resource type. */
  INVALID_RESOURCE_TYPE(914, "invalid resource type"),
  /** CUresult 915: invalid resource configuration. */
  INVALID_RESOURCE_CONFIGURATION(915, "invalid resource configuration"),
  /** CUresult 916: key rotation. */
  KEY_ROTATION(916, "key rotation"),
  /** CUresult 999: unknown error. */
  UNKNOWN(999, "unknown error");

  private static final Map<Integer, CudaStatus> BY_CODE =
      Arrays.stream(values())
          .collect(Collectors.toUnmodifiableMap(CudaStatus::code, Function.identity()));

  private final int code;
  private final String meaning;

  CudaStatus(int code, String meaning) {
    this.code = code;
    this.meaning = meaning;
  }

  /**
   * {@return the status of a number; {@link #UNKNOWN} for a number this library does not know}
   *
   * @param code CUresult
   */
  public static CudaStatus of(int code) {
    return BY_CODE.getOrDefault(code, UNKNOWN);
  }

  /**
   * {@return name, number and meaning of a status, such as {@code CUDA_ERROR_OUT_OF_MEMORY (2): out
   * of memory}}
   *
   * @param code CUresult
   */
  public static String describe(int code) {
    CudaStatus status = of(code);
    return status.code == code
        ? "%s (%d): %s".formatted(status.cudaName(), code, status.meaning)
        : "CUresult %d: a status newer than this library".formatted(code);
  }

  /**
   * {@return whether the device's context is lost with it: every later call for the device fails
   * until the process ends}
   */
  public boolean losesContext() {
    return switch (this) {
      case ILLEGAL_ADDRESS,
          LAUNCH_TIMEOUT,
          ASSERT,
          HARDWARE_STACK_ERROR,
          ILLEGAL_INSTRUCTION,
          MISALIGNED_ADDRESS,
          INVALID_ADDRESS_SPACE,
          INVALID_PC,
          LAUNCH_FAILED ->
          true;
      default -> false;
    };
  }

  /** {@return the number of the status} */
  public int code() {
    return code;
  }

  /** {@return the meaning of the status in a few words} */
  public String meaning() {
    return meaning;
  }

  /** {@return the name in cuda.h, such as {@code CUDA_ERROR_OUT_OF_MEMORY}} */
  public String cudaName() {
    return this == SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_" + name();
  }
}
