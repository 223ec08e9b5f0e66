/** Nodes of graphs: what they do, how they are added and changed, in graphs and executables. */
@NullMarked
package io.cuvette.internal.node;

import org.jspecify.annotations.NullMarked;
