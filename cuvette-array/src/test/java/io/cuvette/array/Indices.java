package io.cuvette.array;

import java.util.ArrayList;
import java.util.List;

/** The indices of all elements of a shape, in order C. Stateless. */
final class Indices {
  private Indices() {}

  static List<long[]> of(long... shape) {
    List<long[]> all = new ArrayList<>();
    all.add(new long[0]);
    for (long size : shape) {
      List<long[]> longer = new ArrayList<>();
      for (long[] each : all) {
        for (long i = 0; i < size; i++) {
          longer.add(LayoutViews.joined(each, i));
        }
      }
      all = longer;
    }
    return all;
  }
}
