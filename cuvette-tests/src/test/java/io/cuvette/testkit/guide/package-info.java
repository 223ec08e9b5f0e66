/** The programs that README.md and the pages of docs/guide show. */
@NullMarked
package io.cuvette.testkit.guide;

import org.jspecify.annotations.NullMarked;
