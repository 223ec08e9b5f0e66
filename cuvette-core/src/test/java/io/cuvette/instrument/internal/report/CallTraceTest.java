package io.cuvette.instrument.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.instrument.Site;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class CallTraceTest {
  private final List<Site> sites = new ArrayList<>();

  private void first() {
    sites.add(CallTrace.often("manyCalls", "a", 1, "b", "two").site());
  }

  private void second() {
    sites.add(CallTrace.often("manyCalls", "a", 1, "b", "two").site());
  }

  private static boolean isOwn(Site site) {
    return site.toString().endsWith("manyCalls(a=1, b=two)");
  }

  private static boolean isIn(Site site, String method) {
    return Arrays.stream(site.getStackTrace()).anyMatch(at -> at.getMethodName().equals(method));
  }

  @Test
  void ofManyCalls_theFirstAndThenOneInSixteen_haveTheirOwnStack_othersThatOfTheLast() {
    for (int i = 0; i < 64; i++) {
      first();
    }
    assertThat(sites).allMatch(site -> isOwn(site) && isIn(site, "first"));
    sites.clear();
    for (int i = 0; i < 32; i++) {
      second();
    }
    assertThat(sites.stream().filter(CallTraceTest::isOwn)).hasSize(2);
    assertThat(sites.subList(0, 15)).allMatch(site -> isIn(site, "first"));
    assertThat(sites.subList(15, 32)).allMatch(site -> isIn(site, "second"));
  }

  @Test
  void callThatWasNoMistakeWhenItWasMade_hasNoStack() {
    Site site = CallTrace.passing("call", "a", 1).site();
    assertThat(site.toString()).endsWith(": call(a=1)");
    assertThat(site.getStackTrace()).isEmpty();
  }
}
