/** The driver's pools: made, imported or borrowed. */
@NullMarked
package io.cuvette.internal.driverpool;

import org.jspecify.annotations.NullMarked;
