package io.cuvette.mutations;

import java.util.Collection;
import java.util.SplittableRandom;
import java.util.function.Predicate;
import org.pitest.bytecode.analysis.ClassTree;
import org.pitest.mutationtest.build.InterceptorType;
import org.pitest.mutationtest.build.MutationInterceptor;
import org.pitest.mutationtest.engine.Mutater;
import org.pitest.mutationtest.engine.MutationDetails;

/**
 * Keeps one of n mutations, of all or of those that lived before. Whether a mutation is kept
 * depends on the seed and on itself alone: the same ones are tried whatever else has changed.
 * Immutable.
 */
final class Sample implements MutationInterceptor {
  private final int of;
  private final int seed;
  private final Predicate<MutationDetails> from;

  Sample(int of, int seed, Predicate<MutationDetails> from) {
    if (of < 1) {
      throw new IllegalArgumentException("of: " + of + " (expected: >= 1)");
    }
    this.of = of;
    this.seed = seed;
    this.from = from;
  }

  @Override
  public InterceptorType type() {
    return InterceptorType.FILTER;
  }

  @Override
  public void begin(ClassTree type) {}

  @Override
  public Collection<MutationDetails> intercept(
      Collection<MutationDetails> mutations, Mutater mutater) {
    return mutations.stream().filter(from).filter(this::isKept).toList();
  }

  private boolean isKept(MutationDetails mutation) {
    long of = ((long) seed << Integer.SIZE) ^ mutation.getId().toString().hashCode();
    return new SplittableRandom(of).nextInt(this.of) == 0;
  }

  @Override
  public void end() {}
}
