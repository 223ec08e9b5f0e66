/** Every public operation beside everything that can end what it uses. */
@NullMarked
package io.cuvette.testkit.races;

import org.jspecify.annotations.NullMarked;
