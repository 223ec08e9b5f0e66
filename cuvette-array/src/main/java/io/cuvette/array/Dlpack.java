package io.cuvette.array;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.ForeignLoan;
import io.cuvette.ManagedBuffer;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.ForeignCalls;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Exchanges arrays with other libraries in the process by DLPack, without a copy. Stateless.
 *
 * <p>What is exported stays where it is until the consumer calls the deleter, on any thread, also
 * if the array or its {@link Cuda} is closed before. What is taken is given back to its producer
 * once, when the array is closed or forgotten, after the work that used it.
 */
public final class Dlpack {
  private Dlpack() {}

  /**
   * Exports an array with {@link DlpackOptions#DEFAULTS}.
   *
   * @param array the array
   * @return the tensor, which the consumer deletes
   * @see #export(NdArray, DlpackOptions)
   */
  public static DlpackTensor export(NdArray array) {
    return export(array, DlpackOptions.DEFAULTS);
  }

  /**
   * Exports an array on a device, in page-locked, managed or other native memory of the host. The
   * consumer's stream is made to wait for the work of the array's stream, and of the stream that is
   * current on this thread for its device (cuStreamWaitEvent). Native memory that was wrapped must
   * stay alive until the tensor is deleted; all other memory does.
   *
   * @param array the array, or a view
   * @param options what the consumer asks for
   * @return the tensor, which the consumer deletes
   * @throws IllegalArgumentException for an array in memory of the Java heap, which may move, and a
   *     read-only array without a version, which could not say so
   * @throws IllegalStateException if the array or its Cuda is closed
   * @throws UnsupportedOperationException without the module of native access
   * @throws WrongThreadException for the default stream of a virtual thread
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public static DlpackTensor export(NdArray array, DlpackOptions options) {
    BaseArray<?> base = (BaseArray<?>) Objects.requireNonNull(array, "array");
    Objects.requireNonNull(options, "options");
    ForeignCalls _ = DlpackStructure.calls(); // which may not be there
    base.checkOpen();
    if (options.isCopy()) {
      try (NdArray copy = array.copy(Order.K)) {
        return export((BaseArray<?>) copy, options, DlpackStructure.IS_COPIED);
      }
    }
    return export(base, options, base.isReadOnly() ? DlpackStructure.READ_ONLY : 0);
  }

  private static DlpackTensor export(BaseArray<?> base, DlpackOptions options, long flags) {
    if (flags == DlpackStructure.READ_ONLY && !options.isVersioned()) {
      throw new IllegalArgumentException(
          "%s is read-only (expected: versioned, which can say so, or a copy)".formatted(base));
    }
    DlpackStructure.Content content =
        new DlpackStructure.Content(
            data(base),
            options.isPlainHost() && base instanceof HostArray ? DlpackDevice.CPU : type(base),
            deviceId(base.self()),
            base.type(),
            base.layout(),
            flags);
    ForeignLoan loan = loan(base);
    try {
      if (base instanceof CudaArray device) {
        order(device, options.stream());
      }
      return DlpackExports.export(content, options.isVersioned(), loan);
    } catch (RuntimeException | Error e) {
      loan.giveBack();
      throw e;
    }
  }

  private static long data(BaseArray<?> base) {
    if (base.layout().size() == 0) {
      return 0;
    }
    return switch (base) {
      case CudaArray device -> device.address();
      case HostArray host -> {
        if (!host.segment().isNative()) {
          throw new IllegalArgumentException(
              "%s is on the Java heap, and may move (expected: native memory, such as an"
                      .formatted(host)
                  + " array in page-locked memory)");
        }
        yield host.segment().address() + host.firstByte();
      }
    };
  }

  /** The end of a loan that keeps memory reachable, and nothing else. */
  private record Kept(MemorySegment segment) implements Runnable {
    @Override
    public void run() {}
  }

