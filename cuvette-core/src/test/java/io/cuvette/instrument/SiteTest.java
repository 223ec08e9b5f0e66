package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import org.junit.jupiter.api.Test;

class SiteTest {
  private static final StackTraceElement[] STACK = {
    new StackTraceElement("Program", "main", "Program.java", 7)
  };

  /** It is of the call: to be thrown, or filled in again, does not make it another's. */
  @Test
  void siteThatIsThrown_keepsItsStack() {
    StackTraceElement[] given = STACK.clone();
    Site site = new Site("call(a=1)", given, true);
    given[0] = null;
    assertThat(site.fillInStackTrace()).isSameAs(site);
    assertThat(site.getStackTrace()).containsExactly(STACK);
    assertThat(site.getMessage()).isEqualTo(site.call()).isEqualTo("call(a=1)");
    assertThat(site).hasToString(Site.class.getName() + ": call(a=1)");
    assertThat(new Site("call(a=1)", STACK, false))
        .hasToString(site + ", called as one like it shortly before");
  }

  @Test
  void null_isRefusedByName() {
    assertThatNullPointerException()
        .isThrownBy(() -> new Site(null, STACK, true))
        .withMessage("call");
    assertThatNullPointerException()
        .isThrownBy(() -> new Site("call", null, true))
        .withMessage("stack");
  }
}
