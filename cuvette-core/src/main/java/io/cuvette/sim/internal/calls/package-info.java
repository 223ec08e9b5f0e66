/** The calls about devices, streams, events, copies and captures. */
@NullMarked
package io.cuvette.sim.internal.calls;

import org.jspecify.annotations.NullMarked;
