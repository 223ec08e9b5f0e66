package io.cuvette.array;

import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;

/** Copies elements between arrays of any place, type and layout. Stateless. */
final class Copies {
  private Copies() {}

  /** Copies in order of the current stream of a device, and waits if the host takes part. */
  static void copy(CudaArray target, NdArray source, CudaStream stream) {
    Layout from = checked(target, source);
    switch (source) {
      case CudaArray device -> {
        if (device.device() == target.device()) {
          DeviceCopies.copy(target, device.view(from), stream);
        } else {
          across(target, device.view(from), stream);
        }
      }
      case HostArray host -> upload(target, host.view(from), stream);
    }
  }

  /**
   * Copies between devices, in order of the current streams of both: what is no single range is put
   * in order where it is, goes over as one, and is spread out there.
   */
  private static void across(CudaArray target, CudaArray source, CudaStream stream) {
    if (!isOneRun(target, source)) {
      boolean isPlain = source.isContiguous(Order.C) || source.isContiguous(Order.F);
      try (CudaArray dense = isPlain ? source : source.copy(Order.K);
          CudaArray there =
              target.on(stream).allocate(source.type(), dense.layout().like(Order.K))) {
        across(there, dense, stream);
        DeviceCopies.copy(target, there, stream);
      }
      return;
    }
    CudaStream other = source.current();
    stream.waitFor(other);
    DeviceCopies.copy(target, source, stream);
    other.waitFor(stream);
  }

  /** Copies into an array on the host and waits. */
  static void copy(HostArray target, NdArray source) {
    Layout from = checked(target, source);
    switch (source) {
      case HostArray host -> HostCopies.copy(target.place(), host.view(from).place());
      case CudaArray device -> download(target, device, from);
    }
  }

  /** Copies in order of a stream without waiting. */
  static void queue(CudaArray target, NdArray source, CudaStream stream) {
    Layout from = checked(target, source);
    switch (source) {
      case CudaArray device -> {
        if (device.device() != target.device() && !isOneRun(target, device.view(from))) {
          throw new IllegalArgumentException(
              "source: %s to %s (expected: between devices the same type, and the same order"
                      .formatted(device, target)
                  + " without gaps; copy it into such an array first)");
        }
        DeviceCopies.copy(target, device.view(from), stream);
      }
      case HostArray host -> {
        PinnedBuffer pinned = host.pinned();
        if (pinned == null || !isOneRun(target, host.view(from))) {
          throw new IllegalArgumentException(
              "source: %s to %s (expected: page-locked memory, the same type, and the same order"
                      .formatted(host, target)
                  + " without gaps; copy it into such an array first)");
        }
        if (target.size() > 0) {
          target
              .bytes()
              .copyFrom(pinned.slice(host.view(from).lowestByte(), target.byteSize()), stream);
        }
      }
    }
  }

  /** The source's layout in the shape of the target, once all is checked. */
  private static Layout checked(BaseArray<?> target, NdArray source) {
    target.checkOpen();
    ((BaseArray<?>) source).checkOpen();
    Layout from = source.layout().broadcastTo(target.layout().sizes());
    target.checkWritable();
    if (((BaseArray<?>) source).overlaps(target)) {
      throw new IllegalArgumentException(
          "source: %s overlaps the target %s (expected: no byte in both)"
              .formatted(source, target));
    }
    return from;
  }

  /** Whether the elements are one range of memory on both sides, in the same order and type. */
  static boolean isOneRun(BaseArray<?> target, BaseArray<?> source) {
    CommonLoop loop = CommonLoop.of(target.layout(), source.layout());
    return target.type() == source.type()
        && (loop.isEmpty() || (loop.runs() == 1 && loop.isContiguousInside()));
  }

  private static void upload(CudaArray target, HostArray source, CudaStream stream) {
    if (target.size() == 0) {
      return;
    }
    if (isOneRun(target, source)) {
      PinnedBuffer pinned = source.pinned();
      if (pinned == null) {
        target.bytes().copyFrom(source.bytes());
      } else {
        target.bytes().copyFrom(pinned.slice(source.lowestByte(), target.byteSize()), stream);
        stream.synchronize();
      }
      return;
    }
    HostArrays host = HostArrays.of(target.module().cuda());
    try (HostArray same = host.allocate(target.type(), target.layout().like(Order.K))) {
      HostCopies.copy(same.place(), source.place());
      if (isOneRun(target, same)) {
        upload(target, same, stream);
      } else {
        try (CudaArray there = target.on(stream).allocate(target.type(), same.layout())) {
          upload(there, same, stream);
          DeviceCopies.copy(target, there, stream);
        }
      }
    }
  }

  /** The source is copied as it lies, and then put in order on the host. */
  private static void download(HostArray target, CudaArray source, Layout from) {
    if (target.size() == 0) {
      return;
    }
    if (isOneRun(target, source.view(from))) {
      source.bytes().copyTo(target.bytes());
      return;
    }
    if (!source.layout().isDense()) {
      try (CudaArray dense = source.copy(Order.K)) {
        Layout broadcast = dense.layout().broadcastTo(target.layout().sizes());
        download(target, dense, broadcast);
      }
      return;
    }
    long lowest = source.layout().lowest();
    Layout moved = Layout.view(from.sizes(), from.steps(), from.offset() - lowest);
    try (HostArray image =
        target.module().allocate(source.type(), Layout.of(source.layout().size()))) {
      source.bytes().copyTo(image.bytes());
      HostCopies.copy(target.place(), image.view(moved).place());
    }
  }

  /** A copy in another shape. */
  static <A extends NdArray> A reshaped(BaseArray<A> a, long[] shape) {
    A made = a.module().allocate(a.type(), Layout.of(shape));
    try {
      ((BaseArray<?>) made).view(Layout.of(a.layout().sizes())).copyFrom(a.self());
      return made;
    } catch (RuntimeException | Error e) {
      made.close();
      throw e;
    }
  }
}
