/** Changes the library in one place at a time: would the tests notice? */
@NullMarked
package io.cuvette.mutations;

import org.jspecify.annotations.NullMarked;
