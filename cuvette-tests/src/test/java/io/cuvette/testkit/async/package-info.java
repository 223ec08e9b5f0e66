/** The contract of stream-ordered memory and of the driver's pools. */
@NullMarked
package io.cuvette.testkit.async;

import org.jspecify.annotations.NullMarked;
