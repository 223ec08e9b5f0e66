package io.cuvette.mutations;

import org.pitest.mutationtest.build.InterceptorParameters;
import org.pitest.mutationtest.build.MutationInterceptor;
import org.pitest.mutationtest.build.MutationInterceptorFactory;
import org.pitest.plugin.Feature;
import org.pitest.plugin.FeatureParameter;

/** Offers {@code +SAMPLE(of[n] seed[s])} to PIT: one of n mutations, chosen by the seed. */
public final class SampleFactory implements MutationInterceptorFactory {
  private static final FeatureParameter OF =
      FeatureParameter.named("of").withDescription("one of how many mutations is tried");
  private static final FeatureParameter SEED =
      FeatureParameter.named("seed").withDescription("chooses which");

  @Override
  public MutationInterceptor createInterceptor(InterceptorParameters parameters) {
    return new Sample(parameters.getInteger(OF).orElse(1), parameters.getInteger(SEED).orElse(1));
  }

  @Override
  public Feature provides() {
    return Feature.named("SAMPLE")
        .withDescription(description())
        .withParameter(OF)
        .withParameter(SEED);
  }

  @Override
  public String description() {
    return "A random sample of the mutations";
  }
}