  private static ForeignLoan loan(BaseArray<?> base) {
    return switch (base) {
      case CudaArray device -> ForeignLoan.of(device.buffer());
      case HostArray host -> {
        PinnedBuffer pinned = host.pinned();
        ImportedMemory imported = host.imported();
        if (pinned != null) {
          yield ForeignLoan.of(pinned);
        }
        if (imported == null) {
          yield ForeignLoan.of(new Kept(host.segment()));
        }
        imported.hold();
        try {
          yield ForeignLoan.of(imported::unhold);
        } catch (RuntimeException | Error e) {
          imported.unhold();
          throw e;
        }
      }
    };
  }

  /** Makes a stream of the consumer wait for what was queued here. */
  private static void order(CudaArray array, long stream) {
    CudaDevice device = array.device();
    if (stream == DlpackOptions.NO_STREAM) {
      return;
    }
    if (stream == DlpackOptions.LEGACY_STREAM) {
      order(array, device.legacyStream());
    } else if (stream == DlpackOptions.PER_THREAD_STREAM) {
      order(array, device.perThreadStream());
    } else {
      try (CudaStream consumer = device.wrapStream(stream, null)) {
        order(array, consumer);
      }
    }
  }

  private static void order(CudaArray array, CudaStream consumer) {
    CudaStream current = array.current();
    consumer.waitFor(current);
    CudaStream own = array.stream();
    if (!own.equals(current) && !own.isClosed() && own.handle() > DlpackOptions.PER_THREAD_STREAM) {
      consumer.waitFor(own);
    }
  }

  /**
   * {@return the kind of memory an array is in, as {@code __dlpack_device__} names it first: 1 for
   * the host, 2 for a device, 3 for page-locked and 13 for managed memory}
   *
   * @param array the array
   */
  public static int deviceType(NdArray array) {
    return type((BaseArray<?>) Objects.requireNonNull(array, "array"));
  }

  /**
   * {@return the number of the device an array is on, as {@code __dlpack_device__} names it; 0 on
   * the host}
   *
   * @param array the array
   */
  public static int deviceId(NdArray array) {
    return Objects.requireNonNull(array, "array") instanceof CudaArray device
            && !(device.buffer() instanceof PinnedBuffer)
        ? device.device().id()
        : 0;
  }

  private static int type(BaseArray<?> array) {
    return switch (array) {
      case CudaArray device ->
          switch (device.buffer()) {
            case ManagedBuffer _ -> DlpackDevice.CUDA_MANAGED;
            case PinnedBuffer _ -> DlpackDevice.CUDA_HOST;
            default -> DlpackDevice.CUDA;
          };
      case HostArray host -> host.isPinned() ? DlpackDevice.CUDA_HOST : DlpackDevice.CPU;
    };
  }

  /**
   * {@return what a producer is given for a stream of this process: the argument of {@code
   * __dlpack__}} The producer makes the stream wait for its work.
   *
   * @param stream the stream that uses the tensor first
   */
  public static long streamArgument(CudaStream stream) {
    long handle = Objects.requireNonNull(stream, "stream").handle();
    return handle == 0 ? DlpackOptions.LEGACY_STREAM : handle;
  }

  /**
   * Takes a tensor over. Memory of a device and managed memory become a {@link CudaArray}, any
   * other a {@link HostArray}. A tensor that is refused remains the caller's.
   *
   * @param cuda whose device it is on
   * @param tensor the tensor, which is the array's from now on
   * @return the array, which the caller closes; read-only if the tensor is
   * @throws IllegalArgumentException if no array can be what the tensor says: of another vendor's
   *     device or a device that is not there, of a type that there is none for, with negative
   *     strides or sizes, without memory, too large, not aligned, of a version to come
   * @throws IllegalStateException if the Cuda is closed, or the tensor was exported by this process
   *     and is taken or deleted
   * @throws UnsupportedOperationException without the module of native access
   * @throws io.cuvette.driver.CudaException if the driver reports an error
   */
  public static NdArray take(Cuda cuda, DlpackTensor tensor) {
    Objects.requireNonNull(cuda, "cuda");
    DlpackStructure structure = DlpackStructure.of(Objects.requireNonNull(tensor, "tensor"));
    if (cuda.isClosed()) {
      throw new IllegalStateException(cuda + " is closed");
    }
    return DlpackExports.takeOver(
        structure, giveBack -> DlpackImport.take(cuda, structure.read(), giveBack));
  }
}
