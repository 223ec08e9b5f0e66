/** Memory of the driver's pools. */
@NullMarked
package io.cuvette.internal.ordered;

import org.jspecify.annotations.NullMarked;
