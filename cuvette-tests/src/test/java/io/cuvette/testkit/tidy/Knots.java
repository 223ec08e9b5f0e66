package io.cuvette.testkit.tidy;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Finds what reaches each other along arrows (Tarjan's strongly connected components). */
final class Knots {
  private final Function<String, ? extends Collection<String>> arrows;
  private final Map<String, Integer> number = new HashMap<>();
  private final Map<String, Integer> lowest = new HashMap<>();
  private final Deque<String> open = new ArrayDeque<>();
  private final List<List<String>> found = new ArrayList<>();

  Knots(Function<String, ? extends Collection<String>> arrows) {
    this.arrows = arrows;
  }

  /** The components of what is reached from here, those of a single name too; asked for once. */
  List<List<String>> of(Collection<String> names) {
    for (String name : names) {
      if (!number.containsKey(name)) {
        visit(name);
      }
    }
    return found;
  }

  private void visit(String name) {
    number.put(name, number.size());
    lowest.put(name, number.get(name));
    open.push(name);
    for (String to : arrows.apply(name)) {
      if (!number.containsKey(to)) {
        visit(to);
        lowest.merge(name, lowest.get(to), Math::min);
      } else if (open.contains(to)) {
        lowest.merge(name, number.get(to), Math::min);
      }
    }
    if (lowest.get(name).equals(number.get(name))) {
      List<String> knot = new ArrayList<>();
      do {
        knot.add(open.pop());
      } while (!knot.getLast().equals(name));
      found.add(knot);
    }
  }
}
