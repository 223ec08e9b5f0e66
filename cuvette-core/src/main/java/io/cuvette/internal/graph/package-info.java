/** Graphs: captures from begin to end, what is instantiated from them, and memory they share. */
@NullMarked
package io.cuvette.internal.graph;

import org.jspecify.annotations.NullMarked;
