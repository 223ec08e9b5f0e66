/** What code outside of Java uses until it gives it back. */
@NullMarked
package io.cuvette.internal.loan;

import org.jspecify.annotations.NullMarked;
