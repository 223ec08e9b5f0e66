/** Graphs of the simulated device: nodes, what is instantiated from them, and their memory. */
@NullMarked
package io.cuvette.sim.internal.graph;

import org.jspecify.annotations.NullMarked;
