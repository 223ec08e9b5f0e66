/** Graphs: captured, instantiated, launched, updated, and the memory that they own and share. */
@NullMarked
package io.cuvette.testkit.graph;

import org.jspecify.annotations.NullMarked;
