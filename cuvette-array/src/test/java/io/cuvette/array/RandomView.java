package io.cuvette.array;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;

/** A layout and its model, changed by the same random steps. Not thread-safe. */
final class RandomView {
  private final Random random;
  Layout layout;
  ModelView model;
  private final List<String> steps = new ArrayList<>();

  private RandomView(Random random, Layout layout, ModelView model) {
    this.random = random;
    this.layout = layout;
    this.model = model;
  }

  /** All of a memory of at most 64 elements, with up to 4 axes. */
  static RandomView whole(Random random) {
    long[] shape = shape(random);
    return new RandomView(random, Layout.of(shape), ModelView.whole(shape));
  }

  /** The start of another walk over the same memory. */
  RandomView again(long... shape) {
    return new RandomView(random, Layout.of(shape), ModelView.whole(shape));
  }

  static long[] shape(Random random) {
    int rank = random.nextInt(5);
    long[] shape = new long[rank];
    long left = 64;
    for (int axis = 0; axis < rank; axis++) {
      shape[axis] = random.nextInt(20) == 0 ? 0 : 1 + random.nextInt((int) Math.min(5, left));
      left /= Math.max(1, shape[axis]);
    }
    return shape;
  }

  RandomView steps(int count) {
    for (int i = 0; i < count; i++) {
      step();
    }
    return this;
  }

  /** Steps that keep each element in one place. */
  RandomView distinctSteps(int count) {
    for (int i = 0; i < count; i++) {
      step(5);
    }
    return this;
  }

  private void step() {
    step(7);
  }

  private void step(int kinds) {
    switch (random.nextInt(kinds)) {
      case 0, 1 -> slice();
      case 2 -> transpose();
      case 3 -> reshape();
      case 4 -> expandOrSqueeze();
      default -> broadcast();
    }
  }

  private void slice() {
    int count = random.nextInt(layout.rank() + 1);
    Range[] ranges = new Range[count];
    int axis = 0;
    for (int i = 0; i < count; i++) {
      long size = model.shape()[axis];
      if (size > 0 && random.nextInt(5) == 0) {
        long index = random.nextInt((int) size);
        ranges[i] = Range.at(random.nextBoolean() ? index : index - size);
        model = model.take(axis, List.of(index)).drop(axis);
      } else {
        Long start = random.nextInt(3) == 0 ? null : (long) random.nextInt(-8, 9);
        Long stop = random.nextInt(3) == 0 ? null : (long) random.nextInt(-8, 9);
        long step = random.nextInt(3) == 0 ? -1 - random.nextInt(3) : 1 + random.nextInt(3);
        ranges[i] = range(start, stop).step(step);
        model = model.take(axis, ModelView.range(size, start, stop, step));
        axis++;
      }
    }
    note("slice" + Arrays.toString(ranges));
    layout = layout.slice(ranges);
  }

  private static Range range(Long start, Long stop) {
    if (start == null) {
      return stop == null ? Range.all() : Range.to(stop);
    }
    return stop == null ? Range.from(start) : Range.of(start, stop);
  }

  private void transpose() {
    List<Integer> shuffled = new ArrayList<>();
    for (int axis = 0; axis < layout.rank(); axis++) {
      shuffled.add(random.nextInt(shuffled.size() + 1), axis);
    }
    int[] axes = shuffled.stream().mapToInt(i -> i).toArray();
    note("transpose" + shuffled);
    layout = layout.transpose(axes);
    model = model.transpose(axes);
  }

  private void reshape() {
    long left = layout.size();
    List<Long> to = new ArrayList<>();
    while (left > 1 && to.size() < 4) {
      long size = 1 + random.nextInt((int) left);
      if (left % size == 0) {
        to.add(size);
        left /= size;
      }
    }
    to.add(random.nextInt(to.size() + 1), left);
    long[] shape = to.stream().mapToLong(i -> i).toArray();
    Optional<Layout> changed = layout.reshape(shape);
    note("reshape" + to);
    if (changed.isPresent()) {
      layout = changed.orElseThrow();
      model = model.reshape(shape);
    } else if (layout.isContiguous(Order.C)) {
      throw new AssertionError(this + ": a contiguous layout was not reshaped");
    }
  }

  private void expandOrSqueeze() {
    List<Integer> ones = new ArrayList<>();
    for (int axis = 0; axis < layout.rank(); axis++) {
      if (layout.shape(axis) == 1) {
        ones.add(axis);
      }
    }
    if (!ones.isEmpty() && random.nextBoolean()) {
      int axis = ones.get(random.nextInt(ones.size()));
      note("squeeze " + axis);
      layout = layout.squeeze(new int[] {axis});
      model = model.drop(axis);
    } else if (layout.rank() < 6) {
      int axis = random.nextInt(layout.rank() + 1);
      note("expand " + axis);
      layout = layout.expand(axis);
      model = model.insert(axis);
    }
  }

  private void broadcast() {
    if (layout.size() > 32 || layout.rank() > 5) {
      return;
    }
    long[] to = layout.shape();
    for (int axis = 0; axis < to.length; axis++) {
      to[axis] = to[axis] == 1 ? random.nextInt(3) : to[axis];
    }
    note("broadcast" + Arrays.toString(to));
    layout = layout.broadcastTo(to);
    model = model.broadcast(to);
  }

  /** A view of another memory that can be broadcast to the shape of this one. */
  RandomView sourceFor() {
    long[] to = layout.shape();
    int dropped = random.nextInt(4) == 0 ? random.nextInt(to.length + 1) : 0;
    long[] shape = Arrays.copyOfRange(to, dropped, to.length);
    List<Integer> order = new ArrayList<>();
    for (int axis = 0; axis < shape.length; axis++) {
      if (random.nextInt(6) == 0) {
        shape[axis] = 1;
      }
      order.add(random.nextInt(order.size() + 1), axis);
    }
    long[] memory = new long[shape.length];
    Range[] ranges = new Range[shape.length];
    int[] back = new int[shape.length];
    long[] steps = new long[shape.length];
    for (int i = 0; i < memory.length; i++) {
      long size = shape[order.get(i)];
      steps[i] = memory.length < 3 && random.nextInt(3) == 0 ? 2 : 1;
      steps[i] = random.nextInt(4) == 0 ? -steps[i] : steps[i];
      memory[i] = size * Math.abs(steps[i]);
      ranges[i] = Range.all().step(steps[i]);
      back[order.get(i)] = i;
    }
    RandomView source = again(memory);
    for (int i = 0; i < memory.length; i++) {
      source.model = source.model.take(i, ModelView.range(memory[i], null, null, steps[i]));
    }
    source.layout = source.layout.slice(ranges).transpose(back);
    source.model = source.model.transpose(back);
    source.note("memory" + Arrays.toString(memory) + Arrays.toString(ranges) + order);
    return source;
  }

  private void note(String step) {
    steps.add(step);
  }

  @Override
  public String toString() {
    return steps + " of " + layout;
  }
}
