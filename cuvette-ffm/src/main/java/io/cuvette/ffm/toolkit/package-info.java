/** The libraries of CUDA's toolkit that compile and link, each loaded when it is first used. */
@NullMarked
package io.cuvette.ffm.toolkit;

import org.jspecify.annotations.NullMarked;
