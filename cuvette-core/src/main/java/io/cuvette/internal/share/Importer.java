package io.cuvette.internal.share;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.driverpool.DriverPool;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.paged.ImportedPages;
import io.cuvette.internal.paged.PageFiles;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.PeerHandles;
import io.cuvette.internal.session.Session;
import org.jspecify.annotations.Nullable;

/** Makes buffers of other processes' memory. Stateless. */
public final class Importer {
  private Importer() {}

  /**
   * A buffer of a pool.
   *
   * @param kind that the pool's resource takes
   */
  public static Face ofPool(
      BufferDescriptor descriptor,
      BufferDescriptor.Kind kind,
      Mappings imports,
      DriverPool pool,
      OpenStream stream,
      Faces faces) {
    checkKind(descriptor, kind);
    Session session = pool.session();
    stream.checkOf(session);
    session.leaks().drain();
    pool.enter();
    try {
      MappingSource source = new MappingSource.OfPool(pool, stream.on());
      PeerHandles.Range range = session.handles().range(stream.on(), descriptor.handle());
      Mappings.Key key = Mappings.Key.ofPool(descriptor, range);
      return open(imports, key, source, descriptor, stream, faces, pool);
    } finally {
      pool.leave();
    }
  }

  /** A buffer of memory without a pool. */
  public static Face plain(
      BufferDescriptor descriptor,
      Mappings imports,
      Device device,
      OpenStream stream,
      Faces faces) {
    checkKind(descriptor, BufferDescriptor.Kind.PLAIN);
    checkDevice(descriptor, imports, device, stream);
    Mappings.Key key = Mappings.Key.ofPlain(descriptor, device);
    return open(imports, key, new MappingSource.Plain(device), descriptor, stream, faces, null);
  }

  /** A buffer of pages of an elastic pool. */
  public static Face pages(
      BufferDescriptor descriptor,
      PageFiles files,
      Mappings imports,
      Device device,
      OpenStream stream,
      Faces faces) {
    checkDevice(descriptor, imports, device, stream);
    long most = device.session().mostMemory();
    if (files.allBytes() > most) {
      throw new IllegalArgumentException(
          "pages: %d bytes (expected: what fits a device, which has %d)"
              .formatted(files.allBytes(), most));
    }
    ImportedPages.Pages pages = imports.pages.use(files);
    try {
      ImportedPages.PageMapping mapping = new ImportedPages.PageMapping(device, pages);
      Mappings.Key key = new Mappings.Key(device.id(), pages.key, null);
      MappingSource source = new MappingSource.OfPages(device, pages, mapping);
      return open(imports, key, source, descriptor, stream, faces, null);
    } finally {
      pages.release();
    }
  }

  private static void checkDevice(
      BufferDescriptor descriptor, Mappings imports, Device device, OpenStream stream) {
    Session session = device.session();
    if (descriptor.process().equals(imports.process)) {
      throw new IllegalArgumentException(
          "descriptor: %s was made by this very process (expected: another's; use the buffer"
                  .formatted(descriptor)
              + " itself)");
    }
    stream.checkOf(session);
    if (!stream.on().equals(device)) {
      throw new IllegalArgumentException("%s (expected: a stream of %s)".formatted(stream, device));
    }
    session.leaks().drain();
  }

  private static Face open(
      Mappings imports,
      Mappings.Key key,
      MappingSource source,
      BufferDescriptor descriptor,
      OpenStream stream,
      Faces faces,
      @Nullable DriverPool pool) {
    Session session = stream.on().session();
    checkClaim(descriptor, session);
    return session
        .gate()
        .make(() -> openNow(imports, key, source, descriptor, stream, faces, pool));
  }

  private static Face openNow(
      Mappings table,
      Mappings.Key key,
      MappingSource source,
      BufferDescriptor descriptor,
      OpenStream stream,
      Faces faces,
      @Nullable DriverPool pool) {
    Mapping memory = table.open(key, source);
    Face buffer;
    try {
      MappingSource held = memory.heldFor(source);
      buffer = MappedBlock.own(faces, stream, table, memory, descriptor, pool, held);
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, () -> table.close(memory, stream.state, null));
      throw e;
    }
    try {
      checkFits(descriptor, source, memory);
      return buffer;
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, faces.memory(buffer)::close); // which is tried again if it fails
      throw e;
    }
  }

  /** The claim of a descriptor against what any device has, before anything is mapped. */
  private static void checkClaim(BufferDescriptor descriptor, Session session) {
    long most = session.mostMemory();
    if (descriptor.kind() != BufferDescriptor.Kind.HOST_POOL
        && descriptor.byteSize() > most - descriptor.offset()) {
      throw new IllegalArgumentException(
          "descriptor: %d bytes at offset %d (expected: inside the memory of a device, which has %d)"
              .formatted(descriptor.byteSize(), descriptor.offset(), most));
    }
  }

  private static void checkKind(BufferDescriptor descriptor, BufferDescriptor.Kind expected) {
    if (descriptor.kind() != expected) {
      String taker =
          switch (descriptor.kind()) {
            case DEVICE_POOL -> "DeviceMemoryResource.importBuffer takes it";
            case HOST_POOL -> "PinnedMemoryResource.importBuffer takes it";
            case PLAIN -> "CudaDevice.importBuffer takes it";
            case PAGES -> "CudaDevice.importBuffer takes the PageHandles that it comes with";
          };
      throw new IllegalArgumentException(
          "descriptor: kind %s (expected: %s); %s".formatted(descriptor.kind(), expected, taker));
    }
  }

  /**
   * The claim of a descriptor against what the driver mapped. What a driver reports of that is what
   * the last handle claimed, so it counts no more than when it was mapped.
   */
  private static void checkFits(BufferDescriptor descriptor, MappingSource source, Mapping memory) {
    long address = memory.address();
    boolean host = source.isHostMemory(address);
    boolean hostExpected = descriptor.kind() == BufferDescriptor.Kind.HOST_POOL;
    if (host != hostExpected) {
      throw new IllegalArgumentException(
          "descriptor: claims to be of kind %s, and is %s memory"
              .formatted(descriptor.kind(), host ? "host" : "device"));
    }
    long now = source.bytesAt(address);
    long mapped = memory.bytes() == 0 ? now : Math.min(memory.bytes(), now);
    if (descriptor.byteSize() > mapped - descriptor.offset()) {
      throw new IllegalArgumentException(
          "descriptor: %d bytes at offset %d (expected: inside the allocation, which has %d)"
              .formatted(descriptor.byteSize(), descriptor.offset(), mapped));
    }
  }
}
