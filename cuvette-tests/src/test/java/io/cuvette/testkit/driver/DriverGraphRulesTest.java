package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverGraphRulesContract;

class DriverGraphRulesTest extends DriverGraphRulesContract {}
