package io.cuvette.testkit.crowd;

/** One thing that a thread of a {@link Crowd} does. Stateless. */
@FunctionalInterface
interface CrowdStep {
  void run(CrowdMember by) throws Exception;
}
