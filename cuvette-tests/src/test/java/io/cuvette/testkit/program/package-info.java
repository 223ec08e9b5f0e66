/** Programs that are compiled by the compiler of the machine, where there is one. */
@NullMarked
package io.cuvette.testkit.program;

import org.jspecify.annotations.NullMarked;
