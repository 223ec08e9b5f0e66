/** JMH benchmarks of the pools and the driver calls, and the programs run beside the anchors'. */
@NullMarked
package io.cuvette.benchmarks;

import org.jspecify.annotations.NullMarked;
