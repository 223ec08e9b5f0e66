package io.cuvette.instrument.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class HostFunctionTest {
  private final HappensBefore order = new HappensBefore();
  private final Lane lane = order.create(0, "a stream", false);
  private final List<Clock> finished = new ArrayList<>();
  private final HostFunction function = new HostFunction(() -> {}, finished::add);

  /** Of a launch that was refused, as far as is known. */
  @Test
  void runThatNobodyNoted_isNoneOfThoseThatAreNotedLater() {
    function.run();
    assertThat(function.isPending()).isFalse();
    long _ = function.expect(0, new Clock());
    assertThat(function.isPending()).isTrue();
    function.run();
    assertThat(function.isPending()).isFalse();
  }

  @Test
  void launchWhoseCallIsNotBack_isNotedByTheRun_whichFinishesWhatIsBefore() {
    long work = lane.next();
    List<Runnable> noted = new ArrayList<>();
    Runnable launch =
        new Runnable() {
          @Override
          public void run() {
            noted.add(this);
            long _ = function.expect(0, lane.known());
          }
        };
    function.begins(launch);
    function.run();
    assertThat(noted).containsExactly(launch);
    assertThat(finished).singleElement().matches(done -> done.covers(lane, work));
    function.ends(launch);
    function.run();
    assertThat(noted).containsExactly(launch);
  }

  @Test
  void launchesOfSeveralThreads_whoseCallsAreNotBack_areAllNoted() {
    List<String> noted = new ArrayList<>();
    function.begins(() -> noted.add("one"));
    function.begins(() -> noted.add("another"));
    function.run();
    assertThat(noted).containsExactlyInAnyOrder("one", "another");
  }

  /** A launch that the driver is about to have has not run before that. */
  @Test
  void launchWhoseCallIsNotBack_isNotNotedByTheRunOfAnother() {
    List<String> noted = new ArrayList<>();
    function.begins(() -> noted.add("a launch"));
    long _ = function.expect(0, new Clock());
    function.run();
    assertThat(noted).isEmpty();
  }
}
