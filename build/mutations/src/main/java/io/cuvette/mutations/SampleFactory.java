package io.cuvette.mutations;

import java.nio.file.Path;
import java.util.function.Predicate;
import org.pitest.mutationtest.build.InterceptorParameters;
import org.pitest.mutationtest.build.MutationInterceptor;
import org.pitest.mutationtest.build.MutationInterceptorFactory;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.plugin.Feature;
import org.pitest.plugin.FeatureParameter;

/**
 * Offers {@code +SAMPLE(of[n] seed[s] again[report])} to PIT: one of n mutations, chosen by the
 * seed; of those that lived in a report, unless it is {@code none}.
 */
public final class SampleFactory implements MutationInterceptorFactory {
  private static final FeatureParameter OF =
      FeatureParameter.named("of").withDescription("one of how many mutations is tried");
  private static final FeatureParameter SEED =
      FeatureParameter.named("seed").withDescription("chooses which");
  private static final FeatureParameter AGAIN =
      FeatureParameter.named("again").withDescription("a report of PIT: what lived there");

  @Override
  public MutationInterceptor createInterceptor(InterceptorParameters parameters) {
    Predicate<MutationDetails> from =
        parameters
            .getString(AGAIN)
            .filter(report -> !report.equals("none"))
            .map(report -> (Predicate<MutationDetails>) new Lived(Path.of(report)))
            .orElse(_ -> true);
    return new Sample(
        parameters.getInteger(OF).orElse(1), parameters.getInteger(SEED).orElse(1), from);
  }

  @Override
  public Feature provides() {
    return Feature.named("SAMPLE")
        .withDescription(description())
        .withParameter(OF)
        .withParameter(SEED)
        .withParameter(AGAIN);
  }

  @Override
  public String description() {
    return "A random sample of the mutations";
  }
}
