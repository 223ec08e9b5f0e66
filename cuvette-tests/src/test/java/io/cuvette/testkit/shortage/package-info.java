/** How much fits: the same programs on the simulated device and on a GPU. */
@NullMarked
package io.cuvette.testkit.shortage;

import org.jspecify.annotations.NullMarked;
