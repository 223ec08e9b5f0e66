package io.cuvette.array;

import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Decides whether two arrays have a byte in common. Each element of one and of the other is a sum
 * of index · stride; equal addresses are a solution of one linear equation with bounded unknowns,
 * which is searched for from the largest stride to the smallest. Stateless.
 */
final class Overlap {
  /** How many steps are searched; what is not decided then counts as an overlap. */
  private static final int MOST_STEPS = 100_000;

  private final long[] factors;
  private final long[] bounds;
  private final long[] reach;
  private final long[] divisors;
  private int steps;

  /** An unknown between 0 and a bound, and what it is multiplied by, both positive. */
  private record Term(long factor, long bound) {}

  private Overlap(List<Term> terms) {
    int count = terms.size();
    factors = terms.stream().mapToLong(Term::factor).toArray();
    bounds = terms.stream().mapToLong(Term::bound).toArray();
    reach = new long[count + 1];
    divisors = new long[count + 1];
    for (int i = count - 1; i >= 0; i--) {
      reach[i] = reach[i + 1] + factors[i] * bounds[i];
      divisors[i] = greatestCommonDivisor(divisors[i + 1], factors[i]);
    }
  }

  /**
   * Whether a byte is in both.
   *
   * @param first where the memory of the first begins, in bytes
   * @param second that of the second
   */
  static boolean exists(
      Layout a, ElementType typeA, long first, Layout b, ElementType typeB, long second) {
    if (a.size() == 0 || b.size() == 0) {
      return false;
    }
    long lowestA = first + a.lowest() * typeA.bytes();
    long lowestB = second + b.lowest() * typeB.bytes();
    long endA = first + a.end() * typeA.bytes();
    long endB = second + b.end() * typeB.bytes();
    if (endA <= lowestB || endB <= lowestA) {
      return false;
    }
    // lowestA + sum(A) + byte of an element = lowestB + sum(B) + byte of an element; all of B
    // counted from its end, where its last byte is
    List<Term> terms =
        merged(Stream.concat(terms(a, typeA.bytes()), terms(b, typeB.bytes())).toList());
    return new Overlap(terms).hasSolution(0, endB - 1 - lowestA);
  }

  private static Stream<Term> terms(Layout layout, int bytes) {
    Stream<Term> axes =
        IntStream.range(0, layout.rank())
            .mapToObj(
                axis -> new Term(Math.abs(layout.steps()[axis]) * bytes, layout.sizes()[axis] - 1));
    return Stream.concat(axes, Stream.of(new Term(1, bytes - 1L)))
        .filter(term -> term.factor > 0 && term.bound > 0);
  }

  /** From the largest factor to the smallest, each once. */
  private static List<Term> merged(List<Term> terms) {
    return terms.stream()
        .mapToLong(Term::factor)
        .distinct()
        .mapToObj(factor ->
            new Term(
                factor,
                terms.stream().filter(term -> term.factor == factor).mapToLong(Term::bound).sum()))
        .sorted(Comparator.comparingLong(Term::factor).reversed())
        .toList();
  }

  private boolean hasSolution(int term, long left) {
    if (left < 0 || left > reach[term]) {
      return false;
    }
    if (left == 0) {
      return true;
    }
    if (left % divisors[term] != 0) {
      return false;
    }
    long least = Math.max(0, Math.ceilDiv(left - reach[term + 1], factors[term]));
    long most = Math.min(bounds[term], left / factors[term]);
    for (long times = most; times >= least; times--) {
      if (++steps > MOST_STEPS || hasSolution(term + 1, left - times * factors[term])) {
        return true;
      }
    }
    return false;
  }

  private static long greatestCommonDivisor(long a, long b) {
    return a == 0 ? b : greatestCommonDivisor(b % a, a);
  }
}
