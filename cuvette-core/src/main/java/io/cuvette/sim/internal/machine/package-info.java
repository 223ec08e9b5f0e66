/** What the calls of a driver share: its devices and clock, captures and graphs, addresses. */
@NullMarked
package io.cuvette.sim.internal.machine;

import org.jspecify.annotations.NullMarked;
