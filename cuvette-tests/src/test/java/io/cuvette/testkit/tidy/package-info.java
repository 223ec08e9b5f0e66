/** Rules over the sources of the repository, held by a test. */
@NullMarked
package io.cuvette.testkit.tidy;

import org.jspecify.annotations.NullMarked;
