/** What the build adds to PIT: a sample of the mutations. */
@NullMarked
package io.cuvette.mutations;

import org.jspecify.annotations.NullMarked;
