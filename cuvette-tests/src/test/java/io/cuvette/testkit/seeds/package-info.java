/** Right programs under many seeds, which nothing may stop. */
@NullMarked
package io.cuvette.testkit.seeds;

import org.jspecify.annotations.NullMarked;
