package io.cuvette.array;

import io.cuvette.Cuda;
import io.cuvette.Scope;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Makes arrays in page-locked host memory, from the pinned allocator ({@link Cuda#allocatePinned}).
 * See {@link ArrayModule} for its operations.
 */
public final class HostArrays extends ArrayModule<HostArray> {

  private HostArrays(Cuda cuda) {
    super(cuda);
  }

  /**
   * {@return the module of a Cuda}
   *
   * @param cuda whose page-locked memory
   */
  public static HostArrays of(Cuda cuda) {
    return new HostArrays(cuda);
  }

  /**
   * {@return an array in any memory of the host, as a view} Copies to and from a device go through
   * page-locked memory. Memory on the heap and read-only memory are possible; operations on a
   * mapped file, other than of single elements, throw an {@link IllegalStateException} if it has
   * become too short.
   *
   * @param memory the memory, which the caller keeps alive
   * @param type the type of the elements
   * @param layout where they lie, counted from the start of the segment
   * @throws IllegalArgumentException if an element is not inside
   */
  public HostArray wrap(MemorySegment memory, ElementType type, Layout layout) {
    Objects.requireNonNull(memory, "memory");
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(layout, "layout");
    BaseArray.checkFits(type, layout, memory.byteSize());
    return new HostArray(cuda(), memory, null, type, layout, false);
  }

  @Override
  HostArray allocate(ElementType type, Layout layout) {
    Objects.requireNonNull(type, "type");
    long bytes = BaseArray.bytes(type, layout);
    return HostArray.of(cuda(), cuda().allocatePinned(bytes), type, layout);
  }

  @Override
  @Nullable HostArray here(NdArray a) {
    if (a instanceof HostArray array) {
      array.checkOpen();
      return array.view(array.layout());
    }
    return null;
  }

  @Override
  @Nullable Scope scope() {
    return null;
  }

  @Override
  public String toString() {
    return "HostArrays of " + cuda();
  }
}
