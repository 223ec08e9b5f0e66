package io.cuvette.internal.paged;

import io.cuvette.internal.base.Failures;
import io.cuvette.internal.channel.PoolHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Descriptors of memory that belongs together, page after page, with the size of each. Immutable,
 * until they are closed.
 */
public final class PageFiles implements AutoCloseable {
  private final List<PoolHandle> handles;
  private final long[] sizes;
  private final long allBytes;

  /**
   * Takes over handles.
   *
   * @param sizes the sizes in bytes, > 0; their sum is a long
   */
  public PageFiles(List<PoolHandle> handles, long... sizes) {
    this.handles = List.copyOf(handles);
    this.sizes = sizes.clone();
    long sum = 0;
    for (long size : sizes) {
      sum = Math.addExact(sum, size);
    }
    this.allBytes = sum;
  }

  /** Collects them; closing it closes those that were collected. Confined to a thread. */
  static final class Maker implements AutoCloseable {
    private final List<PoolHandle> handles = new ArrayList<>();
    private final List<Long> sizes = new ArrayList<>();

    void add(PoolHandle handle, long bytes) {
      try {
        handles.add(handle);
      } catch (OutOfMemoryError e) {
        Failures.runAfter(e, handle::close);
        throw e;
      }
      sizes.add(bytes);
    }

    PageFiles made() {
      return new PageFiles(handles, sizes.stream().mapToLong(Long::longValue).toArray());
    }

    @Override
    public void close() {
      closeAll(handles);
    }
  }

  private static void closeAll(List<PoolHandle> handles) {
    Failures failures = new Failures();
    handles.forEach(handle -> failures.run(handle::close));
    failures.throwFirst();
  }

  /** Others of the same memory. */
  public PageFiles duplicate() {
    Maker copy = new Maker();
    try {
      for (int i = 0; i < sizes.length; i++) {
        copy.add(handles.get(i).duplicate(), sizes[i]);
      }
      return copy.made();
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, copy::close);
      throw e;
    }
  }

  /** Whether the system says that others are of the same memory in the same order. */
  boolean isSame(PageFiles other) {
    if (!Arrays.equals(sizes, other.sizes)) {
      return false;
    }
    for (int i = 0; i < sizes.length; i++) {
      if (!handles.get(i).isSamePool(other.handles.get(i))) {
        return false;
      }
    }
    return true;
  }

  public int count() {
    return sizes.length;
  }

  public PoolHandle handle(int index) {
    return handles.get(index);
  }

  public List<PoolHandle> handles() {
    return handles;
  }

  /** The size of one, in bytes. */
  public long bytes(int index) {
    return sizes[index];
  }

  /** The size of all, in bytes. */
  public long allBytes() {
    return allBytes;
  }

  public boolean isClosed() {
    return handles.getFirst().isClosed();
  }

  @Override
  public void close() {
    closeAll(handles);
  }
}
