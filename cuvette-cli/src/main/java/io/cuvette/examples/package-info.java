/** Short programs that show how Cuvette is used, and check their own results. */
@NullMarked
package io.cuvette.examples;

import org.jspecify.annotations.NullMarked;
