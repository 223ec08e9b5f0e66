/** What the contract tests share. */
@NullMarked
package io.cuvette.testkit.support;

import org.jspecify.annotations.NullMarked;
