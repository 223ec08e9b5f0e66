package io.cuvette.array;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;

/** Copies elements in memory of the host, between any two layouts of one shape. Stateless. */
final class HostCopies {
  private HostCopies() {}

  /**
   * Elements in memory of the host.
   *
   * @param memory what the layout's places count from
   * @param type the type of the elements
   * @param layout where they are
   */
  record Place(MemorySegment memory, ElementType type, Layout layout) {}

  static void copy(Place target, Place source) {
    CommonLoop loop = CommonLoop.of(target.layout, source.layout);
    if (!loop.isEmpty()) {
      HostAccess.run(() -> copy(target, source, loop), target.memory, source.memory);
    }
  }

  private static void copy(Place target, Place source, CommonLoop loop) {
    if (target.type != source.type) {
      loop.run((to, from, count, toStep, fromStep) -> {
        for (long i = 0; i < count; i++) {
          Elements.convert(
              source.type,
              source.memory,
              (from + i * fromStep) * source.type.bytes(),
              target.type,
              target.memory,
              (to + i * toStep) * target.type.bytes());
        }
      });
    } else {
      int bytes = target.type.bytes();
      loop.run((to, from, count, toStep, fromStep) -> {
        if (toStep == 1 && fromStep == 1) {
          MemorySegment.copy(source.memory, from * bytes, target.memory, to * bytes, count * bytes);
        } else {
          copyRun(target.memory, source.memory, to, from, count, toStep, fromStep, bytes);
        }
      });
    }
  }

  private static void copyRun(
      MemorySegment target,
      MemorySegment source,
      long to,
      long from,
      long count,
      long toStep,
      long fromStep,
      int bytes) {
    for (long i = 0; i < count; i++) {
      long at = (from + i * fromStep) * bytes;
      long place = (to + i * toStep) * bytes;
      switch (bytes) {
        case 1 -> target.set(JAVA_BYTE, place, source.get(JAVA_BYTE, at));
        case 2 -> target.set(JAVA_SHORT_UNALIGNED, place, source.get(JAVA_SHORT_UNALIGNED, at));
        case 4 -> target.set(JAVA_INT_UNALIGNED, place, source.get(JAVA_INT_UNALIGNED, at));
        default -> {
          target.set(JAVA_LONG_UNALIGNED, place, source.get(JAVA_LONG_UNALIGNED, at));
          if (bytes == 16) {
            target.set(JAVA_LONG_UNALIGNED, place + 8, source.get(JAVA_LONG_UNALIGNED, at + 8));
          }
        }
      }
    }
  }
}
