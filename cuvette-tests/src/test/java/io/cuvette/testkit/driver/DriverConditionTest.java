package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverConditionContract;

class DriverConditionTest extends DriverConditionContract {}
