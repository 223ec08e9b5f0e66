/** What lies in files that several processes map: pools, allocations and events. */
@NullMarked
package io.cuvette.sim.internal.share;

import org.jspecify.annotations.NullMarked;
