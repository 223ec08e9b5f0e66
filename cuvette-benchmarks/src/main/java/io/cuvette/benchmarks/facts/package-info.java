/** What Cuvette says and does, beside cuda.core and CuPy; see compare/facts. */
@NullMarked
package io.cuvette.benchmarks.facts;

import org.jspecify.annotations.NullMarked;
